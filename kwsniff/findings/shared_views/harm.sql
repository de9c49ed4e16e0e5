-- What calls and connections suffered, or why it is routine: `harm` is null where it is. All others are fine.
-- docs/findings.md has the words. These views are made where they are asked for (harm.py).

-- Errors of normal operation. `always`: a client asks so to find something out, and no success needs to follow. A success
-- has to follow the others within the time of error_cause.
create temp view routine_error as from (values
    (35, 'version_fallback', false), (79, 'member_id_required', false), (36, 'topic_exists', true), (27, 'rebalance', false), (22, 'rebalance', false), (25, 'rebalance', false),
    (113, 'rebalance', false), (51, 'concurrent_transactions', false), (3, 'topic_being_created', false), (5, 'topic_being_created', false), (100, 'topic_being_created', false),
    (6, 'leader_moved', false), (74, 'leader_moved', false), (75, 'leader_moved', false), (14, 'coordinator_moved', false), (15, 'coordinator_moved', false), (16, 'coordinator_moved', false),
    (70, 'fetch_session_renewed', false), (71, 'fetch_session_renewed', false), (106, 'fetch_session_renewed', false), (122, 'share_session_renewed', false), (123, 'share_session_renewed', false),
    (72, 'listener_not_found', true), (84, 'nothing_to_do', true), (85, 'nothing_to_do', true), (117, 'subscription_renewed', false)) v(error_code, routine, always);

create temp view last_moment as select run_id, max(ends) as ends from stretch group by run_id;

-- The errors of a call, and whether they passed: the same work of the same client succeeded soon enough, or the capture
-- ended too early to tell. The same work is the same API on the same partition, any call for the group, or the same API. Other errors are
-- harm: the work was not done, even if it is done later.
create temp view troubled_refusal as
with refused as materialized (
    select r.run_id, r.connection_id, r.call_id, r.client, r.client_address, r.broker, r.api_name, r.response_time as time, r.error_code, coalesce(r.error_name, 'error ' || r.error_code) as error, case when q.broker is null then v.routine else 'normal_at_server' end as routine,
        -- ApiVersions finds the version out; who describes groups asks in the new way first
        coalesce(v.always, false) or q.broker is not null or r.error_code = 35 and is_api_versions(r.api_name) or r.error_code = 69 and is_describe_group(r.api_name) as always,
        case when r.error_code = 35 then null when v.routine is not null then coalesce(k.passes, 10) else k.passes end as passes,
        case when is_produce(r.api_name) or is_log_fetch(r.api_name) or is_list_offsets(r.api_name) then coalesce(r.topic, r.topic_id) end as of_topic, coalesce(r.partition, -1) as partition,
        case when of_topic is not null then r.api_name || ' ' || of_topic || '-' || coalesce(r.partition, -1)
            when v.routine in ('rebalance', 'member_id_required') and not is_commit(r.api_name) then ' group' else r.api_name end as work
    from refusal r left join error_cause k using (error_code) left join routine_error v using (error_code)
        left join (from server_quirk where quirk = 'error') q on q.broker = r.broker and q.api_name = r.api_name and q.error_code = r.error_code
),
-- where a success decides, as the capture lasted long enough; successes are looked up for these alone
sought as (
    select distinct client, api_name, of_topic, partition, work from refused left join last_moment using (run_id)
    where passes is not null and not always and not coalesce(ends <= time + to_seconds(passes::bigint), false)
),
done as (
    select p.client, s.work, p.time
    from partition_call p join sought s on s.client = p.client and s.api_name = p.api_name and s.of_topic = coalesce(p.topic, p.topic_id) and s.partition = p.partition
    where p.error_code = 0 and p.time is not null
    union all
    select client, api_name, response_end_time from client_call semi join (select client, api_name from sought where work = api_name) using (client, api_name)
    where coalesce(error_code, 0) = 0 and response_end_time is not null
    union all
    select client, ' group', response_end_time from client_call semi join (select client from sought where work = ' group') using (client)
    where coalesce(error_code, 0) = 0 and response_end_time is not null and (group_id is not null or is_join(api_name))
)
select t.* exclude (of_topic, partition), always or coalesce(passes is not null and least(d.time, m.ends) <= t.time + to_seconds(passes::bigint), false) as passed
from refused t asof left join done d on d.client = t.client and d.work = t.work and t.time <= d.time
    left join last_moment m on m.run_id = t.run_id
