-- How far behind are the consumers?
select client_id, topic, partition, count(*) fetches, max(p.offset) read_up_to, max(high_watermark) high_watermark,
  max(lag) most_fetch_lag, arg_max(lag, time) last_fetch_lag
from partitions p where api_name = 'Fetch' and lag is not null
group by all order by client_id, topic, partition
