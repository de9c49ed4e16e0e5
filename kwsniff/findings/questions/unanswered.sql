-- Did the broker not answer, or did we not see it?
select regexp_extract(capture, '([^/]+)/[^/]+$', 1) recording, status, reason, count(*) calls
from api_calls where status <> 'answered' or reason is not null group by all order by all
