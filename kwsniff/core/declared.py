"""Made by `python -m tests.house.declared`: edit kwsniff/tables, not this file.

What the core fills, in the order of the numbers in declared.pxd.
"""

from collections.abc import Mapping
from typing import Final

# fmt: off
TABLES: Final = (
    "api_calls", "latencies", "error_codes", "connections", "anomalies", "partitions", "record_batches",
    "tcp_events", "stalls",
)

COLUMNS: Final[Mapping[str, tuple[tuple[str, str, bool], ...]]] = {
    "api_calls": (
        ("call_id", "int64", False), ("capture", "string", False), ("connection_id", "int64", False),
        ("client_address", "string", False), ("client_port", "int32", False),
        ("broker_address", "string", False), ("broker_port", "int32", False), ("api_key", "int16", True),
        ("api_name", "api_name", True), ("api_version", "int16", True), ("correlation_id", "int32", False),
        ("client_id", "string", True), ("client_software_name", "string", True),
        ("client_software_version", "string", True), ("request_time", "time", True),
        ("request_end_time", "time", True), ("response_time", "time", True),
        ("response_end_time", "time", True), ("request_frame", "int64", True),
        ("request_end_frame", "int64", True), ("response_frame", "int64", True),
        ("response_end_frame", "int64", True), ("request_bytes", "int64", True),
        ("response_bytes", "int64", True), ("status", "enum:status", False), ("reason", "enum:reason", True),
        ("latency_ns", "int64", True), ("error_code", "int16", True), ("error_count", "int32", True),
        ("throttle_time_ms", "int32", True), ("topics", "strings", True), ("group_id", "string", True),
        ("transactional_id", "string", True), ("acks", "int16", True), ("partition_count", "int32", True),
        ("record_count", "int64", True), ("record_bytes", "int64", True), ("sasl_mechanism", "string", True),
        ("principal", "string", True), ("caller", "enum:caller", True), ("member_id", "string", True),
        ("group_instance_id", "string", True), ("generation", "int32", True),
        ("protocol_type", "string", True), ("producer_id", "int64", True), ("producer_epoch", "int16", True),
        ("isolation_level", "int16", True), ("committed", "bool", True), ("session_id", "int32", True),
        ("session_epoch", "int32", True), ("max_wait_ms", "int32", True), ("min_bytes", "int32", True),
        ("max_bytes", "int32", True), ("timeout_ms", "int64", True), ("rack_id", "string", True),
    ),
    "latencies": (
        ("call_id", "int64", False), ("capture", "string", False), ("connection_id", "int64", False),
        ("api_key", "int16", False), ("api_name", "api_name", True), ("api_version", "int16", False),
        ("client_id", "string", True), ("broker_address", "string", False), ("broker_port", "int32", False),
        ("request_time", "time", False), ("total_ns", "int64", False),
        ("request_transmission_ns", "int64", False), ("network_ns", "int64", False),
        ("queue_wait_ns", "int64", False), ("broker_ns", "int64", False),
        ("deliberate_wait_ns", "int64", False), ("response_transmission_ns", "int64", False),
        ("wait", "enum:wait", False), ("queued_behind", "int64", True),
        ("queued_behind_wait", "enum:wait", True), ("round_trip_ns", "int64", True),
        ("retransmissions", "int32", False), ("zero_window_ns", "int64", False),
        ("transmission_stall", "enum:stall_cause", True), ("broker_round_trip_ns", "int64", True),
        ("broker_round_trip_error_ns", "int64", True),
    ),
    "error_codes": (
        ("call_id", "int64", False), ("capture", "string", False), ("connection_id", "int64", False),
        ("client_address", "string", False), ("broker_address", "string", False),
        ("broker_port", "int32", False), ("api_key", "int16", False), ("api_name", "api_name", True),
        ("api_version", "int16", False), ("correlation_id", "int32", False), ("client_id", "string", True),
        ("response_time", "time", True), ("response_frame", "int64", False), ("path", "string", False),
        ("topic", "string", True), ("topic_id", "string", True), ("partition", "int32", True),
        ("group_id", "string", True), ("error_code", "int16", False), ("error_message", "string", True),
    ),
    "connections": (
        ("connection_id", "int64", False), ("capture", "string", False), ("client_address", "string", False),
        ("client_port", "int32", False), ("broker_address", "string", False), ("broker_port", "int32", False),
        ("protocol", "enum:protocol", False), ("role_source", "enum:role_source", False),
        ("first_time", "time", True), ("last_time", "time", True), ("first_frame", "int64", False),
        ("last_frame", "int64", False), ("handshake", "bool", False), ("round_trip_ns", "int64", True),
        ("client_bytes", "int64", False), ("broker_bytes", "int64", False),
        ("client_packets", "int64", False), ("broker_packets", "int64", False),
        ("client_retransmitted_bytes", "int64", False), ("broker_retransmitted_bytes", "int64", False),
        ("client_out_of_order", "int64", False), ("broker_out_of_order", "int64", False),
        ("client_missing_bytes", "int64", False), ("broker_missing_bytes", "int64", False),
        ("client_lost_bytes", "int64", False), ("broker_lost_bytes", "int64", False),
        ("client_lost_before_bytes", "int64", False), ("broker_lost_before_bytes", "int64", False),
        ("client_unacknowledged_bytes", "int64", True), ("broker_unacknowledged_bytes", "int64", True),
        ("client_largest_acknowledged", "int64", False), ("broker_largest_acknowledged", "int64", False),
        ("calls", "int64", False), ("max_in_flight", "int64", False), ("client_id", "string", True),
        ("client_software_name", "string", True), ("client_software_version", "string", True),
        ("sasl_mechanism", "string", True), ("ending", "enum:ending", False),
        ("client_round_trip_ns", "int64", True), ("broker_round_trip_ns", "int64", True),
        ("capture_point", "enum:capture_point", False), ("client_zero_window_ns", "int64", False),
        ("broker_zero_window_ns", "int64", False), ("principal", "string", True),
        ("caller", "enum:caller", True), ("tls_version", "string", True), ("tls_server_name", "string", True),
        ("tls_cipher", "string", True), ("closed_by", "enum:direction", True), ("close_frame", "int64", True),
        ("close_time", "time", True), ("refused", "bool", False), ("syn_retries", "int64", True),
        ("connect_ns", "int64", True), ("encapsulation", "string", True),
        ("duplicate_packets", "int64", False), ("twin_of", "int64", True), ("twin_delay_ns", "int64", True),
        ("answered_in", "enum:protocol", True), ("proxy_header", "enum:proxy_header", True),
        ("tls_handshake", "enum:tls_handshake", True),
        ("tls_client_certificate", "enum:tls_client_certificate", True), ("tls_hello", "bool", True),
        ("tls_alert", "string", True), ("tls_alert_by", "enum:direction", True),
        ("proxied_address", "string", True), ("proxied_port", "int32", True), ("client_isn", "int64", True),
        ("broker_isn", "int64", True), ("messages_hash", "int64", True),
        ("client_tls_records", "int64", True), ("broker_tls_records", "int64", True),
        ("reset_by", "enum:direction", True), ("reset_frame", "int64", True),
        ("reset_acknowledges", "bool", True), ("reset_ttl_step", "int64", True),
        ("reset_ident_step", "int64", True), ("reset_window", "int64", True), ("reset_stamped", "bool", True),
        ("icmp_error", "enum:icmp_error", True), ("icmp_from", "string", True), ("icmp_frame", "int64", True),
        ("port_named", "bool", False), ("community_id", "string", False),
    ),
    "anomalies": (
        ("capture", "string", False), ("connection_id", "int64", True), ("call_id", "int64", True),
        ("time", "time", True), ("frame", "int64", True), ("direction", "enum:direction", True),
        ("stream_offset", "int64", True), ("name", "enum:anomaly", False), ("value", "int64", True),
    ),
    "partitions": (
        ("call_id", "int64", False), ("capture", "string", False), ("connection_id", "int64", False),
        ("api_key", "int16", False), ("api_name", "api_name", True), ("api_version", "int16", False),
        ("client_id", "string", True), ("broker_address", "string", False), ("broker_port", "int32", False),
        ("time", "time", True), ("group_id", "string", True), ("topic", "string", True),
        ("topic_id", "string", True), ("partition", "int32", False), ("error_code", "int16", True),
        ("requested_offset", "int64", True), ("base_offset", "int64", True), ("last_offset", "int64", True),
        ("high_watermark", "int64", True), ("last_stable_offset", "int64", True),
        ("log_start_offset", "int64", True), ("preferred_read_replica", "int32", True),
        ("lag", "int64", True), ("record_bytes", "int64", True), ("record_count", "int64", True),
        ("batch_count", "int32", True),
    ),
    "record_batches": (
        ("call_id", "int64", False), ("capture", "string", False), ("connection_id", "int64", False),
        ("api_key", "int16", False), ("api_name", "api_name", True), ("api_version", "int16", False),
        ("client_id", "string", True), ("time", "time", True), ("topic", "string", True),
        ("topic_id", "string", True), ("partition", "int32", True), ("magic", "int16", False),
        ("codec", "enum:codec", False), ("bytes", "int64", False), ("uncompressed_bytes", "int64", True),
        ("record_count", "int32", True), ("base_offset", "int64", False), ("last_offset", "int64", True),
        ("producer_id", "int64", True), ("producer_epoch", "int16", True), ("base_sequence", "int32", True),
        ("transactional", "bool", False), ("control", "bool", False), ("keyed", "bool", True),
        ("timestamp_type", "enum:timestamp_type", False), ("first_timestamp", "time", True),
        ("max_timestamp", "time", True), ("crc", "int64", False),
    ),
    "tcp_events": (
        ("capture", "string", False), ("connection_id", "int64", False), ("time", "time", True),
        ("frame", "int64", False), ("kind", "enum:tcp_event", False), ("sender", "enum:direction", True),
        ("stream_offset", "int64", True), ("bytes", "int64", True), ("count", "int64", True),
        ("lost_before", "bool", True), ("call_id", "int64", True),
    ),
    "stalls": (
        ("capture", "string", False), ("connection_id", "int64", False), ("call_id", "int64", True),
        ("direction", "enum:stall_direction", False), ("start_time", "time", False),
        ("duration_ns", "int64", False), ("cause", "enum:stall_cause", False), ("bytes", "int64", True),
        ("first_frame", "int64", False), ("last_frame", "int64", False),
    ),
}
"""Table -> name, kind (`enum:` and a list of ENUMS), nullable of each of its columns."""

