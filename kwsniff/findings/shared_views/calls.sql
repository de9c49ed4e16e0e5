-- The input of the rules. Calls of connections that were captured twice count once: `twin_of` leaves them out.
-- `client` is the client id, of the request or of another one of the connection, else the address;
-- `broker` is address:port.

create temp view connection as
select *, coalesce(client_id, client_address) as client, broker_address || ':' || broker_port as broker
from connections where twin_of is null;

create temp view twin as select run_id, connection_id from connections where twin_of is not null;

-- Connections with requests that have a client id, and others that do not.
create temp view unnamed as
select run_id, connection_id, client_id as named from connections
where client_id is not null and (run_id, connection_id) in (select (run_id, connection_id) from api_calls where client_id is null);

create temp view call as
select c.*, coalesce(c.client_id, named, client_address) as client, broker_address || ':' || broker_port as broker
from api_calls c left join unnamed u using (run_id, connection_id)
where not exists (from twin t where t.connection_id = c.connection_id and t.run_id = c.run_id);

create temp view client_call as select * from call where caller is null or caller = 'client';

-- Commits of clients. `outside`: by no member of the group.
create temp view commit_call as
select run_id, connection_id, call_id, client, client_id, broker, group_id, generation, error_code, request_time, response_time, response_end_time, latency_ns,
    transactional_id is not null as transactional,
    coalesce(generation, -1) < 0 and coalesce(member_id, '') = '' and group_instance_id is null as outside
from client_call where is_commit(api_name);

-- The client of a connection, for calls without a client id.
create temp view origin as select run_id, connection_id, coalesce(client_id, client_address) as origin from connections;

-- Without the client, which takes a join.
create temp view timing as
select *, broker_address || ':' || broker_port as broker, request_time + to_microseconds(total_ns // 1000) as response_end_time
from latencies l
where not exists (from twin t where t.connection_id = l.connection_id and t.run_id = l.run_id);

create temp view latency as
select l.* exclude (origin), coalesce(client_id, origin) as client
from (from timing left join origin using (run_id, connection_id)) l;

-- Inter-broker calls with errors. They are few, and many rules read `refusal`.
create temp view server_error as
select distinct run_id, call_id from api_calls
where caller is not null and caller <> 'client' and error_code is not null and error_code <> 0;

-- Errors in responses to clients. Many errors between servers are routine.
create temp view refusal as
select e.*, coalesce(e.client_id, named, e.client_address) as client, e.broker_address || ':' || e.broker_port as broker
from error_codes e left join unnamed u using (run_id, connection_id)
where not exists (from twin t where t.connection_id = e.connection_id and t.run_id = e.run_id)
    and not exists (from server_error s where s.call_id = e.call_id and s.run_id is not distinct from e.run_id);

create temp view stall as
select * from stalls s
where not exists (from twin t where t.connection_id = s.connection_id and t.run_id = s.run_id);

create temp view partition_call as
select p.* exclude (origin), coalesce(client_id, origin) as client, broker_address || ':' || broker_port as broker,
    coalesce(topic, topic_id) || '-' || partition as topic_partition
from (from partitions left join origin using (run_id, connection_id)) p
where not exists (from twin t where t.connection_id = p.connection_id and t.run_id = p.run_id);

create temp view batch as
select * from record_batches b
where not exists (from twin t where t.connection_id = b.connection_id and t.run_id = b.run_id);

-- What is normal at which server although a rule of the protocol forbids it (quirks.txt); of any API where there is none.
create temp view server_quirk as
select distinct s.address || ':' || s.port as broker, q.quirk, q.api_name, q.least, q.most, q.error_code
from servers s join product_quirk q using (product);
