-- Who writes to a topic, and who reads it?
with batches as (
  select run_id, call_id, coalesce(topic, topic_id) topic, partition, string_agg(distinct codec, ', ' order by codec) codec, bool_or(keyed) keyed, bool_or(not keyed) keyless
  from record_batches where not control group by all
),
used as (
  select coalesce(p.topic, p.topic_id) topic, p.api_name, a.client_id, a.client_address, a.api_version, a.acks, p.time, p.record_count, p.record_bytes, p.error_code,
    p.broker_address || ':' || p.broker_port broker, concat_ws(' ', c.client_software_name, c.client_software_version) software,
    b.codec, b.keyed, b.keyless
  from partitions p join api_calls a using (run_id, call_id) join connections c on c.run_id = p.run_id and c.connection_id = a.connection_id
    left join batches b on b.run_id = p.run_id and b.call_id = p.call_id and b.topic = coalesce(p.topic, p.topic_id) and b.partition = p.partition
  where p.api_name in ('Produce', 'Fetch') and a.caller = 'client' and c.twin_of is null
),
spans as (select topic, (epoch_ms(max(time)) - epoch_ms(min(time))) / 1000 as seconds from used group by topic),
served as (
  select topic, api_name, client_id, client_address, string_agg(broker, ', ' order by since, broker) leaders
  from (select topic, api_name, client_id, client_address, broker, min(time) since from used where error_code = 0 group by all) group by all
)
select topic, if(api_name = 'Produce', 'writes', 'reads') does, client_id, client_address address, max(software) software, max(api_version) "version",
  any_value(acks) acks, string_agg(distinct codec, ', ') codecs,
  case when bool_or(keyed) and bool_or(keyless) then 'some' when bool_or(keyed) then 'yes' when bool_or(keyless) then 'no' end keys, sum(record_count)::bigint records,
  round(sum(record_count) / any_value(nullif(seconds, 0)), 1) "records/s",
  sum(record_bytes)::bigint bytes, (sum(record_bytes) / nullif(sum(record_count), 0))::int "bytes/record",
  count(*) filter (error_code <> 0) errors, any_value(leaders) leaders
from used join spans using (topic) left join served using (topic, api_name, client_id, client_address) group by all order by topic, does desc, client_id, address
