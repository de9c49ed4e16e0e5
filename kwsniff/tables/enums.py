"""Meanings of the words of closed lists, for the docs and the screen; the core declares the lists."""

from collections.abc import Mapping
from typing import Final

CORE_WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "status": {
        "answered": "the capture has both request and response",
        "no_response_expected": "a Produce with acks=0: the broker sends no response",
        "unanswered": "the broker did not respond: its bytes have no gap where the response would be",
        "response_not_captured": "the broker may have responded: the capture misses bytes of the broker",
        "response_only": "a response whose request is not in the capture",
    },
    "reason": {
        "capture_began_later": "the capture began after the connection",
        "segment_lost": "the capture misses a TCP segment",
        "cut_by_snaplen": "the capture keeps only the beginning of packets",
        "connection_reset": "the connection was reset",
        "connection_closed": "the connection was closed",
        "connection_reused": "a new connection with the same addresses and ports began",
        "connection_evicted": "kwsniff dropped the connection: too many were open at the same time",
        "one_direction": "the capture shows only one direction of the connection",
        "open_at_end": "the capture ended first",
        "undecodable": "the bytes do not match the layout of the API and version",
        "unknown_api": "no known Kafka release has this API",
        "unknown_version": "no known Kafka release has this version of the API",
        "passed_over": "the broker responded to later calls first",
        "limit_reached": "one of kwsniff's limits was reached",
        "segment_not_captured": "the capture misses TCP data that the receiver acknowledged",
        "not_decrypted": "TLS records that cannot be decrypted because earlier data is missing",
        "cut_off_by_client": "the client closed the connection inside the response",
        "not_kafka": "the other side responded in another protocol",
    },
    "protocol": {
        "empty": "no payload",
        "kafka": "Kafka",
        "tls": "TLS: encrypted",
        "http": "HTTP",
        "ssh": "SSH",
        "proxy": "PROXY protocol",
        "socks": "SOCKS5 without an established tunnel",
        "other": "none of these",
        "undecided": "too few bytes to recognise",
        "zookeeper": "ZooKeeper",
        "amqp": "AMQP",
        "redis": "Redis",
        "mysql": "MySQL",
        "postgresql": "PostgreSQL",
        "mongodb": "MongoDB",
        "cassandra": "Cassandra",
        "mqtt": "MQTT",
        "smtp": "SMTP or FTP",
        "pop3": "POP3",
        "imap": "IMAP",
        "ldap": "LDAP",
        "nats": "NATS",
        "memcached": "memcached",
        "pulsar": "Pulsar",
        "rocketmq": "RocketMQ",
        "openwire": "OpenWire (ActiveMQ)",
        "stomp": "STOMP",
        "elasticsearch": "Elasticsearch (transport)",
        "oracle": "Oracle",
        "sqlserver": "SQL Server",
        "rdp": "RDP",
        "vnc": "VNC",
        "smb": "SMB",
        "telnet": "Telnet",
    },
    "proxy_header": {
        "v1": "version 1, text",
        "v2": "version 2, binary",
    },
    "tls_handshake": {
        "client_hello": "the client sent its ClientHello; no ServerHello was captured",
        "server_hello": "the broker sent its ServerHello; the client sent nothing after its ClientHello",
        "client_key": "the client sent its key (and certificate, if requested), but no Finished; up to "
        "TLS 1.2",
        "client_finished": "the client sent its Finished; the broker sent nothing after it, or only an alert",
        "complete": "both sides sent Finished",
    },
    "tls_client_certificate": {
        "none": "the client sent an empty certificate list",
        "sent": "the client sent a certificate",
    },
    "role_source": {
        "handshake": "by the TCP handshake",
        "content": "by the sender of requests",
        "port": "by the port numbers",
        "unknown": "unknown: the side with the higher port is called client",
    },
    "ending": {
        "open": "still open when the capture ended",
        "fin": "closed",
        "reset": "reset",
        "reused": "a new connection with the same addresses and ports began",
        "evicted": "dropped: too many were open at the same time",
    },
    "direction": {
        "client": "sent by the client",
        "broker": "sent by the broker",
    },
    "caller": {
        "client": "a client",
        "replica": "a broker that fetches as a follower",
        "broker": "a broker or controller: uses an API that only they use",
    },
    "wait": {
        "none": "no deliberate wait",
        "long_poll": "a fetch waited for data until max_wait_ms ended (a broker's timer is up to 5 ms "
        "late), and returned less than min_bytes",
        "long_poll_possible": "a fetch returned less than min_bytes after more than 5 ms and before "
        "max_wait_ms "
        "ended: another event ended its wait for data",
        "data": "a fetch waited for records that did not exist yet: their timestamps are within the wait, or "
        "their Produce arrived during the wait, on any connection of the capture",
        "data_possible": "a fetch that may wait returned records after more than 5 ms, and the capture "
        "does not show when they were written",
        "transaction": "a fetch with read_committed waited for a transaction to end: its end marker was "
        "written within the wait",
        "transaction_possible": "a fetch with read_committed returned records of a transaction after more "
        "than 5 ms, and the capture does not show when the transaction ended",
        "group": "a member waited for other members: their JoinGroup or SyncGroup of that generation "
        "arrived just before the response; or a new group waited for its first members "
        "(group.initial.rebalance.delay.ms)",
        "group_possible": "JoinGroup or SyncGroup took more than 5 ms: the coordinator responds when the "
        "other members have sent theirs",
        "replicas": "a Produce with acks=-1 waited for followers: captured fetches of the followers show "
        "when they had all records; or the error shows that they never had",
        "replicas_possible": "a Produce with acks=-1 took more than 3 ms: part of broker_ns may be a wait "
        "for followers, which the capture cannot show; not used if Metadata lists a single replica",
        "throttle": "a quota: the broker delayed the response (before KIP-219) or muted the connection",
        "authentication_delay": "the broker delays the response to a failed authentication "
        "(connection.failed.authentication.delay.ms)",
        "authentication_delay_possible": "the same, but with a delay below the default of 100 ms",
    },
    "capture_point": {
        "client": "at or near the client",
        "broker": "at or near the broker",
        "between": "between client and broker: neither side responds much faster than the other",
        "same_machine": "on the host of both client and broker: both acknowledge within 0.1 ms",
        "unknown": "too few bytes to recognise",
    },
    "tunnel": {
        "vxlan": "VXLAN (RFC 7348), with GPE",
        "geneve": "Geneve (RFC 8926)",
        "gre": "GRE (RFC 2784, 2890): IP, MPLS or Ethernet inside",
        "erspan": "ERSPAN type I, II or III: a switch's mirror session, inside GRE",
        "gtpu": "GTP-U (3GPP TS 29.281)",
        "ipip": "IP directly inside IP, of any two versions",
    },
    "tcp_event": {
        "retransmission": "bytes that had been sent before",
        "zero_window": "the sender of the packet has a full receive buffer",
        "zero_window_end": "the receive buffer has space again",
        "refused": "a reset in response to a SYN",
        "reset": "a reset that ended the connection",
        "syn_again": "a retransmitted SYN or SYN-ACK",
        "duplicate_acks": "three or more consecutive acknowledgements for the same missing byte",
    },
    "stall_direction": {
        "to_broker": "the request",
        "to_client": "the response",
    },
    "stall_cause": {
        "nagle_delayed_ack": "a small last segment waited for the acknowledgement of the one before (Nagle)",
        "receiver_window": "the receiver's window had no room for the next segment",
        "zero_window": "the receiver's window was closed",
        "congestion_window": "the sender waited for acknowledgements: slow start, also after a pause",
        "fast_retransmission": "a lost segment, retransmitted when the receiver asked for it",
        "retransmission_timeout": "a lost segment, retransmitted when the sender's timer expired",
        "path_mtu": "segments too large for the path",
        "link_queue": "the queue of a full link: the round trip grew",
        "sender_idle": "the sending application wrote nothing",
        "unknown": "the capture does not tell",
    },
    "icmp_error": {
        "net_unreachable": "no router has a route to that network",
        "host_unreachable": "no host with that address responds in its network",
        "protocol_unreachable": "the host does not support TCP",
        "port_unreachable": "the host, or a firewall on its behalf, rejects the port",
        "prohibited": "a firewall or router reports that it is prohibited",
        "too_big": "the packet exceeds the MTU of a link on the path and must not be fragmented",
        "time_exceeded": "the packet passed too many routers, for example in a loop",
        "other": "another reason why the packet was not delivered",
    },
    "codec": {
        "none": "not compressed",
        "gzip": "gzip",
        "snappy": "snappy",
        "lz4": "LZ4",
        "zstd": "Zstandard",
        "unknown_5": "codec 5, unknown to all Kafka releases",
        "unknown_6": "codec 6, unknown to all Kafka releases",
        "unknown_7": "codec 7, unknown to all Kafka releases",
    },
    "timestamp_type": {
        "create_time": "the producer",
        "log_append_time": "the broker, when it wrote the batch",
        "none": "none: message format 0 has no timestamps",
    },
    "bin": {
        "answered": "in calls with request and response",
        "no_response_expected": "in Produce requests with acks=0",
        "unanswered": "in requests without a response from the broker",
        "response_not_captured": "in requests whose response may be missing",
        "response_only": "in responses whose request is not in the capture",
        "sasl_tokens": "bare tokens of SASL authentication",
        "torn_frames": "in messages with missing bytes",
        "unfinished": "in messages still incomplete at the end of the connection or the capture",
        "continued": "in messages that began before the capture",
        "lost_framing": "where message boundaries are unknown",
        "retransmitted": "retransmitted",
        "out_of_window": "outside the window of the stream",
        "after_end": "after the end of the connection",
        "not_kafka": "of connections with other protocols",
        "undecided": "of connections too short to recognise",
        "memory_refused": "dropped because the operating system refused memory",
        "captured_twice": "in duplicates of captured packets, which are not retransmissions",
        "keep_alive": "in keep-alives: the last byte that the receiver had acknowledged, or a garbage byte",
        "filled": "that it misses, from another place; other columns count them, too",
    },
    "anomaly": {
        "segment_not_captured": "the capture misses TCP data that the receiver acknowledged",
        "segment_lost": "TCP data is missing, and the receiver never acknowledged it",
        "packet_cut": "the capture keeps only the beginning of the packet",
        "segments_overlap": "segments with the same part of the stream have different boundaries",
        "segment_out_of_window": "a segment outside the window of the stream; ignored",
        "data_after_end": "data after the end of the connection; ignored",
        "held_limit": "too much data waited for a missing segment",
        "conflicting_retransmission": "a retransmission with different content; the first content counts",
        "framing_lost": "message boundaries lost",
        "framing_resumed": "message boundaries found again",
        "frame_torn": "a message with missing bytes",
        "frame_kept_limit": "a message too long to keep; only its size counts",
        "undecodable_request": "a request that does not match its layout",
        "undecodable_response": "a response that does not match its layout",
        "unknown_api": "an API unknown to all Kafka releases",
        "unknown_version": "a version unknown to all Kafka releases",
        "unexpected_response": "a response without a request",
        "passed_over": "a call without a response while later calls got theirs",
        "outstanding_limit": "too many calls without response on one connection",
        "parked_limit": "too many responses without a request on one connection",
        "api_versions_fallback": "ApiVersions response in version 0: the broker does not support the "
        "requested version",
        "time_backwards": "a packet with an earlier time than its predecessor",
        "call_facts_limit": "a call with more topics or errors than the limit allows to list",
        "memory_refused": "the operating system refused memory; rows are missing",
        "capture_truncated": "the file ends inside a packet",
        "capture_damaged": "the file's structure is damaged; the rest was not read",
        "connection_evicted": "a connection dropped because of too many connections, too much memory, or "
        "long silence",
        "memory_limit": "the memory limit was reached; connections or long texts were dropped",
        "not_decrypted": "TLS records that cannot be decrypted because earlier data is missing",
        "reset_out_of_window": "a reset with a sequence number that receivers reject; ignored",
        "reset_taken_back": "both sides continued after a reset",
        "handshake_out_of_place": "a SYN in the middle of an open connection; ignored",
        "interfaces_limit": "pcapng interfaces beyond the limit, skipped with their packets",
        "trailing_bytes": "bytes after the last field of a message; brokers ignore them",
        "tcp_events_limit": "more events on one connection than the limit allows to list",
        "timelines_limit": "more groups, members, producers, partitions, brokers or clients than the memory "
        "limit allows; new ones, or those idle for longest, were left out. Also readers that came after the "
        "row of their batch was written",
        "twins_limit": "too many possible duplicate connections to compare all of them",
        "answered_out_of_order": "a response that came after those of later requests",
        "hole_filled": "the capture misses TCP data that another place has",
        "null_not_allowed": "null bytes where the response's layout does not allow them; decoded anyway",
        "aborted_out_of_order": "aborted transactions of a partition, not in the order of their offsets",
    },
}
"""The closed lists of the core. Their order is that of the numbers in kwsniff/core/declared.pxd."""

