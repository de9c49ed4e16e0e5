-- Why does the group rebalance?
with reads as (
  select run_id, m.group_id, topic, partition, time, coalesce(requested_offset, base_offset) begins, max(last_offset) over
    (partition by run_id, m.group_id, topic, partition order by time rows between unbounded preceding and 1 preceding) as before
  from partitions join (select run_id, client_id, min(group_id) group_id from members group by all having count(distinct group_id) = 1) m
    using (run_id, client_id) where api_name = 'Fetch'
), again as (
  select group_id, end_time, arg_min(greatest(before + 1 - begins, 0), time) records
  from reads asof join (select *, end_time as time from groups) using (run_id, group_id, time)
  group by group_id, end_time, topic, partition
)
select group_id, kind, generation, reason, reason_member, member_count members, duration_ns // 1000000 took_ms,
  last_member, epoch_ms(last_join_time) - epoch_ms(first_join_time) later_by_ms, records::bigint fetched_again
from groups left join (select group_id, end_time, sum(records) records from again group by all) using (group_id, end_time) order by kind, begin_time