where t.time is not null;

create temp view known_close as from explained_close;

create temp view whole_connection as
select *, coalesce(client_missing_bytes, 0) + coalesce(broker_missing_bytes, 0) > 0 or run_id in (from lacking) as lost from connection;

-- Calls without a response. `known`: their connection ended as explained_close knows.
create temp view troubled_wait as
with waits as (
    select c.run_id, c.connection_id, c.call_id, c.client, c.client_address, c.broker, coalesce(c.api_name, 'API ' || c.api_key) as api_name, c.reason, n.closed_by, n.ending, n.lost,
        (c.run_id, c.connection_id) in (select (run_id, connection_id) from known_close) as known,
        c.request_time as time, case when c.reason in ('connection_closed', 'connection_reset') then coalesce(case when n.close_time >= c.request_time then n.close_time end, n.last_time) else m.ends end as until,
        c.request_end_time is null as incomplete, coalesce(is_fetch(c.api_name) or is_group_wait(c.api_name), false) as may_wait
    from client_call c join whole_connection n using (run_id, connection_id) left join last_moment m using (run_id)
    where c.status = 'unanswered' and c.request_time is not null
    union all by name
    -- a response that a client got a part of, for so long that it gave up
    select c.run_id, c.connection_id, c.call_id, c.client, c.client_address, c.broker, coalesce(c.api_name, 'API ' || c.api_key) as api_name, 'connection_closed' as reason, 'client' as closed_by, n.ending, n.lost,
        false as known, c.response_time as time, coalesce(n.close_time, n.last_time) as until, false as incomplete, false as may_wait
    from client_call c join whole_connection n using (run_id, connection_id)
    where c.reason = 'cut_off_by_client' and epoch(coalesce(n.close_time, n.last_time) - c.response_time) >= 5
),
judged as (
    select *, not may_wait and epoch(until - time) >= 5 as plain,
        case when lost or (run_id, call_id) in (select (run_id, call_id) from asked_lower) then null
            when incomplete and ending = 'reset' then 'incomplete'
            when reason = 'passed_over' or reason in ('connection_closed', 'connection_reset') and closed_by = 'broker' then 'unanswered'
            when may_wait or epoch(until - time) < 5 then null
            when reason in ('connection_closed', 'connection_reset') and closed_by = 'client' then 'gave_up'
            else 'unanswered' end as harm,
        case when lost then 'not_captured' when reason = 'open_at_end' then 'in_flight_at_end' when (run_id, call_id) in (select (run_id, call_id) from asked_lower) then 'version_fallback'
            when closed_by = 'client' then 'closed_while_waiting' else 'in_flight_at_end' end as routine
    from waits
)
select run_id, connection_id, call_id, client, client_address, broker, api_name, time, until, harm, case when harm is null then routine end as routine, plain, known from judged;

-- Calls that took far longer than their like. Some servers hold back what a quota throttles.
create temp view troubled_late as
with held as (
    select c.run_id, c.call_id from client_call c join server_quirk q using (broker) where q.quirk = 'throttle_held' and c.throttle_time_ms > 0
),
busy as not materialized (
    -- a reader may close its fetch session behind its own long poll: what it waits for that is not harm
    select *, total_ns - coalesce(deliberate_wait_ns, 0) - case when is_log_fetch(api_name) and queued_behind_wait in ('long_poll', 'data') then coalesce(queue_wait_ns, 0) else 0 end as ns from latency
    where total_ns is not null and coalesce(wait, 'none') not like '%possible' and not is_group_wait(api_name)
),
long as (select * from busy where ns >= 1e9),
-- 20 calls of the same kind show what one usually takes; a cold start, a far client or a burst is less than 20 times that
usual as (
    select client, broker, api_name, median(ns) as ns from busy where (client, broker, api_name) in (select (client, broker, api_name) from long)
    group by client, broker, api_name having count(*) >= 20
)
select b.run_id, b.connection_id, b.call_id, b.client, n.client_address, b.broker, b.api_name, b.request_time as time, b.response_end_time as until
from long b join usual u using (client, broker, api_name) join whole_connection n on n.run_id = b.run_id and n.connection_id = b.connection_id
where b.ns >= 20 * u.ns and not n.lost and (b.run_id, b.call_id) not in (from held) and (b.run_id, b.call_id) in (select (run_id, call_id) from client_call);

