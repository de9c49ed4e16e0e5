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

-- Times of refused connections by broker. An asof join finds the last one before a time: comparing all of them
-- with each call would take time proportional to the product of both.
create temp view refusing as select distinct broker, first_time as moment from connection where refused and first_time is not null;

-- Brokers that refused connections for a while and then accepted them again, while other brokers worked: they were
-- restarted, as in a rolling restart. A broker that refused again later does not count.
create temp view restart as
with away as (
    select broker, min(first_time) as since, max(first_time) as until from connection where refused and first_time is not null group by broker
),
taken as (
    select broker, first_time, last_time from connection where handshake and not coalesce(refused, false) and broker_bytes > 0 and first_time is not null
)
select a.broker, a.since, min(t.first_time) as back from away a join taken t on t.broker = a.broker and t.first_time > a.since
where exists (from taken o where o.broker <> a.broker and o.first_time < a.until + to_seconds(1) and o.last_time > a.since)
group by a.broker, a.since, a.until having min(t.first_time) > a.until and min(t.first_time) <= a.since + to_seconds(120);

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

-- Times when a broker reported that it no longer leads a partition or coordinates a group: it hands over all of
-- them before a shutdown.
create temp view resigned as
select distinct broker, response_time as moment from refusal where error_code in (6, 16, 74) and response_time is not null;

-- Time of the first new connection of a broker that had ended all of its connections, one of them in the middle of
-- its work or after it resigned: it was restarted. `since`: its last response before.
create temp view renewal as
with spoken as (
    select run_id, connection_id, max(response_end_time) as last from timing group by run_id, connection_id
),
lived as (
    select n.broker, n.first_time, n.last, n.closed_by = 'broker' and (epoch(n.last_time - n.last) < 1 or epoch(n.last_time - r.moment) < 5) as cut
    from (select * from connection join spoken using (run_id, connection_id) where first_time is not null) n
        asof left join resigned r on r.broker = n.broker and n.last_time >= r.moment
),
ordered as (
    select broker, first_time as moment, max(last) over w as since, bool_or(cut) over w as cut
    from lived window w as (partition by broker order by first_time, last rows between unbounded preceding and 1 preceding)
)
select broker, since, moment from ordered where cut and since < moment - to_seconds(1);

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
select topics from (select distinct topics from client_call where is_produce(api_name) and acks = -1 and len(topics) > 0)
where list_has_all((select coalesce(list(topic), []) from lone_topic), topics);

create temp view lone_produce as
select run_id, call_id from client_call where is_produce(api_name) and acks = -1 and topics in (from lone_topics);

create temp view span as
select min(first_time) as first_time, max(last_time) as last_time,
    epoch(max(last_time) - min(first_time)) as seconds
from captures;

-- Recording periods of a run without a pause: captures of one folder may be hours apart.
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

create temp view client_broker as
select client, min(broker) as broker from connection where client is not null group by client;

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

-- Connections of which the capture lost something, and on which calls may have waited behind a long poll, for a
-- group that is not in it, or for a quota that a missing answer named: the cause of their other calls' latency is
-- unknown.
create temp view blind as
select distinct run_id, connection_id from client_call
where (run_id, connection_id) in (
        select (run_id, connection_id) from connection where coalesce(client_missing_bytes, 0) + coalesce(broker_missing_bytes, 0) > 0
    ) and (
        (is_fetch(api_name) or is_group_wait(api_name))
        or client in (select client from client_call where throttle_time_ms > 0)
    );

-- Calls whose answers the network lost: the client asked for the bytes in vain.
create temp view never_arrived as
select run_id, call_id from client_call join connection using (run_id, connection_id)
where status = 'response_not_captured' and reason = 'segment_lost' and broker_lost_bytes > 0;

-- Runs whose captures lost so much that an answer, or the end of a connection, may be what is missing. What never arrived
-- (lost_bytes) is in no capture.
create temp view lossy as
select run_id from connection where protocol = 'kafka' group by run_id
having sum(coalesce(client_missing_bytes, 0) + coalesce(broker_missing_bytes, 0) - coalesce(client_lost_bytes + broker_lost_bytes, 0)) >= 0.01 * sum(client_bytes + broker_bytes);

