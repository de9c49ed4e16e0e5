-- The calls and connections that findings explain. `finding_row` has the findings, `listed_call` and `listed_frame` the calls
-- and packets that they name, all by the number of the finding: finding_calls.py fills them.

-- Ids are unique within a run: of several runs with the same one, it is the call at the finding's time.
create or replace temp table listed_entry as
select number, run_id, connection_id, call_id from (
    select f.number, c.run_id, c.connection_id, c.call_id, count(*) over (partition by f.number, c.call_id) as found,
        coalesce(c.request_time, c.response_time) between coalesce(f.first_time - to_seconds(1), '-infinity'::timestamptz)
            and coalesce(f.last_time + to_seconds(1), 'infinity'::timestamptz) as in_time
    from (select distinct number, call_id from listed_call) l join call c using (call_id) join finding_row f using (number)
) where found = 1 or in_time;

create or replace temp table finding_entry as select distinct *, true as listed from listed_entry