-- Fetches of a reader that makes no progress: the first delivery of an offset is none of them.
create temp view troubled_read as
with listed as (
    select run_id, connection_id, case when kind = 'again' then 'repeated' else 'stuck' end as harm, unnest(case when kind = 'again' then call_ids[2:] else call_ids end) as call_id from standing_read
)
select c.run_id, c.connection_id, c.call_id, c.client, c.client_address, c.broker, c.api_name, c.request_time as time, c.response_end_time as until, max(l.harm) as harm
from listed l join client_call c using (run_id, connection_id, call_id) group by all;

-- A batch that is written again after a call that may have stored it: without a producer id it may be stored twice. With one
-- the broker drops the second copy, so that one retry is harmless; more of them are the same work again.
create temp view troubled_write as
with lost as (
    select run_id, call_id from troubled_wait where harm is not null and is_produce(api_name)
    union
    select run_id, call_id from troubled_refusal where not passed and error_code in (7, 20) and is_produce(api_name)
),
of_lost as (select distinct coalesce(topic, topic_id) as topic, partition from batch where (run_id, call_id) in (from lost)),
sent as (
    select c.run_id, c.connection_id, c.call_id, c.client, c.client_address, c.broker, c.api_name, c.request_time as time, c.response_end_time as until, (c.run_id, c.call_id) in (from lost) as lost,
        b.producer_id, coalesce(b.topic, b.topic_id) as topic, b.partition, b.record_count, b.bytes,
        case when b.producer_id >= 0 then [b.producer_id, b.producer_epoch, b.base_sequence] else [b.bytes, b.record_count, epoch_us(b.first_timestamp), epoch_us(b.max_timestamp)] end as batch
    from batch b join of_lost l on l.topic = coalesce(b.topic, b.topic_id) and l.partition = b.partition join client_call c on c.run_id = b.run_id and c.call_id = b.call_id
    where c.acks is not null and c.request_time is not null and b.first_timestamp is not null
),
counted as (
    select *, count(*) over before as sent_before, bool_or(lost) over before as lost_before
    from sent window before as (partition by client, client_address, topic, partition, batch order by time, call_id rows between unbounded preceding and 1 preceding)
)
select run_id, connection_id, call_id, client, client_address, broker, api_name, time, until, 'repeated' as harm
from counted where lost_before and sent_before >= case when producer_id >= 0 then 2 else 1 end group by all;

-- A call has one word: no response, then an error, then its time, then that it was in vain.
create temp view troubled_call as
with found as (
    select *, null as error_code, null as error, 1 as rank from troubled_wait
    union all by name
    select run_id, connection_id, call_id, client, client_address, broker, api_name, time, time as until, case when not passed then 'refused' end as harm,
        case when passed then coalesce(routine, 'passing_error') end as routine, false as plain, false as known, error_code, error, 2 as rank from troubled_refusal
    union all by name
    select run_id, connection_id, call_id, client, client_address, broker, api_name, time, until, 'late' as harm, null as routine, false as plain, false as known, 3 as rank from troubled_late
    union all by name
    select *, null as routine, false as plain, false as known, case harm when 'stuck' then 4 else 5 end as rank from (from troubled_read union all by name from troubled_write)
    union all by name
    select run_id, connection_id, call_id, client, client_address, broker, coalesce(api_name, 'API ' || api_key) as api_name, coalesce(request_time, response_time) as time, response_end_time as until,
        null as harm, 'not_captured' as routine, false as plain, false as known, 6 as rank from client_call where status in ('response_not_captured', 'response_only')
    union all by name
    select run_id, connection_id, call_id, client, client_address, broker, coalesce(api_name, 'API ' || api_key) as api_name, request_time as time, response_end_time as until, null as harm, 'between_brokers' as routine, false as plain, false as known, 7 as rank
    from call where caller <> 'client' and (status = 'unanswered' or error_code <> 0)
)
-- one row for each call, harm first
select run_id, call_id, one.* from (
    select run_id, call_id, min({'fine': harm is null, 'rank': rank, 'error_code': error_code, 'routine': routine, 'error': error, 'connection_id': connection_id, 'client': client, 'client_address': client_address, 'broker': broker,
        'api_name': api_name, 'time': time, 'until': until, 'harm': harm, 'plain': plain, 'known': known}) as one
    from found group by run_id, call_id
);