-- Closes by the broker that rules of the groups doors and protocol explain.

-- Calls with versions, or APIs, that the broker's own ApiVersions responses do not offer.
create temp view not_offered as
select c.run_id, c.connection_id, c.call_id, c.client, c.broker, c.api_key, coalesce(c.api_name, 'API ' || c.api_key) as api_name, c.api_version, c.request_time,
    n.close_frame, n.last_time as closed_time, r.least, r.most
from client_call c join connection n using (run_id, connection_id)
    join (select distinct broker_address || ':' || broker_port as broker from api_ranges) b on b.broker = c.broker
    left join (
        select broker_address || ':' || broker_port as broker, api_key, min(min_version) as least, max(max_version) as most from api_ranges group by all
    ) r on r.broker = c.broker and r.api_key = c.api_key
where c.status = 'unanswered' and c.reason in ('connection_closed', 'connection_reset') and n.closed_by = 'broker' and c.api_key is not null
    and (r.most is null or c.api_version < r.least or c.api_version > r.most)
    and not exists (from call o where o.broker = c.broker and o.api_key = c.api_key and o.api_version = c.api_version and o.status = 'answered');

-- ApiVersions requests that were repeated in a lower version and then answered: clients find out so what old brokers offer.
-- Each with the next one that was answered (asof join): all pairs would take time proportional to the product of both.
create temp view asked_lower as
with refused as (
    select run_id, connection_id, call_id, client, broker, api_version, request_time from client_call
    where is_api_versions(api_name) and status = 'unanswered' and request_time is not null
),
lower_answered as (
    select o.client, o.broker, o.api_version, o.request_time
    from client_call o join (select client, broker, max(api_version) as most from refused group by client, broker) m using (client, broker)
    where is_api_versions(o.api_name) and o.status = 'answered' and o.request_time is not null and o.api_version < m.most
)
select r.run_id, r.connection_id, r.call_id
from refused r asof join lower_answered o on o.client = r.client and o.broker = r.broker and r.request_time <= o.request_time
where o.api_version < r.api_version and o.request_time <= r.request_time + to_milliseconds(10000);

-- Connections closed after bytes that no broker accepts: bytes that are not a request, or one that does not decode.
create temp view malformed as
select n.run_id, n.connection_id, n.client, n.broker, n.first_time, n.last_time, n.close_frame, b.first.frame as frame, b.first.name as name, -b.first.value as size, b.first.call_id as call_id
from (
    select run_id, connection_id, min({'frame': frame, 'name': name, 'value': value, 'call_id': call_id}) as first from anomalies
    where direction = 'client' and name in ('framing_lost', 'undecodable_request') group by run_id, connection_id
) b join connection n using (run_id, connection_id)
where n.closed_by = 'broker' and n.close_frame >= b.first.frame and coalesce(n.client_missing_bytes, 0) = 0
    and not exists (from call c where c.run_id = n.run_id and c.connection_id = n.connection_id and c.status = 'answered' and c.request_frame >= b.first.frame)
union all by name
-- from their first bytes on, at an address where others were answered
select run_id, connection_id, client, broker, first_time, last_time, close_frame, first_frame as frame, 'framing_lost' as name from connection
where protocol = 'other' and handshake and client_bytes > 0 and broker_bytes = 0 and closed_by = 'broker' and coalesce(client_missing_bytes, 0) = 0
    and broker in (select distinct broker_address || ':' || broker_port from api_calls where status = 'answered');

