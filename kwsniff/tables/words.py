"""What the words of the closed lists mean, for the docs and the screen; the lists are the core's."""

from collections.abc import Mapping
from typing import Final

CORE_WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "status": {
        "answered": "request and response were both seen",
        "no_response_expected": "a Produce with acks=0: the broker sends no response",
        "unanswered": "the broker sent no response, and would have been seen to",
        "response_not_captured": "the response may have been sent: bytes of the broker are missing",
        "response_only": "a response whose request is not in the capture",
    },
    "reason": {
        "capture_began_later": "the capture began after the connection",
        "segment_lost": "a TCP segment is not in the capture",
        "cut_by_snaplen": "the capture keeps only the beginning of packets",
        "connection_reset": "the connection was reset",
        "connection_closed": "the connection was closed",
        "connection_reused": "a new connection with the same addresses and ports began",
        "connection_evicted": "kwsniff gave up the connection: too many were open at once",
        "one_direction": "the capture shows only one direction of the connection",
        "open_at_end": "the capture ended first",
        "undecodable": "the bytes do not fit the layout of the API and version",
        "unknown_api": "no known Kafka release has this API",
        "unknown_version": "no known Kafka release has this version of the API",
        "passed_over": "responses to later calls came first",
        "limit_reached": "one of kwsniff's limits was reached",
        "segment_not_captured": "TCP data that was acknowledged is not in the capture",
        "not_decrypted": "TLS records that cannot be decrypted, because something before them is missing",
        "cut_off_by_client": "the client closed the connection inside the response",
        "not_kafka": "the other side answered in another protocol",
    },
    "protocol": {
        "empty": "no payload",
        "kafka": "Kafka",
        "tls": "TLS: encrypted",
        "http": "HTTP",
        "ssh": "SSH",
        "proxy": "PROXY protocol",
        "socks": "SOCKS5, and no tunnel that came about",
        "other": "none of these",
        "undecided": "too little was seen to tell",
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
        "client_hello": "the client greeted; no ServerHello was seen",
        "server_hello": "the broker greeted, too; the client sent nothing behind its hello",
        "client_key": "the client sent its key (and certificate, if asked for), no Finished; up to TLS 1.2",
        "client_finished": "the client sent its Finished; the broker said nothing more than an alert",
        "complete": "both sides finished",
    },
    "tls_client_certificate": {
        "none": "the client sent an empty list of certificates",
        "sent": "the client sent one",
    },
    "role": {
        "handshake": "by the TCP handshake",
        "content": "by who sends requests",
        "port": "by the port numbers",
        "unknown": "not told apart: the side with the higher port is called client",
    },
    "end": {
        "open": "still open when the capture ended",
        "fin": "closed",
        "reset": "reset",
        "reused": "a new connection with the same addresses and ports began",
        "evicted": "given up: too many were open at once",
    },
    "direction": {
        "client": "sent by the client",
        "broker": "sent by the broker",
    },
    "caller": {
        "client": "a client",
        "replica": "a broker that fetches as a follower",
        "broker": "a broker or controller, with an API that only they use",
    },
    "wait": {
        "none": "no wait that the broker meant",
        "long_poll": "a fetch waited for data until max_wait_ms was over (a broker's timer is up to 5 ms "
        "late), and answered with too little",
        "long_poll_possible": "a fetch came back with too little after more than 5 ms and before max_wait_ms "
        "was over: something else ended its wait for data",
        "data": "a fetch waited for records that did not exist yet: their timestamps lie within the wait, or "
        "the Produce that brought them came meanwhile, on any connection of the capture",
        "data_possible": "a fetch that may wait came back with records after more than 5 ms, and nothing "
        "says when they were written",
        "transaction": "a fetch with read_committed waited for a transaction to end: the marker of its end "
        "was written within the wait",
        "transaction_possible": "a fetch with read_committed came back after more than 5 ms with records of "
        "a transaction, and nothing says when that ended",
        "group": "a member waited for others of its group: their JoinGroup or SyncGroup of that generation "
        "came just before the answer; or for its first members (group.initial.rebalance.delay.ms)",
        "group_possible": "JoinGroup or SyncGroup took more than 5 ms: it is answered when the other members "
        "have asked, too",
        "replicas": "a Produce with acks=-1 waited for followers: their fetches, where the capture has them, "
        "say until when they had not all records; or the error says that they never had",
        "replicas_possible": "a Produce with acks=-1 took more than 3 ms: part of broker_ns may be waiting "
        "for followers, the capture cannot tell; not where Metadata had said that there is one copy",
        "throttle": "a quota: the broker held the answer back (before KIP-219) or kept the connection muted",
        "authentication_delay": "the broker holds back the answer to a failed authentication "
        "(connection.failed.authentication.delay.ms)",
        "authentication_delay_possible": "the same, but sooner than after the 100 ms that are usual",
    },
    "vantage": {
        "client": "at the client, or near it",
        "broker": "at the broker, or near it",
        "between": "on the way: neither side answers much faster than the other",
        "same_machine": "where client and broker both run: both acknowledge within 0.1 ms",
        "unknown": "too little was seen to tell",
    },
    "tunnel": {
        "vxlan": "VXLAN (RFC 7348), with GPE",
        "geneve": "Geneve (RFC 8926)",
        "gre": "GRE (RFC 2784, 2890): IP, MPLS or Ethernet inside",
        "erspan": "ERSPAN type I, II or III: a switch's mirror, inside GRE",
        "gtpu": "GTP-U (3GPP TS 29.281)",
        "ipip": "IP directly inside IP, of any two versions",
    },
    "tcp_event": {
        "retransmission": "bytes that were sent before",
        "zero_window": "the sender has no room for more",
        "zero_window_end": "it has room again",
        "refused": "a SYN was answered by a reset",
        "reset": "a reset that ended the connection",
        "syn_again": "a SYN, or its answer, sent again",
        "duplicate_acks": "three or more acknowledgements in a row that ask for the same missing byte",
    },
    "icmp_error": {
        "net_unreachable": "no router knows a way to that network",
        "host_unreachable": "no machine with that address answers in its network",
        "protocol_unreachable": "the machine does not speak TCP",
        "port_unreachable": "the machine, or a firewall in its name, refuses the port",
        "prohibited": "a firewall or router forbids it, and says so",
        "too_big": "the packet does not fit into a link on the way, and must not be cut up",
        "time_exceeded": "the packet passed too many routers, as in a loop",
        "other": "another reason why the packet was not delivered",
    },
    "codec": {
        "none": "not compressed",
        "gzip": "gzip",
        "snappy": "snappy",
        "lz4": "LZ4",
        "zstd": "Zstandard",
        "unknown_5": "codec 5, which no known Kafka release has",
        "unknown_6": "codec 6, which no known Kafka release has",
        "unknown_7": "codec 7, which no known Kafka release has",
    },
    "timestamp_type": {
        "create_time": "the producer",
        "log_append_time": "the broker, when it wrote the batch",
        "none": "nobody: message format 0 has no times",
    },
    "bin": {
        "answered": "in calls with request and response",
        "no_response_expected": "in Produce requests with acks=0",
        "unanswered": "in requests the broker did not answer",
        "response_not_captured": "in requests whose response may be missing",
        "response_only": "in responses whose request is not in the capture",
        "sasl_tokens": "bare tokens of SASL authentication",
        "torn_frames": "in messages of which bytes are missing",
        "unfinished": "in messages that were under way when the connection or the capture ended",
        "continued": "in messages that began before the capture",
        "lost_framing": "where the beginnings of messages cannot be told",
        "retransmitted": "sent again",
        "out_of_window": "far away from the rest of the stream",
        "after_end": "after the end of the connection",
        "not_kafka": "of connections that carry something else",
        "undecided": "of connections too short to tell",
        "memory_refused": "given up because the operating system gave no memory",
        "captured_twice": "in copies of packets that the capture has already; nobody sent them again",
        "keep_alive": "in keep-alives: the last byte that the receiver had acknowledged, or one of garbage",
    },
    "anomaly": {
        "segment_not_captured": "TCP data the receiver acknowledged is not in the capture",
        "segment_lost": "TCP data is missing and was never acknowledged",
        "packet_cut": "the capture keeps only the beginning of the packet",
        "segments_overlap": "segments hold the same part of the stream, differently cut",
        "segment_out_of_window": "a segment far away from the rest of the stream; ignored",
        "data_after_end": "data after the end of the connection; ignored",
        "held_limit": "too much data waited for a missing segment",
        "conflicting_retransmission": "data was sent again with other contents; the first counts",
        "framing_lost": "the beginnings of messages can no longer be told",
        "framing_resumed": "they can be told again",
        "frame_torn": "a message of which bytes are missing",
        "frame_kept_limit": "a message too long to be kept; only its size counts",
        "undecodable_request": "a request that does not fit its layout",
        "undecodable_response": "a response that does not fit its layout",
        "unknown_api": "an API no known Kafka release has",
        "unknown_version": "a version no known Kafka release has",
        "unexpected_response": "a response nobody asked for",
        "passed_over": "a call left without response while later ones got theirs",
        "outstanding_limit": "too many calls without response on one connection",
        "parked_limit": "too many responses waited for their request",
        "api_versions_fallback": "ApiVersions answered in version 0: the asked one is unknown to the broker",
        "time_backwards": "a packet earlier than the one before it",
        "call_facts_limit": "a call with too many topics or errors to list them all",
        "memory_refused": "the operating system gave no memory; rows are missing",
        "capture_truncated": "the file ends inside a packet",
        "capture_damaged": "the file's structure is damaged; the rest was not read",
        "connection_evicted": "too many connections or too much memory, or one that was silent for too long",
        "memory_limit": "as much memory as it may have is used; connections or long texts were given up",
        "not_decrypted": "TLS records that cannot be decrypted: something before them is missing",
        "reset_out_of_window": "a reset whose number no receiver would take; ignored",
        "reset_taken_back": "both sides went on behind a reset",
        "handshake_out_of_place": "a SYN in the middle of a connection that went on; ignored",
        "interfaces_limit": "interfaces of a pcapng beyond a limit, with their packets, were passed over",
        "trailing_bytes": "bytes behind the last field of a message that decodes; brokers pass them over",
        "tcp_events_limit": "too many events on one connection to list them all",
        "timelines_limit": "more groups, members, producers, partitions, brokers than memory lets follow; "
        "those silent longest, or new ones, were left out",
        "twins_limit": "too many connections that may be twins of others to compare them all",
        "answered_out_of_order": "a response that came after those of later requests",
        "null_not_allowed": "null bytes in a response where its layout allows none; it was read all the same",
    },
}
"""The closed lists that the core fills. Their order is that of the numbers in kwsniff/core/declared.pxd."""

