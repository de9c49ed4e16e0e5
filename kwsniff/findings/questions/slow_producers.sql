-- Why are producers slow?
select client_id, api_name, mode(wait) filter (wait <> 'none') waits, count(*) calls,
  round(avg(total_ns) / 1e6, 1) total_ms,
  round(avg(network_ns + request_transmission_ns + response_transmission_ns) / 1e6, 1) network_ms,
  round(avg(queue_wait_ns) / 1e6, 1) queue_ms,
  round(avg(broker_ns) / 1e6, 1) broker_ms,
  round(avg(deliberate_wait_ns) / 1e6, 1) wait_ms
from latencies anti join (from connections where twin_of is not null) using (run_id, connection_id)
where api_name in ('Produce', 'Fetch') group by all order by total_ms desc