INNER_COLUMNS: Final[Mapping[str, tuple[tuple[str, str, bool], ...]]] = {
    "details": (
        ("row", "int64", False), ("request", "binary", True), ("response", "binary", True),
    ),
}
"""The same of tables that stay inside; their numbers follow."""

ENUMS: Final[Mapping[str, tuple[str, ...]]] = {
    "status": (
        "answered", "no_response_expected", "unanswered", "response_not_captured", "response_only",
    ),
    "reason": (
        "capture_began_later", "segment_lost", "cut_by_snaplen", "connection_reset", "connection_closed",
        "connection_reused", "connection_evicted", "one_direction", "open_at_end", "undecodable",
        "unknown_api", "unknown_version", "passed_over", "limit_reached", "segment_not_captured",
        "not_decrypted", "cut_off_by_client", "not_kafka",
    ),
    "protocol": (
        "empty", "kafka", "tls", "http", "ssh", "proxy", "socks", "other", "undecided", "zookeeper", "amqp",
        "redis", "mysql", "postgresql", "mongodb", "cassandra", "mqtt", "smtp", "pop3", "imap", "ldap",
        "nats", "memcached", "pulsar", "rocketmq", "openwire", "stomp", "elasticsearch", "oracle",
        "sqlserver", "rdp", "vnc", "smb", "telnet",
    ),
    "proxy_header": (
        "v1", "v2",
    ),
    "tls_handshake": (
        "client_hello", "server_hello", "client_key", "client_finished", "complete",
    ),
    "tls_client_certificate": (
        "none", "sent",
    ),
    "role_source": (
        "handshake", "content", "port", "unknown",
    ),
    "ending": (
        "open", "fin", "reset", "reused", "evicted",
    ),
    "direction": (
        "client", "broker",
    ),
    "caller": (
        "client", "replica", "broker",
    ),
    "wait": (
        "none", "long_poll", "long_poll_possible", "data", "data_possible", "transaction",
        "transaction_possible", "group", "group_possible", "replicas", "replicas_possible", "throttle",
        "authentication_delay", "authentication_delay_possible",
    ),
    "capture_point": (
        "client", "broker", "between", "same_machine", "unknown",
    ),
    "tunnel": (
        "vxlan", "geneve", "gre", "erspan", "gtpu", "ipip",
    ),
    "tcp_event": (
        "retransmission", "zero_window", "zero_window_end", "refused", "reset", "syn_again", "duplicate_acks",
    ),
    "stall_direction": (
        "to_broker", "to_client",
    ),
    "stall_cause": (
        "nagle_delayed_ack", "receiver_window", "zero_window", "congestion_window", "fast_retransmission",
        "retransmission_timeout", "path_mtu", "link_queue", "sender_idle", "unknown",
    ),
    "icmp_error": (
        "net_unreachable", "host_unreachable", "protocol_unreachable", "port_unreachable", "prohibited",
        "too_big", "time_exceeded", "other",
    ),
    "codec": (
        "none", "gzip", "snappy", "lz4", "zstd", "unknown_5", "unknown_6", "unknown_7",
    ),
    "timestamp_type": (
        "create_time", "log_append_time", "none",
    ),
    "bin": (
        "answered", "no_response_expected", "unanswered", "response_not_captured", "response_only",
        "sasl_tokens", "torn_frames", "unfinished", "continued", "lost_framing", "retransmitted",
        "out_of_window", "after_end", "not_kafka", "undecided", "memory_refused", "captured_twice",
        "keep_alive", "filled",
    ),
    "anomaly": (
        "segment_not_captured", "segment_lost", "packet_cut", "segments_overlap", "segment_out_of_window",
        "data_after_end", "held_limit", "conflicting_retransmission", "framing_lost", "framing_resumed",
        "frame_torn", "frame_kept_limit", "undecodable_request", "undecodable_response", "unknown_api",
        "unknown_version", "unexpected_response", "passed_over", "outstanding_limit", "parked_limit",
        "api_versions_fallback", "time_backwards", "call_facts_limit", "memory_refused", "capture_truncated",
        "capture_damaged", "connection_evicted", "memory_limit", "not_decrypted", "reset_out_of_window",
        "reset_taken_back", "handshake_out_of_place", "interfaces_limit", "trailing_bytes",
        "tcp_events_limit", "timelines_limit", "twins_limit", "answered_out_of_order", "hole_filled",
        "null_not_allowed", "aborted_out_of_order",
    ),
}
"""Closed list -> its words."""
