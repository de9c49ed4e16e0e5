-- Readers that make no progress. `nothing`: fetch after fetch at one offset gets no record, although readable ones follow;
-- `again`: the broker delivers the same offset again and again. Once does no harm: a consumer seeks, or two share a client id.
create temp view standing_read as
with reads as (
    -- of calls, only those are looked up that count
    select run_id, connection_id, topic_partition, call_id, time, requested_offset as asked, coalesce(error_code, 0) <> 0 as failed,
        record_bytes, record_count, high_watermark, last_stable_offset, log_start_offset
    from partition_call
    where is_log_fetch(api_name) and time is not null and run_id not in (from lossy)
),
-- a request of a fetch session names only partitions whose offset has changed; only readers with such requests are sorted
unnamed as (select distinct run_id, connection_id, topic_partition from reads where asked is null),
positions as (
    select *, asked as position from reads anti join unnamed using (run_id, connection_id, topic_partition)
    union all
    select *, last_value(asked ignore nulls) over (partition by run_id, connection_id, topic_partition order by time, call_id) as position
    from reads semi join unnamed using (run_id, connection_id, topic_partition)
),
-- calls of brokers, and those that a quota delayed
apart as (
    select run_id, call_id from call where caller <> 'client' or status <> 'answered' or throttle_time_ms > 0
),
kinds as (
    select * exclude (asked, failed), case when record_bytes = 0 or record_count = 0 then 'empty' when record_bytes > 0 then 'records' end as kind
    from positions where position >= 0 and not failed and (run_id, call_id) not in (select (run_id, call_id) from apart)
),
often_empty as (
    select run_id, connection_id, topic_partition from kinds where kind = 'empty' and high_watermark > position
    group by run_id, connection_id, topic_partition having count(*) >= 10
),
-- first the few rows, then their calls
suspects as materialized (from kinds semi join often_empty using (run_id, connection_id, topic_partition)),
emptied as (
    select k.* exclude (kind), c.response_end_time as until, case when c.isolation_level = 1 and k.last_stable_offset >= 0 then k.last_stable_offset else k.high_watermark end as readable_end,
        case when k.kind = 'records' then k.kind when c.record_bytes <= k.record_bytes then case when readable_end > k.position then 'nothing' else 'end' end end as kind
    from suspects k join client_call c on c.run_id = k.run_id and c.call_id = k.call_id
),
marked as (
    select *, coalesce(kind <> lag(kind) over w or position <> lag(position) over w, true) as begins
    from emptied where kind is not null window w as (partition by run_id, connection_id, topic_partition order by time, call_id)
),
numbered as (
    select *, sum(case when begins then 1 else 0 end) over (partition by run_id, connection_id, topic_partition order by time, call_id rows unbounded preceding) as number from marked
),
empty as (
    select run_id, connection_id, topic_partition, position, min(time) as first_time, max(until) as last_time,
        count(*) as calls, max(readable_end) as readable_end, max(record_bytes) as part,
        list(call_id order by time, call_id) as call_ids, 'nothing' as kind
    from numbered where kind = 'nothing' group by run_id, connection_id, topic_partition, position, number
    having count(*) >= 10 and epoch(max(time) - min(time)) >= 3
),
deliveries as (
    select run_id, connection_id, topic_partition, position, min(time) as first_time, max({'time': time, 'call_id': call_id}).call_id as last_call, count(*) as calls,
        list(call_id order by time, call_id) as call_ids, max(greatest(coalesce(log_start_offset, 0), 0)) as log_start
    from kinds where kind = 'records' group by run_id, connection_id, topic_partition, position
    having count(*) >= 5 and epoch(max(time) - min(time)) >= 3
),
-- a connection has its responses in the order of the requests
again as (
    select d.* exclude (last_call), c.response_end_time as last_time, 0 as part, 'again' as kind from deliveries d join client_call c on c.run_id = d.run_id and c.call_id = d.last_call
),
-- clients that are in a group, and their connections
grouped_client as materialized (select client, min(group_id) as group_id from client_call where is_heartbeat(api_name) group by client),
grouped as (select run_id, connection_id from connection where client in (select client from grouped_client)),
repeated as (
    select a.* exclude (log_start) from again a
    where (
            -- who looks up records here and there reads earlier ones, too
            select min(k.position) >= a.position and a.calls >= 0.25 * count(*) from kinds k where k.kind = 'records' and k.run_id = a.run_id
                and k.connection_id = a.connection_id and k.topic_partition = a.topic_partition and k.time between a.first_time and a.last_time)
        -- a table that is loaded again is read from its start by a client outside a group
        and (a.position > a.log_start or (a.run_id, a.connection_id) in (select (run_id, connection_id) from grouped))
)
from empty union all by name from repeated;
