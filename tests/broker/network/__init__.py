"""Brokers and clients in network namespaces: `python -m tests.broker.network [SCENE...]`.

    client namespace            relay (a process)              hub namespace               broker namespace
    10.88.0.11 eth0 = tap  --->  waits, drops  --->  tap = port of bridge br0 = veth  --->  eth0 10.88.0.1

Distance and loss are made by the relay, packet by packet, so that TCP on both sides is the kernel's own.
Packets are recorded at the client (its eth0) and beside the brokers (br0) in the same run, by the same clock.
It needs root. Recordings with the request log's parts of time go to captures/clocks, incidents with a known
cause to captures/incidents.
"""
