-- Harm that no problem or warning lists belongs to those of the same client or broker at that time, give or take ten
-- seconds. A finding without a client and a broker, such as one of a topic, concerns all of them.
insert into other_entry
with harmed as (
    select run_id, connection_id, call_id, client, client_address, broker, time, until from troubled_call where harm is not null
    union all
    select run_id, connection_id, null, client, client_address, broker, time, until from troubled_connection where harm is not null
),
left_over as (
    from harmed h where not exists (
        from finding_entry e join finding_row f using (number)
        where f.explains and e.run_id = h.run_id and e.connection_id = h.connection_id and e.call_id is not distinct from h.call_id)
),
reach as (
    select distinct number, unnest([client, broker, subject, case when client is null and broker is null then '*' end]) as party, first_time, last_time from finding_row where explains
    union
    select distinct f.number, n.client_address, f.first_time, f.last_time from finding_row f join connection n on n.client = coalesce(f.client, f.subject) where f.explains
)
select distinct r.number, h.run_id, h.connection_id, h.call_id, false as listed
from (select *, unnest([client, client_address, broker, '*']) as party from left_over) h join reach r using (party)
where coalesce(r.first_time, '-infinity'::timestamptz) <= h.until + to_seconds(10) and coalesce(r.last_time, 'infinity'::timestamptz) >= h.time - to_seconds(10)
