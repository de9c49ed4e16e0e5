-- The calls and connections that findings explain. `finding_row` has the findings, `listed_call` and `listed_frame` the calls
-- and packets that they name, all by the number of the finding: finding_calls.py fills them.

-- Ids are unique within a run: of several runs with the same one, it is the call at the finding's time.
create or replace temp table listed_entry as
select f.number, c.run_id, c.connection_id, c.call_id,
    coalesce(coalesce(c.request_time, c.response_time) between coalesce(f.first_time - to_seconds(1), '-infinity'::timestamptz)
        and coalesce(f.last_time + to_seconds(1), 'infinity'::timestamptz), false) as in_time
from listed_call l join call c using (call_id) join finding_row f using (number);

delete from listed_entry where not in_time and (number, call_id) in (
    select (number, call_id) from listed_entry
    where (select count(distinct run_id) > 1 from connections) group by number, call_id having count(distinct run_id) > 1);

create or replace temp table finding_entry as select distinct * exclude (in_time), true as listed from listed_entry