ABSENT: Final = {
    "reason": "none", "caller": "unknown", "tunnel": "none", "icmp_error": "none", "proxy_header": "none",
    "tls_handshake": "unseen", "tls_client_certificate": "unseen",
}  # fmt: skip
"""What the core calls the number before the first, in lists that may have no word."""

FIRST: Final = {"tunnel": 1}
"""Lists whose first number is not 0."""

_DERIVED: Final[Mapping[str, Mapping[str, str]]] = {
    "group_kind": {
        "classic": "JoinGroup and SyncGroup",
        "consumer": "ConsumerGroupHeartbeat (KIP-848)",
        "share": "ShareGroupHeartbeat (KIP-932)",
        "streams": "StreamsGroupHeartbeat (KIP-1071)",
    },
    "rebalance_reason": {
        "member_joined": "a member that was not there before asked to join",
        "member_left": "a member left",
        "heartbeat_gap": "a member was silent as long as the shortest session lasts, and did not come back; "
        "how long its session lasts is not known",
        "session_expired": "a member that had not left was silent for as long as its session lasts and was "
        "not waited for, or the coordinator said UNKNOWN_MEMBER_ID to it; where the capture lost what it "
        "sent, the first may only look so",
        "metadata_change": "the members of before joined again: their subscription, or the topics, changed",
        "unknown": "the capture does not show it",
    },
    "severity": {
        "problem": "somebody is harmed now",
        "warning": "waste, or a risk",
        "info": "explains figures, harms nobody",
    },
    "confidence": {
        "certain": "the bytes say it",
        "likely": "the bytes fit, and little else does",
        "possible": "the bytes fit, as they fit other things",
    },
    "blames": {
        "broker": "whoever runs the broker",
        "network": "whoever runs the network",
        "client": "whoever runs or wrote the client",
        "follower": "whoever runs the brokers that replicate",
        "configuration": "whoever configured clients, listeners, quotas or limits",
        "capture": "whoever took the capture",
    },
    "subject_kind": {
        "broker": "address and port of a broker",
        "client": "client id, or address where it has none",
        "group": "group id",
        "topic": "name of a topic",
        "partition": "topic and partition, joined by a dash",
        "transactional_id": "transactional id",
        "connection": "client and broker of a connection",
        "capture": "name of a capture file",
    },
    "transaction_outcome": {
        "committed": "EndTxn asked for it and was answered without error",
        "aborted": "EndTxn asked for it, or the producer began anew with InitProducerId",
        "fenced": "the producer lost its id to another one, or was told so before its timeout was over",
        "timed_out": "the coordinator had ended it: nobody else took the id, and it was open for longer than "
        "its timeout (where that is not known, than 60 s, the default)",
        "open_at_end": "the capture ended first",
        "unknown": "an EndTxn was not answered",
    },
    "left_how": {
        "left": "it said so itself",
        "removed": "another client said so, as an administrator does",
        "session_expired": "it had not left, and the coordinator said UNKNOWN_MEMBER_ID to it, or the others "
        "began a generation without it after it was silent for as long as its session lasts; where the "
        "capture lost what it sent, the second may only look so",
        "fenced": "another client took over its instance id",
        "open_at_end": "the capture ended first",
        "unknown": "kwsniff gave up its group: too many members were followed at once",
    },
}

DERIVED_ENUMS: Final = {name: tuple(words) for name, words in _DERIVED.items()}
"""The closed lists of the tables that are computed here, not in the core."""

WORDS: Final[Mapping[str, Mapping[str, str]]] = {**CORE_WORDS, **_DERIVED}
