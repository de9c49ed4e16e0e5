-- What the rules read. Calls of connections that were seen twice count once: `twin_of` leaves them out.
-- `client` is the name a client gives itself, else its address; `broker` is address:port.

create temp view connection as
select *, coalesce(client_id, client_address) as client, broker_address || ':' || broker_port as broker
from connections where twin_of is null;

create temp view twin as select run_id, connection_id from connections where twin_of is not null;

create temp view call as
select *, coalesce(client_id, client_address) as client, broker_address || ':' || broker_port as broker
from api_calls c
where not exists (from twin t where t.connection_id = c.connection_id and t.run_id = c.run_id);

create temp view client_call as select * from call where caller is null or caller = 'client';

-- Where a connection began, for calls of clients without a name.
create temp view origin as select run_id, connection_id, client_address as origin from connections;

-- Without the client, which takes a join.
create temp view timing as
select *, broker_address || ':' || broker_port as broker, request_time + to_microseconds(total_ns // 1000) as response_end_time
from latencies l
where not exists (from twin t where t.connection_id = l.connection_id and t.run_id = l.run_id);

create temp view latency as
select l.* exclude (origin), coalesce(client_id, origin) as client
from (from timing left join origin using (run_id, connection_id)) l;

-- When brokers refused connections. Whether one did so within a time is asked of the last before its end (asof
-- join): looking at all of them for each call takes as long as there are of both.
create temp view refusing as select distinct broker, first_time as moment from connection where refused and first_time is not null;

-- Calls among servers that were refused something. They are few, and `refusal` is asked by many rules.
create temp view server_error as
select distinct run_id, call_id from api_calls
where caller is not null and caller <> 'client' and error_code is not null and error_code <> 0;

-- What clients were refused. Servers among themselves are told many things that are routine.
create temp view refusal as
select e.*, coalesce(e.client_id, e.client_address) as client, e.broker_address || ':' || e.broker_port as broker
from error_codes e
where not exists (from twin t where t.connection_id = e.connection_id and t.run_id = e.run_id)
    and not exists (from server_error s where s.call_id = e.call_id and s.run_id is not distinct from e.run_id);

create temp view partition_call as
select p.* exclude (origin), coalesce(client_id, origin) as client, broker_address || ':' || broker_port as broker,
    coalesce(topic, topic_id) || '-' || partition as topic_partition
from (from partitions left join origin using (run_id, connection_id)) p
where not exists (from twin t where t.connection_id = p.connection_id and t.run_id = p.run_id);

create temp view batch as
select * from record_batches b
where not exists (from twin t where t.connection_id = b.connection_id and t.run_id = b.run_id);

-- Produce with acks=-1 that has no followers to wait for: every topic has one copy, as Metadata says.
create temp view lone_topic as
select coalesce(topic, topic_id) as topic from leaders group by coalesce(topic, topic_id) having max(replicas) = 1;

create temp view lone_topics as
select topics from (select distinct topics from client_call where api_name = 'Produce' and acks = -1 and len(topics) > 0)
where list_has_all((select coalesce(list(topic), []) from lone_topic), topics);

create temp view lone_produce as
select run_id, call_id from client_call where api_name = 'Produce' and acks = -1 and topics in (from lone_topics);

create temp view span as
select min(first_time) as first_time, max(last_time) as last_time,
    epoch(max(last_time) - min(first_time)) as seconds
from captures;

-- What a run recorded without a pause: captures of one folder may be hours apart, and say nothing of the time between.
create temp view stretch as
select run_id, min(first_time) as begins, max(last_time) as ends
from (
    select run_id, first_time, last_time, count(*) filter (apart) over (partition by run_id order by first_time, last_time rows unbounded preceding) as number
    from (
        select run_id, first_time, last_time, first_time > to_seconds(10) + max(last_time) over (
            partition by run_id order by first_time, last_time rows between unbounded preceding and 1 preceding) as apart
        from captures where first_time is not null
    )
) group by run_id, number;

-- Sums that an analysis makes while rows pass (call_sums.py, volumes.py); of a folder they are asked here.
create temp view call_sum as
select client, kind, count(*) as calls, count(record_count) as known,
    count(*) filter (coalesce(record_count, 0) = 0) as empty, coalesce(sum(latency_ns), 0) as time_ns, sum(record_count) as records,
    sum(record_bytes) as bytes, min(request_time) as first_time, max(request_time) as last_time,
    min(max_wait_ms) as max_wait, [each.call_id for each in min({'time': request_time, 'call_id': call_id}, 20)] as call_ids
from (
    select *, case when api_name = 'Produce' then 'produce' when api_name = 'Metadata' then 'metadata'
        when api_name in ('Fetch', 'ShareFetch') and status = 'answered' then 'fetch' else 'other' end as kind
    from client_call where request_time is not null
) group by client, kind;

create temp view client_broker as
select client, min(broker) as broker from connection where client is not null group by client;

create temp view topic_width as
select topic, greatest(count(*), max(partition) + 1) as partitions
from (select distinct topic, partition from partition_call where topic is not null) group by topic;

create temp view written as
select topic, partition, sum(record_bytes) as bytes, count(*) as calls, min(client) as client, min(time) as first_time,
    max(time) as last_time, string_agg(distinct client, ', ' order by client) as clients,
    [each.call_id for each in min({'bytes': -record_bytes, 'call_id': call_id}, 20)] as call_ids
from partition_call where api_name = 'Produce' and topic is not null and record_bytes > 0
group by topic, partition;

-- Connections of which the capture lost something, and on which calls may have waited behind a long poll, for a
-- group that is not in it, or for a quota that an answer named which is not in it: what took their other calls long
-- cannot be told.
create temp view blind as
select distinct run_id, connection_id from client_call
where (run_id, connection_id) in (
        select (run_id, connection_id) from connection where coalesce(client_missing_bytes, 0) + coalesce(broker_missing_bytes, 0) > 0
    ) and (
        api_name in ('Fetch', 'ShareFetch', 'JoinGroup', 'SyncGroup')
        or client in (select client from client_call where throttle_time_ms > 0)
    );

-- Calls whose answers the network lost: the client itself asked for the bytes in vain.
create temp view never_arrived as
select run_id, call_id from client_call join connection using (run_id, connection_id)
where status = 'response_not_captured' and reason = 'segment_lost' and broker_lost_bytes > 0;

-- Runs whose captures lost so much that an answer, or the end of a connection, may be what is missing. What never arrived
-- (lost_bytes) is in no capture.
create temp view lossy as
select run_id from connection where protocol = 'kafka' group by run_id
having sum(coalesce(client_missing_bytes, 0) + coalesce(broker_missing_bytes, 0) - coalesce(client_lost_bytes + broker_lost_bytes, 0)) >= 0.01 * sum(client_bytes + broker_bytes);
