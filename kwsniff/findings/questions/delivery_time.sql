-- How long do records take to their readers, and where does the time go?
with way as (
  select *, coalesce(group_id, client_id) reader, epoch(fetched_time - produced_time) * 1e3 to_fetch,
    epoch(committed_time - produced_time) * 1e3 to_commit
  from deliveries where produced_time is not null and fetched_time is not null
), parts as (
  select topic, reader, sum(total_ns) whole_ns, list_reverse_sort([
    {'ns': coalesce(sum(before_wire_ns), 0), 'part': 'before the wire'}, {'ns': coalesce(sum(produce_ns), 0), 'part': 'produce'},
    {'ns': coalesce(sum(replication_ns), 0), 'part': 'replication'},
    {'ns': coalesce(sum(fetch_wait_ns), 0), 'part': 'waiting for a fetch'}, {'ns': coalesce(sum(fetch_ns), 0), 'part': 'fetch'},
    {'ns': coalesce(sum(processing_ns), 0), 'part': 'until commit'}])[1] longest
  from way group by all
)
select topic, reader, count(*) batches,
  round(quantile_cont(to_fetch, 0.5), 1) fetch_p50_ms, round(quantile_cont(to_fetch, 0.99), 1) fetch_p99_ms,
  round(quantile_cont(to_commit, 0.5), 1) commit_p50_ms, round(quantile_cont(to_commit, 0.99), 1) commit_p99_ms,
  any_value(longest.part) longest_part, round(100 * any_value(longest.ns / whole_ns))::int percent
from way join parts using (topic, reader) group by all order by fetch_p99_ms desc, topic, reader
