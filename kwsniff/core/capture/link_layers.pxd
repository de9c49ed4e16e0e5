# cython: language_level=3
# Headers of link types that are met now and then: PPP, Cisco HDLC, NFLOG, PPI, radiotap and IEEE 802.11.
# link_layers.pyx has the rules.

from libc.stdint cimport int32_t, uint32_t

from kwsniff.core.bytes.span cimport Span

cdef enum LinkType:
    LINK_NULL = 0
    LINK_ETHERNET = 1
    LINK_PPP = 9
    LINK_RAW_BSD = 12
    LINK_RAW_OPENBSD = 14
    LINK_PPP_HDLC = 50
    LINK_PPP_ETHER = 51
    LINK_RAW = 101
    LINK_C_HDLC = 104
    LINK_IEEE802_11 = 105
    LINK_LOOP = 108
    LINK_SLL = 113
    LINK_RADIOTAP = 127
    LINK_PPP_PPPD = 166
    LINK_PPI = 192
    LINK_PPP_WITH_DIR = 204
    LINK_C_HDLC_WITH_DIR = 205
    LINK_IPV4 = 228
    LINK_IPV6 = 229
    LINK_NFLOG = 239
    LINK_SLL2 = 276

cdef enum LinkVerdict:
    LINK_OPEN = 0
    LINK_NO_DATA = 1            # a frame of the link's own, or one that is encrypted
    LINK_BROKEN = 2
    LINK_UNKNOWN = 3

# Where the packet begins that a frame carries.
cdef struct Opened:
    int verdict
    uint32_t ether_type         # BY_VERSION of tunnels.pxd: none, the version of IP says it; below 0x600: LLC follows
    size_t header
    int32_t link_type           # what PPI carries; -1: the frame is open

cdef Opened open_link(int32_t link_type, Span packet, bint swapped) noexcept nogil
