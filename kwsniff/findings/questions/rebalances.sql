-- Why does the group rebalance?
select group_id, kind, generation, reason, reason_member, member_count members, duration_ns // 1000000 took_ms
from groups order by kind, begin_time
