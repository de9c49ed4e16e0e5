# cython: language_level=3
# Made by `python -m tests.house.declared`: edit kwsniff/limits.py, not this file.
from libc.stdint cimport int64_t

cdef struct Limits:
    int64_t memory
    int64_t packet_bytes
    int64_t interfaces
    int64_t datagrams
    int64_t connections
    int64_t idle_seconds
    int64_t ended_seconds
    int64_t held_bytes
    int64_t held_segments
    int64_t held_bytes_total
    int64_t gap_patience
    int64_t frame_bytes
    int64_t frame_kept_bytes
    int64_t frame_kept_bytes_total
    int64_t cells
    int64_t outstanding_calls
    int64_t parked_responses
    int64_t parked_bytes
    int64_t waiting_bytes_total
    int64_t call_facts_bytes
    int64_t hits_per_message
    int64_t session_partitions
    int64_t tls_held_bytes
    int64_t tls_tries
    int64_t search_bytes
    int64_t topic_ids
    int64_t tcp_events
    int64_t twin_candidates
    int64_t decompressed_bytes
    int64_t shown_fields
    int64_t shown_records
    int64_t finding_rows
