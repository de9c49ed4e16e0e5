-- Does compression pay?
select codec, count(*) batches, sum(record_count)::int records, sum(bytes)::int bytes,
  sum(uncompressed_bytes)::int uncompressed, round(sum(bytes) / sum(record_count), 1) bytes_per_record
from record_batches anti join (from connections where twin_of is not null) using (run_id, connection_id)
where api_name = 'Produce' group by all order by bytes_per_record
