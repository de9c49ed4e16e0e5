"""What the words of the closed lists mean, for the docs and the screen; the lists are the core's."""

from collections.abc import Mapping
from typing import Final

from kwsniff.core.verdicts import ENUMS

_ALL: Final[Mapping[str, Mapping[str, str]]] = {
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
        "open_at_end": "the capture ended first",
        "undecodable": "the bytes do not fit the layout of the API and version",
        "unknown_api": "no known Kafka release has this API",
        "unknown_version": "no known Kafka release has this version of the API",
        "passed_over": "responses to later calls came first",
        "one_direction": "the capture shows only one direction of the connection",
        "segment_not_captured": "TCP data that was acknowledged is not in the capture",
        "limit_reached": "one of kwsniff's limits was reached",
    },
    "protocol": {
        "empty": "no payload",
        "kafka": "Kafka",
        "tls": "TLS: encrypted",
        "http": "HTTP",
        "ssh": "SSH",
        "proxy": "PROXY protocol",
        "other": "none of these",
        "undecided": "too little was seen to tell",
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
    },
    "role": {
        "handshake": "by the TCP handshake",
        "content": "by who sends requests",
        "port": "by the port numbers",
        "unknown": "not told apart: the sender of the first packet is called client",
    },
    "end": {
        "open": "still open when the capture ended",
        "fin": "closed",
        "reset": "reset",
        "reused": "a new connection with the same addresses and ports began",
        "evicted": "given up: too many were open at once",
    },
    "caller": {
        "client": "a client",
        "replica": "a broker that fetches as a follower",
        "broker": "a broker or controller, with an API that only they use",
    },
    "wait": {
        "none": "no wait that the broker meant",
        "long_poll": "a fetch waited for data until max_wait_ms was over, and answered with too little",
        "long_poll_possible": "a fetch that may wait came back with data after more than 1 ms: part of "
        "broker_ns may be waiting for data, the capture cannot tell",
        "throttle": "a quota: the broker held the answer back (before KIP-219) or kept the connection muted",
    },
    "vantage": {
        "client": "at the client, or near it",
        "broker": "at the broker, or near it",
        "between": "on the way: neither side answers much faster than the other",
        "unknown": "too little was seen to tell",
    },
    "codec": {
        "none": "not compressed",
        "gzip": "gzip",
        "snappy": "snappy",
        "lz4": "LZ4",
        "zstd": "Zstandard",
        "unknown": "a codec that no known Kafka release has",
    },
    "timestamp_type": {
        "create_time": "the producer",
        "log_append_time": "the broker, when it wrote the batch",
        "none": "nobody: message format 0 has no times",
    },
    "direction": {"client": "sent by the client", "broker": "sent by the broker"},
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
    },
}

WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    name: {word: meaning for word, meaning in words.items() if word in ENUMS[name]}
    for name, words in _ALL.items()
    if name in ENUMS
}
