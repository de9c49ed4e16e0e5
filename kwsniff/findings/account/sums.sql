-- How many calls, and connections, are explained by which finding, unexplained or routine; all others are fine. What
-- several findings explain counts under the first that lists it, else under the first that it belongs to.
with explained as (
    select run_id, connection_id, call_id, min({'related': not listed, 'finding_id': n.finding_id, 'finding': n.finding}) as first
    from finding_entry join numbered n using (number) where n.explains group by run_id, connection_id, call_id
),
troubled as (
    select run_id, connection_id, call_id, harm, routine from troubled_call
    union all
    select run_id, connection_id, null, harm, routine from troubled_connection
),
judged as (
    select coalesce(e.call_id, t.call_id) is not null as is_call, case when e.first is not null then 'explained' when harm is not null then 'unexplained' else 'routine' end as kind,
        case when e.first is not null then e.first.finding when harm is null then routine else '' end as name, coalesce(e.first.finding_id, 0) as place
    from explained e full join troubled t on t.run_id = e.run_id and t.connection_id = e.connection_id and t.call_id is not distinct from e.call_id
)
select is_call, kind, name, count(*) as number from judged group by is_call, kind, name order by is_call desc, kind, min(place), name
