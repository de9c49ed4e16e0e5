-- Addresses that are known to be Kafka, and SYNs without an answer.

-- Ports of brokers in the examples of Kafka and of its images and services: 9092 to 9098, 9194 to 9198, and the same
-- after another digit. Only the bytes show whether another protocol listens there.
create temp view usual_port as
select unnest(flatten([range(9092, 9099), [9194, 9196, 9198, 49092], range(19092, 19099), range(29092, 29099), range(39092, 39099)])) as port;

-- Addresses that are known to be Kafka: their port carries it here or was named (--port), their client uses it, or
-- brokers name them. TLS alone may be anything, except at a port where brokers usually listen.
create temp view kafka_speaker as
select distinct client_address, broker, broker_port from connection where protocol = 'kafka'
    or protocol = 'tls' and broker_bytes > 0 and broker_port in (from usual_port);

create temp view asked_for as
select run_id, connection_id,
    port_named or client_address in (select client_address from kafka_speaker) or broker_port in (select broker_port from kafka_speaker)
        or broker in (select host || ':' || port from brokers) as known
from connection where refused or broker_packets = 0;

-- Clients at an address that have a client id. A connection without an answer does not show which of them opened it.
create temp view resident as
select client_address, case when count(distinct client) = 1 then min(client) end as client,
    case when count(distinct client) = 1 then min(client) || ' (' || client_address || ')' else client_address end as called
from connection where client_id is not null group by client_address;

-- SYNs without an answer.
create temp view silent as
select *, 1 + coalesce(syn_retries, 0) as syns from connection
where not coalesce(refused, false) and broker_packets = 0 and client_bytes = 0 and syn_retries is not null;

-- Of these, addresses that never answered, and that brokers advertised to the client, which talks to another broker:
-- by address; or the client tried after brokers had advertised more host names than hosts answer at that port.
create temp view advertised_silent as
with speaking as (
    select client_address, min(response_time) as told from client_call c where is_metadata(api_name) and response_time is not null group by client_address
),
hosts as (
    select port, count(distinct host) filter (not regexp_matches(host, '^[0-9.]+$|:')) as names from brokers group by port
),
answering as (select broker_port as port, count(distinct broker_address) as hosts from connection where broker_bytes > 0 group by broker_port),
more_named as (select port from hosts left join answering using (port) where names > coalesce(answering.hosts, 0))
select distinct s.client_address, s.broker
from silent s join speaking t using (client_address)
where not exists (from connection o where o.broker = s.broker and o.broker_packets > 0)
    and (s.broker in (select host || ':' || port from brokers) or s.first_time >= t.told and s.broker_port in (from more_named));
