-- Sums that an analysis computes while rows pass (call_sums.py, volumes.py); for a folder they are computed here.

create temp view call_sum as
select client, kind, count(*) as calls, count(record_count) as known,
    count(*) filter (coalesce(record_count, 0) = 0) as empty, coalesce(sum(latency_ns), 0) as time_ns, sum(record_count) as records,
    sum(record_bytes) as bytes, min(request_time) as first_time, max(request_time) as last_time,
    min(max_wait_ms) as max_wait, [each.call_id for each in min({'time': request_time, 'call_id': call_id}, 20)] as call_ids
from (
    select *, case when is_produce(api_name) then 'produce' when is_metadata(api_name) then 'metadata'
        when is_fetch(api_name) and status = 'answered' then 'fetch' else 'other' end as kind
    from client_call where request_time is not null
) group by client, kind;

-- Fetches of clients: those that brought records, and when the last one ended.
create temp view fetch_sum as
select client, count(*) filter (record_bytes > 0) as polls, sum(record_count) as records, max(coalesce(response_end_time, request_time)) as last_time
from client_call where is_fetch(api_name) group by client;

create temp view client_broker as
select client, first.broker as broker from (
    select client, min({'time': coalesce(first_time, 'infinity'::timestamptz), 'broker': broker}) as first from connection where client is not null group by client
);

-- Number of partitions of a topic that the capture can show: those in it, and lower ones whose leader is a broker
-- in it. Writes to the others may go to brokers outside the capture.
create temp view topic_width as
with seen as (select distinct topic, partition from partition_call where topic is not null),
most as (select topic, max(partition) as last from seen group by topic),
shown as (
    select node_id from brokers where host || ':' || port in (select broker from connection where protocol = 'kafka')
    union
    -- all of them, by names that may not be addresses
    select node_id from brokers where (select count(distinct broker) from connection where protocol = 'kafka') >= (select count(distinct node_id) from brokers)
)
select topic, count(*) as partitions from (
    from seen union select l.topic, l.partition from leaders l join most m on m.topic = l.topic and l.partition < m.last where l.leader in (from shown)
) group by topic;

create temp view written as
select topic, partition, sum(record_bytes) as bytes, count(*) as calls, min(client) as client, min(time) as first_time,
    max(time) as last_time, string_agg(distinct client, ', ' order by client) as clients,
    [each.call_id for each in min({'bytes': -record_bytes, 'call_id': call_id}, 20)] as call_ids
from partition_call where is_produce(api_name) and topic is not null and record_bytes > 0
group by topic, partition;
