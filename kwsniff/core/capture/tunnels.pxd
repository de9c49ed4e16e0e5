# cython: language_level=3
# Tunnel headers (VXLAN, Geneve, GRE, ERSPAN, GTP-U): the inner packet, its offset and its network.
# tunnels.pyx has the rules.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from kwsniff.core.bytes.span cimport Span

cdef enum:
    ETHER_FRAME = 0x6558        # transparent Ethernet bridging: a whole frame follows
    BY_VERSION = 0x10001        # no EtherType: the version of IP says what follows

# What a tunnel's header says of what is behind it.
cdef struct Inner:
    int tunnel                  # TUNNEL_NONE: no tunnel that is read
    uint32_t ether_type         # of what is inside, ETHER_FRAME or BY_VERSION
    size_t header               # bytes before it
    uint64_t network            # VNI, key, session or TEID; 0: none

cdef bint is_tunnel_port(uint32_t port) noexcept nogil
cdef Inner open_udp(uint32_t source_port, uint32_t target_port, Span payload) noexcept nogil
cdef Inner open_gre(Span packet) noexcept nogil
cdef bint is_plausible_ip(Span packet, uint32_t length) noexcept nogil
cdef int write_tunnels(uint32_t chain, uint8_t* text) noexcept nogil