-- Addresses that took Kafka requests and sent no byte: they closed two or more connections, all by a FIN, as a server does
-- that has read the request (a broker at its limit of connections resets: RFC 1122 4.2.2.13); or other connections carry
-- another protocol (`spoken`); or the port is usual for one (`usual`). Left out: addresses with TLS, clients that asked in
-- a version that newer brokers refuse, and addresses that closed a connection before it asked.
create temp view never_answering as
select * from (
select broker, min(broker_port) as port, count(*) as connections, count(*) filter (closed_by = 'broker') as closed, bool_and("end" = 'fin') as orderly, sum(calls) as calls, min(first_time) as first_time,
    max(last_time) as last_time, min(client) as client, string_agg(distinct client, ', ' order by client) as clients, list(close_frame order by first_time nulls last, close_frame) as frames,
    (select max(f.what) from connections o join (select protocol, what from foreign_protocol where port is null) f on f.protocol = o.protocol where o.broker_address || ':' || o.broker_port = n.broker) as spoken,
    (select max(f.what) from foreign_protocol f where f.port = min(n.broker_port)) as usual
from connection n
where protocol in ('kafka', 'empty') and client_packets > 0 and not coalesce(refused, false) and not (client_bytes = 0 and coalesce(closed_by, 'client') = 'client')
    and broker not in (select c.broker from client_call c join least_version r using (api_key) where c.api_version < r.least)
    and broker not in (select broker_address || ':' || broker_port from connections where protocol = 'tls' or protocol = 'kafka' and broker_bytes > 0)
group by broker
having bool_and(handshake and client_bytes > 0 and broker_packets > 1 and proxy_header is null
    and coalesce(client_missing_bytes, 0) + coalesce(broker_missing_bytes, 0) + coalesce(client_retransmitted_bytes, 0) = 0)
) where connections >= 2 and closed = connections and orderly or spoken is not null or usual is not null;

-- Brokers that connections reached with a PROXY protocol header, and whether they closed those with it or those without it
-- without a byte (`wrong`: unexpected, missing; or null). Twins count: a connection that a proxy passes on is one.
create temp view proxied_broker as
select *, case when cut_with > 0 and fine_with = 0 then 'unexpected' when cut_without > 0 and fine_with > 0 and fine_without = 0 then 'missing' end as wrong
from (
    select broker_address || ':' || broker_port as broker, max(proxy_header) as version,
        count(*) filter (broker_bytes = 0 and closed_by = 'broker' and proxy_header is not null) as cut_with,
        count(*) filter (broker_bytes = 0 and closed_by = 'broker' and proxy_header is null) as cut_without,
        count(*) filter (broker_bytes > 0 and proxy_header is not null) as fine_with, count(*) filter (broker_bytes > 0 and proxy_header is null) as fine_without
    from connections where client_bytes > 0 group by broker_address, broker_port having count(proxy_header) > 0
);

create temp view explained_close as
select run_id, connection_id from not_offered
union select run_id, connection_id from asked_lower
union select run_id, connection_id from malformed
union select n.run_id, n.connection_id from connection n join proxied_broker p on p.broker = n.broker
where n.broker_bytes = 0 and case p.wrong when 'unexpected' then n.proxy_header is not null when 'missing' then n.proxy_header is null end
-- to the proxy that adds the header
union select run_id, connection_id from connection where broker_address in (select client_address from connections where proxy_header is not null and broker_bytes = 0)
union select run_id, connection_id from connection where broker in (select broker from never_answering);

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

-- Connections that a broker, or an address used as one, accepted and closed without a byte. `was_read`: it had read a request, and ended with a FIN;
-- `is_outdated`: a version that newer brokers do not take.
create temp view closed_unheard as
select n.run_id, n.connection_id, n.broker, n.client_address, n.client_id, n.client, n.protocol, n.first_time, n.first_frame,
    coalesce(n.close_time, n.last_time) as moment, epoch(coalesce(n.close_time, n.last_time) - n.first_time) * 1000 as age_ms,
    exists (from call c where c.connection_id = n.connection_id and c.run_id = n.run_id
        and (not is_api_versions(c.api_name) or n."end" = 'fin' and c.request_end_frame < n.close_frame)) as was_read,
    exists (from call c join least_version r using (api_key) where c.connection_id = n.connection_id and c.run_id = n.run_id
        and c.api_version < r.least) as is_outdated
from connection n
where handshake and closed_by = 'broker' and broker_bytes = 0 and (reset_frame is distinct from close_frame or coalesce(reset_acknowledges, true))
    and coalesce(client_missing_bytes, 0) = 0 and coalesce(broker_missing_bytes, 0) = 0
    and run_id not in (from lossy) and not coalesce(refused, false) and protocol in ('empty', 'kafka', 'undecided', 'tls')
    and not exists (from explained_close x where x.run_id = n.run_id and x.connection_id = n.connection_id)
    and (port_named or broker_port in (from usual_port) or broker_port in (select broker_port from kafka_speaker)
        or client_address in (select client_address from kafka_speaker));

