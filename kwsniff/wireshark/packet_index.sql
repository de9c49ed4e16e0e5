-- The messages of calls by their packets, as tables `message` and `named`.

create temp table place as
select row_number() over (order by run_id, capture) as number, run_id, capture,
    epoch_us(first_time) as begin, epoch_us(last_time) as ending
from captures;

create temp table named_call as
with each as (
    select run_id, call_id, finding
    from findings join finding_calls using (run_id, finding_id)
    where call_id is not null
    union
    select run_id, unnest(call_ids), finding from findings
)
select run_id, call_id, string_agg(finding, ',' order by finding) as names from each group by all;

create temp view said as
select run_id, call_id, capture, 'request' as side, request_frame as first, request_end_frame as last,
    epoch_us(request_time) as time, epoch_us(request_end_time) as end_time, true as follows,
    client_address as sender, client_port as sender_port, broker_address as receiver,
    broker_port as receiver_port, api_name, api_version, latency_ns
from api_calls where request_frame is not null
union all
select run_id, call_id, capture, 'response', response_frame, response_end_frame,
    epoch_us(response_time), epoch_us(response_end_time), response_frame >= coalesce(request_frame, 0),
    broker_address, broker_port, client_address, client_port, api_name, api_version, latency_ns
from api_calls where response_frame is not null;

-- Packets are counted in each capture: a message may end in a later one than that where it began. Where its
-- first bytes were lost and sent again, they come after its last ones.
create temp view side as
with ordered as (
    select * replace (
        if(late, last, first) as first, if(late, first, last) as last,
        if(late, end_time, time) as time, if(late, time, end_time) as end_time
    )
    from (select *, coalesce(last < first and end_time <= time, false) as late from said)
)
select ordered.*, number,
    follows and coalesce(time between begin and ending, true) as begins_here,
    follows and last >= first and coalesce(end_time between begin and ending, true) as ends_here
from ordered join place using (run_id, capture);

create temp table message as
with elsewhere as (
    select s.* exclude (number), p.number, last >= first and end_time between p.begin and p.ending as whole
    from side s join place p on p.run_id = s.run_id and s.time between p.begin and p.ending
    where not begins_here
),
placed as (
    select *, ends_here as whole from side where begins_here
    union all by name
    from elsewhere
    union all by name
    select s.* exclude (number) replace (last as first, end_time as time), p.number, false as whole
    from side s join place p on p.run_id = s.run_id and s.end_time between p.begin and p.ending
    where not (begins_here and ends_here) and not coalesce(s.time between p.begin and p.ending, false)
),
shown as (
    select number, first, if(whole, last, first) as last, time, if(whole and last > first, end_time, null)
        as end_time, side, sender, sender_port, receiver, receiver_port, w.call_id, w.api_name, w.api_version, latency_ns, request_transmission_ns,
        network_ns, queue_wait_ns, broker_ns, deliberate_wait_ns, response_transmission_ns, names
    from placed w
        left join latencies l on l.run_id = w.run_id and l.call_id = w.call_id
        left join named_call n on n.run_id = w.run_id and n.call_id = w.call_id
    union all by name
    -- Findings about connections are at the first packet of each.
    select number, first_frame as first, first_frame as last, epoch_us(c.first_time) as time, 'packet' as side,
        string_agg(distinct finding, ',' order by finding) as names
    from findings f join finding_calls e using (run_id, finding_id)
        join connections c on c.run_id = e.run_id and c.connection_id = e.connection_id
        join place p on p.run_id = c.run_id and p.capture = c.capture
    where e.call_id is null and first_frame is not null
    group by all
    union all by name
    -- Of several captures it is not known in which one a packet is.
    select min(number) as number, frame as first, frame as last, 'packet' as side,
        string_agg(distinct finding, ',' order by finding) as names
    from (select run_id, finding, unnest(frames) as frame from findings) join place using (run_id)
    where run_id in (select run_id from place group by all having count(*) = 1)
    group by run_id, frame
)
select *, if(last > first, floor(log2(last - first) / 4), 0)::integer as class from shown;

create temp table named as
select number, any_value(capture) as capture, min(first) as first, arg_min(time, first) as time,
    count(*) as messages
from message join place using (number)
where time is not null
group by number order by number;
