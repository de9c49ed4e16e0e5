-- Why does the group rebalance, and what does it cost?
with own as (
  select run_id, client_id, client_address, min(group_id) group_id from members group by all having count(distinct group_id) = 1
), calls as (
  select run_id, call_id, connection_id, api_name, o.group_id, client_id, client_address, request_time, response_end_time, error_code
  from api_calls join own o using (run_id, client_id, client_address)
  where api_name in ('Fetch', 'OffsetFetch', 'JoinGroup', 'LeaveGroup') and request_time is not null
), said as (
  select c.*, coalesce(p.topic, p.topic_id) topic, p.partition, coalesce(p.requested_offset, p.base_offset) begins, p.last_offset, p.error_code failed
  from partitions p join calls c using (run_id, call_id) where c.api_name in ('Fetch', 'OffsetFetch')
), reads as (select * from said where api_name = 'Fetch'),
-- a member that gets a partition asks for its committed offset
got as (
  select run_id, group_id, topic, partition, client_id, client_address, request_time since from said
  where api_name = 'OffsetFetch' and failed = 0 group by all
), held as (
  select g.*, r.client_id had, r.client_address had_at, r.connection_id connection, r.request_time read_at,
    greatest(r.response_end_time, b.begin_time) read_until, b.begin_time
  from got g asof join reads r on r.run_id = g.run_id and r.group_id = g.group_id and r.topic = g.topic and r.partition = g.partition and r.request_time < g.since
    asof join groups b on b.run_id = g.run_id and b.group_id = g.group_id and b.begin_time <= g.since
), fetching as (
  select h.*, f.request_time fetching_at, f.response_end_time fetching_until
  from held h asof left join (from calls where api_name = 'Fetch') f
    on f.run_id = h.run_id and f.client_id = h.had and f.client_address = h.had_at and f.connection_id = h.connection and f.request_time < h.since
), letting as (from calls where api_name in ('JoinGroup', 'LeaveGroup')),
let_go as (
  select f.* exclude (read_until), case when a.request_time <= f.since then a.request_time when z.request_time > read_at then z.request_time
    when fetching_at < f.begin_time then fetching_until else read_until end until
  from fetching f asof left join letting a on a.run_id = f.run_id and a.group_id = f.group_id and a.client_id = f.had and a.client_address = f.had_at and a.request_time > f.fetching_at
    asof left join letting z on z.run_id = f.run_id and z.group_id = f.group_id and z.client_id = f.had and z.client_address = f.had_at and z.request_time <= f.since
), furthest as (
  select run_id, group_id, topic, partition, response_end_time, max(last_offset) over (partition by run_id, group_id, topic, partition order by response_end_time) as before
  from reads where response_end_time is not null
), stops as (
  select l.*, n.begins, r.before,
    -- a fetch session need not name it again
    least(n.request_time, if(l.client_id = l.had and l.client_address = l.had_at, s.request_time, null)) resumed
  from let_go l asof left join reads n on n.run_id = l.run_id and n.group_id = l.group_id and n.topic = l.topic and n.partition = l.partition
      and n.client_id = l.client_id and n.client_address = l.client_address and n.request_time >= l.since
    asof left join furthest r on r.run_id = l.run_id and r.group_id = l.group_id and r.topic = l.topic and r.partition = l.partition and r.response_end_time <= l.until
    asof left join (from calls where api_name = 'Fetch') s on s.run_id = l.run_id and s.connection_id = l.connection and s.request_time >= l.since
), ends as (
  select run_id, coalesce(p.topic, p.topic_id) topic, p.partition, c.response_end_time as time, max(greatest(p.high_watermark, p.last_offset + 1))
    over (partition by run_id, coalesce(p.topic, p.topic_id), p.partition order by c.response_end_time) log_end
  from partitions p join api_calls c using (run_id, call_id) where p.api_name in ('Fetch', 'Produce') and p.error_code = 0 and c.response_end_time is not null
), costs as (
  select s.run_id, s.group_id, s.begin_time, count(*) partitions, epoch_ms(max(s.resumed - s.until)) stopped_ms,
    sum(greatest(before + 1 - begins, 0))::bigint fetched_again, sum(y.log_end - x.log_end)::bigint lag_added
  from stops s asof left join ends x on x.run_id = s.run_id and x.topic = s.topic and x.partition = s.partition and x.time <= s.until
    asof left join ends y on y.run_id = s.run_id and y.topic = s.topic and y.partition = s.partition and y.time <= s.resumed
  group by all
)
select group_id, kind, generation, reason, reason_member, member_count members, duration_ns // 1000000 took_ms,
  last_member, epoch_ms(last_join_time) - epoch_ms(first_join_time) later_by_ms, partitions, stopped_ms, fetched_again, lag_added
from groups left join costs using (run_id, group_id, begin_time) order by kind, begin_time