-- Requests without an answer, on connections that had been silent: `silence` from the last answer to the request, or to
-- the end of the connection where that came first; and the longest silence (`survived`) after which the same connection
-- had answered, in seconds.
create temp view after_silence as
with failed as (
    select c.run_id, c.connection_id, c.call_id, c.client, c.broker, c.request_time, c.request_frame, n.close_frame, n.close_time
    from client_call c join connection n using (run_id, connection_id)
    where c.status = 'unanswered' and c.reason in ('connection_closed', 'connection_reset')
        and (n.close_frame < c.request_frame or n."end" = 'reset' and n.closed_by = 'broker')
),
heard as (
    select run_id, connection_id, response_end_time, request_time,
        max(response_end_time) over (partition by run_id, connection_id order by request_time rows between unbounded preceding and 1 preceding) as before
    from client_call where status = 'answered' and (run_id, connection_id) in (select (run_id, connection_id) from failed)
)
select f.*, h.spoken, epoch(least(f.request_time, f.close_time) - h.spoken) as silence, h.survived
from failed f join (
    select run_id, connection_id, max(response_end_time) as spoken, coalesce(max(epoch(request_time - before)), 0) as survived from heard group by run_id, connection_id
) h using (run_id, connection_id)
where h.spoken is not null;

-- Connections that were reset in the name of their broker, or client, by another machine, as far as the reset shows:
-- `sure` by its time to live; else by a reset without an acknowledgement, as a machine sends that does not know the
-- connection, although its broker had not closed it. `alive`: the broker continued within five seconds.
create temp view boxed as
with odd as (
    select *, reset_ttl_step <> 0 as sure from connection
    where "end" = 'reset' and not coalesce(refused, false) and reset_frame = close_frame and (broker_bytes > 0 or handshake)
        and (reset_ttl_step <> 0 or reset_by = 'broker' and not reset_acknowledges
            -- a host that numbers its packets has numbered the reset, too
            or reset_by = 'broker' and reset_acknowledges and reset_ident_step > 64)
),
spoken as (
    select broker, response_time as moment from call where response_time is not null and broker in (select broker from odd)
    union all
    select broker, first_time from connection where handshake and broker_packets > 0 and not coalesce(refused, false) and broker in (select broker from odd)
)
select o.run_id, o.connection_id, o.sure, coalesce(s.moment < o.close_time + to_seconds(5), false) as alive
from odd o asof left join spoken s on s.broker = o.broker and o.close_time < s.moment;

-- Responses larger than any that the client accepted: it closed the connection inside them, or reset it right after
-- them with bytes unread.
create temp view refused_response as
with last_answer as (
    select run_id, connection_id, arg_max(call_id, (response_time, response_frame)) as call_id from client_call
    where response_time is not null group by run_id, connection_id
),
taken as (
    select c.client, max(c.response_bytes) as most
    from client_call c join connection n using (run_id, connection_id) left join last_answer l using (run_id, connection_id)
    where c.response_end_time is not null and not (c.call_id = l.call_id and n."end" = 'reset' and n.closed_by = 'client')
    group by c.client
)
select c.run_id, c.call_id, c.connection_id, c.client, c.broker, c.api_name, c.request_time, n.close_time, n.close_frame,
    c.response_bytes - 4 as bytes, coalesce(t.most, 4) - 4 as most
from client_call c join connection n using (run_id, connection_id) left join last_answer l using (run_id, connection_id) left join taken t on t.client = c.client
where n.closed_by = 'client' and c.response_bytes > coalesce(t.most, 0) and (c.reason = 'cut_off_by_client'
    or n."end" = 'reset' and n.reset_frame = n.close_frame and n.reset_acknowledges and c.call_id = l.call_id
        and n.close_time - c.response_end_time between to_milliseconds(0) and to_milliseconds(200));
