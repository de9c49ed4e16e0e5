-- The connections that findings name by packets of theirs: after `listed.sql`, where a finding names one.

-- A packet that opens or ends a connection shows which one.
create or replace temp table framed_entry as
select distinct f.number, n.run_id, n.connection_id
from listed_frame l join finding_row f using (number)
    join (select *, unnest([first_frame, close_frame, reset_frame, icmp_frame]) as frame from connection) n using (frame)
where (f.broker = n.broker or f.client in (n.client, n.client_address) or f.subject in (n.client, n.client_address, n.broker)
        or f.broker is null and f.client is null)
    and n.first_time <= coalesce(f.last_time, 'infinity'::timestamptz) and n.last_time >= coalesce(f.first_time, '-infinity'::timestamptz);
insert into other_entry select number, run_id, connection_id, null, true from framed_entry;

-- A finding that names no call concerns those of its connections at its time.
insert into other_entry
select distinct e.number, c.run_id, c.connection_id, c.call_id, true
from framed_entry e join finding_row f using (number) join call c using (run_id, connection_id)
where e.number not in (select number from listed_call union select number from all_entry) and coalesce(c.request_time, c.response_time) <= coalesce(f.last_time, 'infinity'::timestamptz)
    and coalesce(c.response_end_time, 'infinity'::timestamptz) >= coalesce(f.first_time, '-infinity'::timestamptz)
