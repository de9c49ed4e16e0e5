# cython: language_level=3
# Made by `python -m tests.house.declared`: edit kwsniff/limits.py, not this file.
from libc.stdint cimport int64_t

cdef struct Limits:
    int64_t memory
    int64_t packet_bytes
    int64_t interfaces
    int64_t ip_reassembly
    int64_t connections
    int64_t idle_seconds
    int64_t ended_seconds
    int64_t reorder_bytes
    int64_t reorder_segments
    int64_t reorder_bytes_total
    int64_t reorder_packets
    int64_t frame_bytes
    int64_t frame_kept_bytes
    int64_t frame_kept_bytes_total
    int64_t message_fields
    int64_t in_flight_requests
    int64_t orphan_responses
    int64_t orphan_bytes
    int64_t in_flight_bytes_total
    int64_t request_context_bytes
    int64_t rows_per_message
    int64_t session_partitions
    int64_t tls_buffer_bytes
    int64_t tls_tries
    int64_t resync_bytes
    int64_t topic_ids
    int64_t tcp_events
    int64_t duplicate_candidates
    int64_t decompressed_bytes
    int64_t shown_fields
    int64_t shown_records
    int64_t finding_rows