ABSENT: Final = {
    "reason": "none", "caller": "unknown", "tunnel": "none", "icmp_error": "none", "proxy_header": "none",
    "tls_handshake": "unseen", "tls_client_certificate": "unseen",
}  # fmt: skip
"""The core's name for the number before the first, in lists where a value may be absent."""

FIRST: Final = {"tunnel": 1}
"""Lists with a first number other than 0."""

_DERIVED: Final[Mapping[str, Mapping[str, str]]] = {
    "group_kind": {
        "classic": "JoinGroup and SyncGroup",
        "consumer": "ConsumerGroupHeartbeat (KIP-848)",
        "share": "ShareGroupHeartbeat (KIP-932)",
        "streams": "StreamsGroupHeartbeat (KIP-1071)",
    },
    "rebalance_reason": {
        "member_joined": "a new member asked to join",
        "member_left": "a member left",
        "heartbeat_gap": "a member sent nothing for the shortest session timeout and did not return; its "
        "own session timeout is unknown",
        "session_expired": "a member that had not left sent nothing for its session timeout and the group "
        "did not wait for it, or it got UNKNOWN_MEMBER_ID from the coordinator; if the capture lost its "
        "packets, the silence may not be real",
        "metadata_change": "the existing members joined again: their subscription, or the topics, changed",
        "unknown": "the capture does not show the reason",
    },
    "call_harm": {
        "refused": "an error that did not pass",
        "unanswered": "no response for 5 s, passed over, or closed by the broker",
        "gave_up": "closed by the client after 5 s",
        "incomplete": "a reset cut the request off",
        "late": "1 s or more, and 20 times the median of its kind",
        "stuck": "a fetch without a record at an offset where the reader stalls, although more follow",
        "repeated": "the same work again: records that the reader had got, or a batch that may be stored",
    },
    "connection_harm": {
        "not_opened": "the handshake got no answer, or was refused",
        "opened_late": "SYNs were sent again",
        "handshake_failed": "the TLS handshake did not complete",
        "ended_early": "the broker closed it before any call",
        "reset": "a reset during work",
    },
    "severity": {
        "problem": "causes harm now",
        "warning": "waste or a risk",
        "info": "explains figures; harmless",
    },
    "confidence": {
        "certain": "the bytes prove it",
        "likely": "the bytes fit, and few other explanations do",
        "possible": "the bytes fit, but other explanations do as well",
    },
    "blames": {
        "broker": "the broker's operators",
        "network": "the network's operators",
        "client": "the client's operators or developers",
        "follower": "the operators of the brokers that replicate",
        "configuration": "the owner of the settings of clients, listeners, quotas or limits",
        "capture": "the person who took the capture",
        "unknown": "not known: no rule explains the harm",
    },
    "subject_kind": {
        "broker": "address and port of a broker",
        "client": "client id, or address of a client without one",
        "group": "group id",
        "topic": "name of a topic",
        "partition": "topic and partition, joined by a dash",
        "transactional_id": "transactional id",
        "connection": "client and broker of a connection",
        "capture": "name of a capture file",
    },
    "client_role": {
        "consumer": "fetches, or is a member of a group",
        "producer": "produces",
        "admin": "neither; it changes topics or settings, or describes groups",
        "follower": "a broker that replicates",
        "connect": "a worker of Kafka Connect",
        "mirrormaker": "MirrorMaker",
        "streams": "a Kafka Streams application",
        "ksqldb": "a query of ksqlDB",
    },
    "server_product": {
        "apache_kafka": "Apache Kafka",
        "redpanda": "Redpanda",
        "automq": "AutoMQ",
        "inkless": "Aiven Inkless",
        "event_hubs": "Azure Event Hubs",
        "msk": "Amazon MSK",
        "confluent": "Confluent Cloud or Server",
        "warpstream": "WarpStream",
        "seaweedfs": "SeaweedFS",
        "kroxylicious": "Kroxylicious, a proxy; its messages do not name it",
        "unknown": "nothing shows what it is",
    },
    "transaction_outcome": {
        "committed": "EndTxn requested it and succeeded",
        "aborted": "EndTxn requested it, or the producer restarted with InitProducerId",
        "fenced": "another producer took its transactional id, or it got a fencing error before its timeout",
        "timed_out": "the coordinator aborted it: no other producer took the id, and it was open for "
        "longer than its timeout (if unknown, than the default of 60 s)",
        "open_at_end": "the capture ended first",
        "unknown": "an EndTxn got no response",
    },
    "left_how": {
        "left": "the member left by itself",
        "removed": "another client removed it, as an administrator does",
        "session_expired": "it had not left, and it got UNKNOWN_MEMBER_ID from the coordinator, or the "
        "other members began a generation without it after it sent nothing for its session timeout; if "
        "the capture lost its packets, the silence may not be real",
        "fenced": "another client took over its instance id",
        "open_at_end": "the capture ended first",
        "unknown": "kwsniff dropped its group: it tracked too many members at the same time",
    },
}

DERIVED_ENUMS: Final = {name: tuple(words) for name, words in _DERIVED.items()}
"""The closed lists of tables that are computed outside the core."""

WORDS: Final[Mapping[str, Mapping[str, str]]] = {**CORE_WORDS, **_DERIVED}
