-- Is it the network?
select broker_port, ending, calls, client_retransmitted_bytes + broker_retransmitted_bytes sent_again,
  client_missing_bytes + broker_missing_bytes missing, client_zero_window_ns + broker_zero_window_ns zero_window_ns,
  round_trip_ns // 1000 round_trip_us, capture_point
from connections c where calls > 0 and twin_of is null order by first_time
