-- Brokers that refused, resigned, went away and returned; and the clusters that they belong to.

-- A topic is of one cluster. Without ids of clusters, or with one only, all brokers are of the same.
create temp view cluster_of as
select address || ':' || port as broker, any_value(cluster_id) as cluster from servers
where (select count(distinct cluster_id) from servers) > 1 group by all;

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
