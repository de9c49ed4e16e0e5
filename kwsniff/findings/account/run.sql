-- After `listed.sql`, where there are several runs. Ids are unique within a run: of several runs with the same one, it is the
-- call at the finding's time.
create or replace temp table entry_elsewhere as
select e.number, e.run_id, e.call_id
from finding_entry e semi join (select number, call_id from finding_entry group by number, call_id having count(distinct run_id) > 1) using (number, call_id)
    join finding_row f using (number) join call c on c.run_id = e.run_id and c.call_id = e.call_id
where not coalesce(coalesce(c.request_time, c.response_time) between coalesce(f.first_time - to_seconds(1), '-infinity'::timestamptz)
    and coalesce(f.last_time + to_seconds(1), 'infinity'::timestamptz), false);

delete from other_entry where (number, run_id, call_id) in (from entry_elsewhere);
delete from all_entry where (number, run_id, call_id) in (from entry_elsewhere)
