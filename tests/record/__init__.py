"""Records real clients on loopback: `python -m tests.record [NAME...]` fills captures/NAME/.

A developer's tool, not shipped. It needs tcpdump, the right to capture on loopback, and the client libraries
of the `test` extra. The broker is librdkafka's mock cluster, which keeps its own log of the requests it got:
that log, not kwsniff, says how many calls of each API a recording holds.
"""
