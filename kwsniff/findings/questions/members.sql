-- Who is in the group, and who has nothing to do?
select group_id, group_instance_id member, client_id, partitions, partition_count, left_how, reason_text
from members order by joined_time
