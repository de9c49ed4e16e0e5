# cython: language_level=3, autotestdict=False
"""Names of the closed lists, in the order of the enums of verdicts.pxd."""

from kwsniff.core.capture.tunnels cimport NUM_TUNNELS

from kwsniff.core.capture.tunnels import TUNNELS

ENUMS = {
    "status": ("answered", "no_response_expected", "unanswered", "response_not_captured", "response_only"),
    "reason": (
        "capture_began_later", "segment_lost", "cut_by_snaplen", "connection_reset", "connection_closed",
        "connection_reused", "connection_evicted", "one_direction", "open_at_end", "undecodable", "unknown_api", "unknown_version",
        "passed_over", "limit_reached", "segment_not_captured", "not_decrypted",
    ),
    "protocol": ("empty", "kafka", "tls", "http", "ssh", "proxy", "other", "undecided"),
    "role": ("handshake", "content", "port", "unknown"),
    "end": ("open", "fin", "reset", "reused", "evicted"),
    "direction": ("client", "broker"),
    "caller": ("client", "replica", "broker"),
    "wait": (
        "none", "long_poll", "long_poll_possible", "data", "data_possible", "group", "group_possible", "replicas",
        "replicas_possible", "throttle", "authentication_delay", "authentication_delay_possible",
    ),
    "vantage": ("client", "broker", "between", "same_machine", "unknown"),
    "tunnel": TUNNELS,
    "tcp_event": (
        "retransmission", "zero_window", "zero_window_end", "refused", "reset", "syn_again", "duplicate_acks",
    ),
    "codec": ("none", "gzip", "snappy", "lz4", "zstd", "unknown_5", "unknown_6", "unknown_7"),
    "timestamp_type": ("create_time", "log_append_time", "none"),
    "bin": (
        "answered", "no_response_expected", "unanswered", "response_not_captured", "response_only", "sasl_tokens",
        "torn_frames", "unfinished", "continued", "lost_framing", "retransmitted", "out_of_window", "after_end",
        "not_kafka", "undecided", "memory_refused", "captured_twice",
    ),
    "anomaly": (
        "segment_not_captured", "segment_lost", "packet_cut", "segments_overlap", "segment_out_of_window",
        "data_after_end", "held_limit", "conflicting_retransmission", "framing_lost", "framing_resumed",
        "frame_torn", "frame_kept_limit", "undecodable_request", "undecodable_response", "unknown_api",
        "unknown_version", "unexpected_response", "passed_over", "outstanding_limit", "parked_limit",
        "api_versions_fallback", "time_backwards", "call_facts_limit", "memory_refused", "capture_truncated",
        "capture_damaged", "connection_evicted", "not_decrypted", "reset_out_of_window", "reset_taken_back",
        "handshake_out_of_place",
        "interfaces_limit", "trailing_bytes", "tcp_events_limit",
    ),
}

cdef int _num_of(str name):
    return {
        "status": <int>NUM_STATUSES, "reason": <int>NUM_REASONS, "protocol": <int>NUM_PROTOCOLS,
        "role": <int>NUM_ROLES, "anomaly": <int>NUM_ANOMALIES, "bin": <int>NUM_BINS, "end": 5, "direction": 2, "caller": <int>NUM_CALLERS,
        "wait": <int>NUM_WAITS, "vantage": <int>NUM_VANTAGES, "tunnel": <int>NUM_TUNNELS - 1, "tcp_event": 7, "codec": 8, "timestamp_type": 3,
    }[name]

for _name, _names in ENUMS.items():
    if len(_names) != _num_of(_name):
        raise AssertionError(f"enum {_name} has {len(_names)} names for {_num_of(_name)} values")
