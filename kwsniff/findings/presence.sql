-- One row: what there is at all, so that rules about what is not there are not asked. A rule's `when` is over it.

create temp table presence as
select c.*, e.*, n.*, l.*, p.*, b.*, g.*, t.*
from (
    select count(*) as calls,
        coalesce(bool_or(status = 'unanswered'), false) as unanswered,
        coalesce(sum(throttle_time_ms), 0) as throttled_ms,
        coalesce(bool_or(caller = 'replica'), false) as replicas,
        coalesce(bool_or(acks = -1), false) as waits_for_replicas,
        count(*) filter (api_name = 'Produce') as produces,
        count(*) filter (api_name in ('Fetch', 'ShareFetch')) as fetches,
        count(*) filter (api_name = 'ShareFetch') as share_fetches,
        count(*) filter (api_name = 'Metadata') as metadatas,
        count(*) filter (api_name = 'LeaveGroup') as leaves
    from api_calls
) c, (
    select coalesce(list(distinct error_code), []) as errors from error_codes
) e, (
    select count(*) as connections,
        coalesce(bool_or(refused), false) as refused,
        coalesce(bool_or(broker_packets = 0 and client_bytes = 0), false) as silent,
        coalesce(bool_or(closed_by = 'broker'), false) as closed_by_broker,
        coalesce(bool_or(protocol = 'tls'), false) as sealed,
        coalesce(bool_or(client_packets = 0 or broker_packets = 0), false) as one_sided,
        coalesce(max(greatest(client_zero_window_ns, broker_zero_window_ns)), 0) as zero_window_ns,
        coalesce(max(greatest(round_trip_ns, client_round_trip_ns, broker_round_trip_ns)), 0) as round_trip_ns,
        coalesce(sum(client_retransmitted_bytes + broker_retransmitted_bytes), 0) as retransmitted_bytes,
        coalesce(bool_or(duplicate_packets > 0 or twin_of is not null), false) as duplicates
    from connections
) n, (
    select coalesce(max(broker_ns + queue_wait_ns), 0) as longest_ns, coalesce(max(total_ns), 0) as longest_call_ns,
        count(*) filter (broker_ns >= 50000000) as slow_calls
    from latencies
) l, (
    select coalesce(bool_or(api_name = 'OffsetCommit'), false) as commits,
        coalesce(bool_or(last_stable_offset < high_watermark), false) as held_back
    from partitions
) p, (
    select coalesce(sum(bytes) filter (codec = 'none' and api_name = 'Produce'), 0) as plain_bytes,
        count(distinct codec) as codecs
    from record_batches
) b, (
    select count(*) as rebalances from groups
) g, (
    select count(*) as transactions from transactions
) t;
