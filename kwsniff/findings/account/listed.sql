-- The calls and connections that findings explain. `finding_row` has the findings, `listed_call` and `listed_frame` the calls
-- and packets that they name, all by the number of the finding: finding_calls.py fills them.

create or replace temp table finding_entry as
select number, run_id, connection_id, call_id, true as listed
from (select distinct number, call_id from listed_call) join call using (call_id)
