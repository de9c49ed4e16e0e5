-- Did the broker not answer, or did we not see it?
select regexp_extract(capture, '([^/]+)/[^/]+$', 1) recording, status, reason, count(*) calls
from api_calls anti join (from connections where twin_of is not null) using (run_id, connection_id)
where status <> 'answered' or reason is not null group by all order by all
