-- How long do records take to their readers, and where does the time go?
with way as (
  select *, coalesce(group_id, client_id) reader, epoch(fetched_time - produced_time) * 1e3 to_fetch,
    epoch(committed_time - produced_time) * 1e3 to_commit
  from deliveries where produced_time is not null and fetched_time is not null
), parts as (
  unpivot (select topic, reader, sum(columns('^(before_wire|produce|replication|fetch_wait|fetch|processing)_ns$')) from way group by all)
  on columns('_ns$') into name part value ns
), longest as (select topic, reader, arg_max(part, ns) part, max(ns) / sum(ns) share from parts group by all)
select topic, reader, count(*) batches,
  round(quantile_disc(to_fetch, 0.5), 1) fetch_p50_ms, round(quantile_disc(to_fetch, 0.99), 1) fetch_p99_ms,
  round(quantile_disc(to_commit, 0.5), 1) commit_p50_ms, round(quantile_disc(to_commit, 0.99), 1) commit_p99_ms,
  any_value(part) longest_part, round(100 * any_value(share))::int percent
from way join longest using (topic, reader) group by all order by fetch_p99_ms desc, topic, reader
