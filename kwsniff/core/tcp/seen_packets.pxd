# cython: language_level=3
# The latest packets of one direction, as IP and TCP mark them: for copies (duplicates.pyx), packets that are missing
# (tail_loss.pxd) and forged resets (resets.pyx).
#
# Rule 1: every packet writes here, and those that may be copies search the ring: it is the last field.
#
#     Seen   | mark | time, place |   SEEN of them, overwritten in turn

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef struct Seen:
    uint32_t mark
    uint32_t when           # its time in microseconds, 24 bits, and a hash of the place it was captured at

cdef enum:
    SEEN = 64               # a power of two

cdef struct SeenPackets:
    uint32_t num
    uint32_t least_ttl      # of IP, in all packets but resets, those of other places included;
    uint32_t most_ttl       # 0: there was none
    uint32_t last_ident     # of IP, in the latest packet,
    bint idents_differ      # and whether they tell packets from each other
    bint numbered           # and count the packets of this direction: see tail_loss.pxd
    bint bare               # the latest packet had no payload
    uint32_t unseen         # packets missing before the latest one, where that tells how long it was on its way,
    uint32_t skipped        # and in any case; 0: none, or not known
    uint64_t network        # that its first packet came from
    int64_t silence         # before the latest one, where packets are missing
    int64_t seen_time       # of the latest packet
    Seen latest[64]
