-- Why does the group rebalance?
with one_group as (
  select run_id, client_id, client_address, any_value(group_id) group_id from api_calls where group_id is not null and client_id is not null
  group by all having count(distinct group_id) = 1
), reads as (
  select p.run_id, m.group_id, p.topic, p.partition, p.time, coalesce(p.requested_offset, p.base_offset) as begins, max(p.last_offset) over
    (partition by p.run_id, m.group_id, p.topic, p.partition order by p.time, p.call_id rows between unbounded preceding and 1 preceding) as before
  from partitions p join (from connections where twin_of is null) n using (run_id, connection_id)
    join one_group m on m.run_id = p.run_id and m.client_id = p.client_id and m.client_address = n.client_address
  where p.api_name = 'Fetch' and p.time is not null
), resumed as (
  select r.run_id, r.group_id, g.end_time, topic, partition, arg_min({'begins': begins, 'before': before}, time) as first
  from reads r asof join (from groups where end_time is not null) g on r.run_id = g.run_id and r.group_id = g.group_id and r.time >= g.end_time
  where r.begins is not null group by all
), again as (
  select run_id, group_id, end_time, sum(greatest(first.before + 1 - first.begins, 0)) as records from resumed group by all
)
select group_id, kind, generation, reason, reason_member, member_count members, duration_ns // 1000000 took_ms,
  case when first_member <> last_member then last_member end as last_member, epoch_ms(last_join_time) - epoch_ms(first_join_time) as later_by_ms,
  a.records::bigint as fetched_again
from groups g left join again a using (run_id, group_id, end_time) order by kind, begin_time
