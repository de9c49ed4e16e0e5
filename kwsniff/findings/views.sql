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

create temp view latency as
select l.*, coalesce(client_id, broker_address) as client, broker_address || ':' || broker_port as broker,
    request_time + to_microseconds(total_ns // 1000) as response_end_time
from latencies l
where not exists (from twin t where t.connection_id = l.connection_id and t.run_id = l.run_id);

-- What clients were refused. Servers among themselves are told many things that are routine.
create temp view refusal as
select e.*, coalesce(e.client_id, e.client_address) as client, e.broker_address || ':' || e.broker_port as broker
from error_codes e join api_calls c on c.call_id = e.call_id and c.run_id is not distinct from e.run_id
where not exists (from twin t where t.connection_id = e.connection_id and t.run_id = e.run_id)
    and (c.caller is null or c.caller = 'client');

create temp view partition_call as
select *, coalesce(client_id, broker_address) as client, broker_address || ':' || broker_port as broker,
    coalesce(topic, topic_id) || '-' || partition as topic_partition
from partitions p
where not exists (from twin t where t.connection_id = p.connection_id and t.run_id = p.run_id);

create temp view batch as
select * from record_batches b
where not exists (from twin t where t.connection_id = b.connection_id and t.run_id = b.run_id);

create temp view span as
select min(first_time) as first_time, max(last_time) as last_time,
    epoch(max(last_time) - min(first_time)) as seconds
from captures;
