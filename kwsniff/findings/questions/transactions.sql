-- What becomes of the transactions?
select transactional_id, producer_id, producer_epoch epoch, outcome, topics, record_count records,
  duration_ns // 1000000 took_ms, error_name
from transactions order by begin_time