create temp view troubled_connection as
with opened as (
    select client_address, broker, first_time as moment from connection where broker_bytes > 0 and not coalesce(refused, false) and first_time is not null
),
asked as (
    select client_address, max(response_time) as moment from client_call where response_time is not null group by client_address
),
-- a client that ends may reset a long poll, or what it no longer waits for
cut as (
    select distinct run_id, connection_id from client_call c join connection n using (run_id, connection_id)
    where c.status = 'unanswered' and c.reason = 'connection_reset' and (n.closed_by = 'broker' or c.request_end_time is null
        or not coalesce(is_fetch(c.api_name) or is_group_wait(c.api_name), false) and epoch(coalesce(n.close_time, n.last_time) - c.request_time) >= 5)
),
judged as (
    select n.*, coalesce(n.close_time, n.last_time) as until, coalesce(n.client_missing_bytes, 0) + coalesce(n.broker_missing_bytes, 0) > 0 or n.run_id in (from lossy) as lost,
        (n.run_id, n.connection_id) in (select (run_id, connection_id) from known_close) as known,
        n.port_named or n.broker in (select broker from kafka_speaker) or coalesce(a.known, false) as is_kafka,
        coalesce(n.refused, false) or n.broker_packets = 0 and n.client_bytes = 0 and n.syn_retries is not null as shut,
        -- soon after, the same client reached the broker, or worked with another one
        coalesce(o.moment <= n.last_time + to_seconds(30), false) as came_in, coalesce(w.moment > n.last_time, false) as worked, m.ends
    from connection n left join asked_for a using (run_id, connection_id) left join asked w on w.client_address = n.client_address left join last_moment m on m.run_id = n.run_id
        asof left join opened o on o.client_address = n.client_address and o.broker = n.broker and n.first_time < o.moment
),
named as (
    select *, case
        when not is_kafka or protocol not in ('empty', 'kafka', 'tls', 'undecided') and not shut then 'other_protocol'
        when lost then 'not_captured'
        when refused and came_in then 'opened_again'
        when shut and worked then 'other_broker_used'
        when shut and not coalesce(refused, false) and icmp_error is null and epoch(ends - first_time) < 3 then 'opening_at_end' end as routine,
        case when shut then 'not_opened'
        when tls_hello and tls_handshake <> 'complete' and (ending in ('fin', 'reset') and closed_by is not null and (closed_by = 'broker' or tls_handshake <> 'client_hello')
            or tls_alert not in ('close_notify', 'user_canceled')) then 'handshake_failed'
        when (run_id, connection_id) in (from cut) then 'reset'
        when handshake and closed_by = 'broker' and protocol in ('empty', 'kafka', 'undecided') and calls = 0 and epoch(until - first_time) < 5 then 'ended_early'
        when handshake and syn_retries > 0 and connect_ns >= 900000000 then 'opened_late' end as suffered
    from judged
)
select run_id, connection_id, client, client_address, broker, first_time as time, until, close_frame as frame, known,
    case when routine is null then suffered end as harm, case when suffered is not null or routine in ('other_protocol', 'not_captured') then routine end as routine
from named where suffered is not null or routine in ('other_protocol', 'not_captured')
