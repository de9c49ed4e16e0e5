-- Whose errors are these?
select client_id, api_name, topic, partition, error_name, retriable, left(error_message, 40) said
from error_codes anti join (from connections where twin_of is not null) using (run_id, connection_id)
order by response_time, path
