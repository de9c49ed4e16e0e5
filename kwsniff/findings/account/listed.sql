-- The calls and connections that findings explain. `finding_row` has the findings, `listed_call` and `listed_frame` the calls
-- and packets that they name, `all_entry` the calls that a query of their rule gives, all by the number of the finding:
-- finding_calls.py fills them. `finding_entry` has the entries of all, some twice.

create or replace temp table other_entry as
select number, run_id, connection_id, call_id, true as listed
from (select distinct number, call_id from listed_call) join call using (call_id)
