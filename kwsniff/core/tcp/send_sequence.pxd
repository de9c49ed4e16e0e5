# cython: language_level=3
# The numbers of one direction: what was handed on, what was acknowledged, what its sender said it had come to.
#
# Rule 1: numbers are compared by `distance`; a position (`offset`) is a 64-bit count.
# Rule 2: nearly every packet reads most of these: no array belongs here.
#
#     isn   acked (SND.UNA)   next_seq, offset   sent (SND.NXT)   fin_seq
#     ---|------|-----------------|-----------------|----------------|
#
# Source: RFC 9293 3.3.1 (send sequence variables).

from libc.stdint cimport int64_t, uint32_t

cdef struct SendSequence:
    bint known              # next_seq means something
    bint acked_known
    bint sent_known
    bint beginning          # where the stream begins is not settled: what came is held
    uint32_t next_seq
    uint32_t acked          # highest acknowledgement of this direction's bytes, by its receiver
    int64_t offset          # stream position of next_seq; 0 is the first byte after the handshake or in the capture
    uint32_t sent           # highest number that its sender said it had come to, without payload
    uint32_t flight         # most bytes in flight at one time
    uint32_t latest_ack     # what its latest segment with payload or FIN acknowledged
    bint fin
    bint fin_done
    uint32_t fin_seq
    bint syn
    uint32_t isn
    uint32_t acked_from     # the first acknowledgement that was seen
    uint32_t first_seq      # of a direction without a SYN: the number of its first byte that was seen
    int64_t begun_at        # packets of the connection when what came was first held because of `beginning`
    bint other_syn          # a SYN with another initial number came while this connection was alive
    uint32_t other_isn
    uint32_t at_reset       # how far it had come when the connection was reset
    bint goes_on_unseen     # behind the reset its sender showed that it had sent what is not here
