"""Records real Kafka brokers and clients on loopback: `python -m tests.broker [SCENARIO...]` fills captures/.

A developer's tool, not shipped. It needs Java 17, Maven (the first run fetches Kafka's jars into a cache),
tcpdump and the right to capture. The witness of each recording is the broker's own request log: one line per
request, with what the broker read and answered.
"""
