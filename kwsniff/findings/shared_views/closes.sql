-- Connections that one side closed instead of answering, and the reasons.

-- Calls with versions, or APIs, that the broker's own ApiVersions responses do not offer. ApiVersions itself is asked in any version.
create temp view not_offered as
select c.run_id, c.connection_id, c.call_id, c.client, c.broker, c.api_key, coalesce(c.api_name, 'API ' || c.api_key) as api_name, c.api_version, c.request_time,
    n.close_frame, n.last_time as closed_time, r.least, r.most
from client_call c join connection n using (run_id, connection_id)
    join (select distinct broker_address || ':' || broker_port as broker from api_ranges) b on b.broker = c.broker
    left join (
        select broker_address || ':' || broker_port as broker, api_key, min(min_version) as least, max(max_version) as most from api_ranges group by all
    ) r on r.broker = c.broker and r.api_key = c.api_key
where c.status = 'unanswered' and c.reason in ('connection_closed', 'connection_reset') and n.closed_by = 'broker' and c.api_key is not null and not coalesce(is_api_versions(c.api_name), false)
    and (r.most is null or c.api_version < r.least or c.api_version > r.most)
    and not exists (from call o where o.broker = c.broker and o.api_key = c.api_key and o.api_version = c.api_version and o.status = 'answered');

-- ApiVersions requests that were repeated in a lower version and then answered: clients find out so what old brokers offer.
-- Each with the next one that was answered (asof join): all pairs would take time proportional to the product of both.
-- And those of versions at which this server is known to close.
create temp view asked_lower as
with refused as (
    select run_id, connection_id, call_id, client, broker, api_name, api_version, request_time from client_call
    where is_api_versions(api_name) and status = 'unanswered' and request_time is not null
),
lower_answered as (
    select o.client, o.broker, o.api_version, o.request_time
    from client_call o join (select client, broker, max(api_version) as most from refused group by client, broker) m using (client, broker)
    where is_api_versions(o.api_name) and o.status = 'answered' and o.request_time is not null and o.api_version < m.most
)
select r.run_id, r.connection_id, r.call_id
from refused r asof join lower_answered o on o.client = r.client and o.broker = r.broker and r.request_time <= o.request_time
where o.api_version < r.api_version and o.request_time <= r.request_time + to_milliseconds(10000)
union
select r.run_id, r.connection_id, r.call_id
from refused r join server_quirk q on q.broker = r.broker and q.api_name = r.api_name
where q.quirk = 'versions_refused_by_closing' and r.api_version between q.least and q.most;

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
select broker, min(broker_port) as port, count(*) as connections, count(*) filter (closed_by = 'broker') as closed, bool_and(ending = 'fin') as orderly, sum(calls) as calls, min(first_time) as first_time,
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

-- Connections that a broker, or an address used as one, accepted and closed without a byte. `was_read`: it had read a request, and ended with a FIN;
-- `is_outdated`: a version that newer brokers do not take.
create temp view closed_unheard as
select n.run_id, n.connection_id, n.broker, n.client_address, n.client_id, n.client, n.protocol, n.first_time, n.first_frame,
    coalesce(n.close_time, n.last_time) as moment, epoch(coalesce(n.close_time, n.last_time) - n.first_time) * 1000 as age_ms,
    exists (from call c where c.connection_id = n.connection_id and c.run_id = n.run_id
        and (not is_api_versions(c.api_name) or n.ending = 'fin' and c.request_end_frame < n.close_frame)) as was_read,
    exists (from call c join least_version r using (api_key) where c.connection_id = n.connection_id and c.run_id = n.run_id
        and c.api_version < r.least) as is_outdated
from connection n
where handshake and closed_by = 'broker' and broker_bytes = 0 and (reset_frame is distinct from close_frame or coalesce(reset_acknowledges, true))
    and coalesce(client_missing_bytes, 0) = 0 and coalesce(broker_missing_bytes, 0) = 0
    and run_id not in (from lacking) and not coalesce(refused, false) and protocol in ('empty', 'kafka', 'undecided', 'tls')
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
        and (n.close_frame < c.request_frame or n.ending = 'reset' and n.closed_by = 'broker')
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
    where ending = 'reset' and not coalesce(refused, false) and reset_frame = close_frame and (broker_bytes > 0 or handshake)
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
    where c.response_end_time is not null and not (c.call_id = l.call_id and n.ending = 'reset' and n.closed_by = 'client')
    group by c.client
)
select c.run_id, c.call_id, c.connection_id, c.client, c.broker, c.api_name, c.request_time, n.close_time, n.close_frame,
    c.response_bytes - 4 as bytes, coalesce(t.most, 4) - 4 as most
from client_call c join connection n using (run_id, connection_id) left join last_answer l using (run_id, connection_id) left join taken t on t.client = c.client
where n.closed_by = 'client' and c.response_bytes > coalesce(t.most, 0) and (c.reason = 'cut_off_by_client'
    or n.ending = 'reset' and n.reset_frame = n.close_frame and n.reset_acknowledges and c.call_id = l.call_id
        and n.close_time - c.response_end_time between to_milliseconds(0) and to_milliseconds(200));

-- Requests larger than any that the broker answered to this client: it closed the connection while they were on their
-- way. Of most of them only the beginning is in the capture, and no call.
create temp view cut_request as
with whole as (
    select run_id, connection_id, sum(request_bytes) as bytes, max(request_bytes) filter (status = 'unanswered') as last_bytes,
        max_by(call_id, request_frame) as call_id, max_by(status, request_frame) as status
    from client_call group by run_id, connection_id
),
taken as (select client, broker, max(request_bytes) as most from client_call where status = 'answered' group by client, broker),
sent as (
    select n.run_id, n.connection_id, n.client, n.broker, n.close_frame, n.close_time, n.sent_bytes - w.bytes as rest, w.last_bytes,
        case when n.sent_bytes = w.bytes and w.status = 'unanswered' then w.call_id end as call_id, n.sent_bytes > w.bytes or n.reset_by = 'broker' as unread, t.most
    from (select *, client_bytes + coalesce(client_missing_bytes, 0) as sent_bytes from connection) n join whole w using (run_id, connection_id) join taken t on t.client = n.client and t.broker = n.broker
    where n.closed_by = 'broker' and n.protocol = 'kafka' and n.handshake and n.close_time is not null
        and (coalesce(n.client_missing_bytes, 0) = 0 or n.run_id in (from lossy) and n.run_id not in (from lacking))
        -- of TLS, bytes of connections are those of its records
        and not coalesce(n.tls_hello, false) and coalesce(n.client_tls_records, 0) = 0
        and (n.run_id, n.connection_id) not in (select (run_id, connection_id) from malformed union all select (run_id, connection_id) from not_offered)
),
cut as (select * replace (if(call_id is null, rest, last_bytes) as rest) from sent where if(call_id is null, rest, last_bytes) > greatest(most, 4096)),
answers as (select broker, response_time from call where response_time is not null and broker in (select broker from cut))
select c.run_id, c.connection_id, c.client, c.broker, c.close_frame, c.close_time, c.call_id, c.unread, c.most - 4 as most, c.rest - 4 as bytes
-- a broker that ends does not answer afterwards
from cut c asof join answers a on a.broker = c.broker and c.close_time < a.response_time
where a.response_time < c.close_time + to_seconds(5);
