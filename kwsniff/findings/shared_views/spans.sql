-- What time the captures show, and what they lost.

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

-- The same, without runs that lack no packet: a short snaplen cuts bytes, and leaves every packet with its time and size.
create temp view lacking as
select run_id from lossy l where exists (
    from connection n left join captures c using (run_id, capture)
    where n.run_id = l.run_id and n.protocol = 'kafka' and n.client_missing_bytes + n.broker_missing_bytes > 0
        and not coalesce(c.snaplen between 1 and 65534 and coalesce(c.dropped_by_kernel, 0) = 0 and not c.truncated and not c.damaged
            and c.response_not_captured_bytes + c.response_only_bytes + c.torn_frames_bytes + c.lost_framing_bytes < 0.01 * c.tcp_payload_bytes, false));
