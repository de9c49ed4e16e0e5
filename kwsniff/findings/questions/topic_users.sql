-- Who writes to a topic, and who reads it?
with used as (
  select p.topic, p.api_name, a.client_id, a.client_address, a.api_version, a.acks, a.group_id, p.record_count, p.record_bytes, p.error_code,
    (select string_agg(distinct codec, ', ') from record_batches b where b.run_id = p.run_id and b.call_id = p.call_id) codec
  from partitions p join api_calls a using (run_id, call_id) anti join (from connections where twin_of is not null) t on t.run_id = p.run_id and t.connection_id = a.connection_id
  where p.api_name in ('Produce', 'Fetch') and a.caller = 'client'
)
select topic, if(api_name = 'Produce', 'writes', 'reads') does, client_id, client_address address, max(api_version) "version",
  any_value(acks) acks, string_agg(distinct codec, ', ') codecs, sum(record_count)::int records, sum(record_bytes)::int bytes,
  count(*) filter (error_code <> 0) errors
from used group by all order by topic, does desc, client_id, address
