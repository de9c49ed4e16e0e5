-- The calls and connections that findings explain. `finding_row` has the findings, `listed_call` and `listed_frame` the calls
-- and packets that they name, all by the number of the finding: finding_calls.py fills them.

-- Ids are unique within a run: of several runs with the same one, it is the call at the finding's time.
create or replace temp table listed_entry as
select number, run_id, connection_id, call_id from (
    select f.number, c.run_id, c.connection_id, c.call_id, count(*) over (partition by f.number, c.call_id) as found,
        coalesce(c.request_time, c.response_time) between coalesce(f.first_time - to_seconds(1), '-infinity'::timestamptz)
            and coalesce(f.last_time + to_seconds(1), 'infinity'::timestamptz) as in_time
    from (select distinct number, call_id from listed_call) l join call c using (call_id) join finding_row f using (number)
) where found = 1 or in_time
union all
-- A packet that opens or ends a connection shows which one.
select distinct f.number, n.run_id, n.connection_id, null::bigint as call_id
from listed_frame l join finding_row f using (number)
    join (select *, unnest([first_frame, close_frame, reset_frame, icmp_frame]) as frame from connection) n using (frame)
where (f.broker = n.broker or f.client in (n.client, n.client_address) or f.subject in (n.client, n.client_address, n.broker)
        or f.broker is null and f.client is null)
    and n.first_time <= coalesce(f.last_time, 'infinity'::timestamptz) and n.last_time >= coalesce(f.first_time, '-infinity'::timestamptz);

-- A finding that names no call concerns those of its connections at its time.
create or replace temp table finding_entry as
with of_connections as materialized (select * from listed_entry where call_id is null and number not in (select number from listed_call))
select distinct *, true as listed from (
    from listed_entry
    union all
    select e.number, c.run_id, c.connection_id, c.call_id
    from of_connections e join finding_row f using (number) join call c using (run_id, connection_id)
    where coalesce(c.request_time, c.response_time) <= coalesce(f.last_time, 'infinity'::timestamptz)
        and coalesce(c.response_end_time, 'infinity'::timestamptz) >= coalesce(f.first_time, '-infinity'::timestamptz)
)
