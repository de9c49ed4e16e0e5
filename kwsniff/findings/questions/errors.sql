-- Whose errors are these?
select client_id, api_name, topic, partition, error_name, retriable, left(error_message, 40) said
from error_codes order by response_time, path
