# cython: language_level=3
# How a connection was opened, closed and reset: what becomes columns of `connections`, once.
#
# Rule 1: no packet with payload touches these, but to see that no reset waits (`Reset.by`).
#
#     SYN ... SYN+ACK ... ACK | Handshake     FIN, RST | Closing     RST | Reset, ResetMarks     ICMP | IcmpError

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

# What tells whether a reset comes from the side that it names, see resets.pyx.
cdef struct ResetMarks:
    bint acknowledges       # has an acknowledgement: its sender knows the connection
    bint stamped            # has a timestamp,
    bint others_stamped     # as its sender's other packets have
    bint compared           # its sender sent something before
    int32_t ttl_step        # its time to live less the nearest of its sender's packets before
    int32_t ident_step      # the same of IP's identification, modulo 2^16; -1: it does not count its sender's packets
    uint32_t window

cdef struct Handshake:
    int64_t syn_time
    int64_t first_syn_time
    int64_t connect_time    # nanoseconds from the first SYN to the first answer to one, or -1
    int64_t round_trip      # nanoseconds from SYN to the handshake's last ACK, or -1
    int64_t syn_retries
    int other_opener        # of the connection that `other_isn` may be about
    bint unscaled           # a SYN had no scale: windows are what they say

cdef struct Closing:
    int closer              # endpoint that closed it first, with FIN or RST, or -1
    int64_t close_frame
    int64_t close_time
    int fin_by              # endpoint that sent the first FIN, or -1
    int64_t fin_frame
    int64_t fin_time

cdef struct Reset:
    int by                  # endpoint whose RST waits to be believed, or -1
    int32_t ahead           # how far it was from the number expected
    int64_t since
    int sender              # of the latest reset that counts,
    uint32_t seq            # its number,
    bint answers_unseen     # and whether it answers a packet that is not here
    int64_t time
    int64_t frame
    int64_t capture
    ResetMarks marks

cdef struct IcmpError:
    int kind                # what ICMP said of its packets (declared in tables), or -1,
    uint8_t source[16]      # who said so,
    int64_t frame           # and where
