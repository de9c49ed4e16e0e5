-- How far behind are the consumers?
with fetched as (
  select client_id, topic, partition, arg_max(lag, time) lag
  from partitions anti join (from connections where twin_of is not null) using (run_id, connection_id)
  where api_name = 'Fetch' and lag is not null group by all
)
select c.group_id, c.client_id, c.topic, c.partition, count(*) commits, arg_max(c.committed_offset, c.time) as committed,
  arg_max(c.high_watermark, c.time) high_watermark, arg_max(c.lag, c.time) last_lag, max(c.lag) most_lag,
  any_value(f.lag) last_fetch_lag,
  round(arg_max(c.lag_ns, c.time) / 1e9, 3) last_lag_s, round(max(c.lag_ns) / 1e9, 3) most_lag_s
from commits c left join fetched f using (client_id, topic, partition)
group by all order by all
