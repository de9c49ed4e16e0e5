-- What does the proxy add, and whose errors are they?
select c.broker_address || ':' || c.broker_port proxy, u.broker_address || ':' || u.broker_port broker, count(*) calls,
  round(quantile_cont(c.latency_ns - u.latency_ns, 0.5) / 1e6, 2) p50_ms,
  round(quantile_cont(c.latency_ns - u.latency_ns, 0.99) / 1e6, 2) p99_ms,
  count(*) filter (u.error_code <> 0) broker_errors,
  count(*) filter (c.error_code <> 0 and c.error_code is distinct from u.error_code) proxy_errors
from api_calls c join api_calls u on u.run_id = c.run_id and u.call_id = c.upstream_call_id
group by all order by all
