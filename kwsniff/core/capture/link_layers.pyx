# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""Headers of link types that are met now and then: PPP, Cisco HDLC, NFLOG, PPI, radiotap and IEEE 802.11.

Rules
  1. Only headers are read: headers.pyx continues with what they carry. Ethernet, SLL and raw IP are read there.
  2. Of IEEE 802.11 whole data frames are read; management and control frames, frames without data, encrypted ones and
     aggregates carry nothing that can be read.

    PPP       FF 03? | protocol 8 or 16 | packet                      with direction: one byte before
    C-HDLC    address 8 | control 8 | EtherType 16 | packet
    NFLOG     family 8 | version 8 | resource 16 | (length 16, type 16, value, padding to 4)*    type 9: the IP packet
    PPI       version 8 | flags 8 | length 16 LE | link type 32 LE | fields | frame
    radiotap  version 8 | pad 8 | length 16 LE | present 32 LE | fields | 802.11 frame
    802.11    control 16 | duration 16 | 3 addresses | sequence 16 | address 4? | QoS 16? | HT 32? | LLC/SNAP

Source: RFC 1661, 1662, 1547; the link type list of tcpdump.org; linux/netfilter/nfnetlink_log.h; the PPI header format
1.0.10; radiotap.org; IEEE 802.11-2020 9.2.4.
"""

from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memset

from kwsniff.core.bytes.span cimport Span, be16, be32, drop, file16, has, u8
from kwsniff.core.capture.tunnels cimport BY_VERSION

cdef enum:
    MOST_FIELDS = 64            # TLVs of NFLOG
    NFLOG_PAYLOAD = 9


cdef inline uint32_t le16(Span span, size_t at) noexcept nogil:
    return u8(span, at) | u8(span, at + 1) << 8


cdef inline uint32_t le32(Span span, size_t at) noexcept nogil:
    return le16(span, at) | le16(span, at + 2) << 16


cdef Opened open_link(int32_t link_type, Span packet, bint swapped) noexcept nogil:
    cdef Opened opened
    memset(&opened, 0, sizeof(Opened))
    opened.link_type = -1
    if link_type in (LINK_PPP, LINK_PPP_HDLC):
        open_ppp(packet, &opened)
    elif link_type == LINK_PPP_WITH_DIR:
        opened.header = 1
        open_ppp(packet, &opened)
    elif link_type == LINK_PPP_PPPD:        # the direction overwrites the address: one of the two fields is left
        opened.header = 2 if u8(packet, 1) == 0x03 else 1
        open_ppp(packet, &opened)
    elif link_type == LINK_PPP_ETHER:
        opened.ether_type = 0x8864
    elif link_type == LINK_C_HDLC:
        open_hdlc(packet, &opened)
    elif link_type == LINK_C_HDLC_WITH_DIR:
        opened.header = 1
        open_hdlc(packet, &opened)
    elif link_type == LINK_NFLOG:
        open_nflog(packet, &opened, swapped)
    elif link_type == LINK_PPI:
        open_ppi(packet, &opened)
    elif link_type == LINK_RADIOTAP:
        open_radiotap(packet, &opened)
    elif link_type == LINK_IEEE802_11:
        open_wireless(packet, &opened)
    else:
        opened.verdict = LINK_UNKNOWN
    if opened.verdict == LINK_OPEN and packet.num < opened.header:
        opened.verdict = LINK_BROKEN
    return opened


cdef void open_ppp(Span packet, Opened* opened) noexcept nogil:
    cdef uint32_t protocol
    if be16(packet, opened.header) == 0xFF03:
        opened.header += 2
    elif be16(packet, opened.header) in (0x0F00, 0x8F00):      # Cisco's HDLC in captures of serial lines
        open_hdlc(packet, opened)
        return
    # A protocol's number has an even first byte and an odd second one; an odd first one is all of it (RFC 1661 2).
    protocol = u8(packet, opened.header)
    if protocol & 1:
        opened.header += 1
    else:
        protocol = be16(packet, opened.header)
        opened.header += 2
    if protocol == 0x0021:
        opened.ether_type = 0x0800
    elif protocol == 0x0057:
        opened.ether_type = 0x86DD
    elif protocol in (0x0281, 0x0283):
        opened.ether_type = 0x8847
    else:
        opened.verdict = LINK_NO_DATA


cdef void open_hdlc(Span packet, Opened* opened) noexcept nogil:
    opened.ether_type = be16(packet, opened.header + 2)
    opened.header += 4
    if opened.ether_type < 0x0600:
        opened.verdict = LINK_NO_DATA


cdef void open_nflog(Span packet, Opened* opened, bint swapped) noexcept nogil:
    """Its lengths are in the byte order of the machine that captured, which is that of the file."""
    cdef uint32_t length, kind
    cdef size_t at = 4
    cdef int i
    opened.verdict = LINK_NO_DATA
    if u8(packet, 1) or u8(packet, 0) not in (2, 10):
        return
    for i in range(MOST_FIELDS):
        if not has(packet, at, 4):
            return
        length = file16(packet, at, swapped)
        kind = file16(packet, at + 2, swapped) & 0x7FFF
        if length < 4:
            opened.verdict = LINK_BROKEN
            return
        if kind == NFLOG_PAYLOAD:
            opened.verdict = LINK_OPEN
            opened.ether_type = BY_VERSION
            opened.header = at + 4
            return
        at += (<size_t>length + 3) & ~(<size_t>3)


cdef void open_ppi(Span packet, Opened* opened) noexcept nogil:
    opened.header = le16(packet, 2)
    opened.link_type = <int32_t>le32(packet, 4)
    if packet.num < 8 or opened.header < 8 or opened.link_type == LINK_PPI or opened.link_type < 0:
        opened.verdict = LINK_BROKEN


cdef void open_radiotap(Span packet, Opened* opened) noexcept nogil:
    cdef size_t length = le16(packet, 2)
    if packet.num < 8 or u8(packet, 0) or length < 8:
        opened.verdict = LINK_BROKEN
        return
    opened.header = length
    open_wireless(drop(packet, length), opened)


cdef void open_wireless(Span frame, Opened* opened) noexcept nogil:
    """Moves `header` behind the frame's own one, to LLC."""
    cdef uint32_t control = u8(frame, 0), flags = u8(frame, 1)
    cdef size_t header = 24
    if frame.num < 24:
        opened.verdict = LINK_BROKEN if control & 0x0F == 8 else LINK_NO_DATA
        return
    # Version 0, type data, with data, not encrypted.
    if control & 0x0F != 8 or control & 0x40 or flags & 0x40:
        opened.verdict = LINK_NO_DATA
        return
    if flags & 3 == 3:
        header += 6
    if control & 0x80:
        if u8(frame, header) & 0x80:    # several packets in one frame
            opened.verdict = LINK_NO_DATA
            return
        header += 2
        if flags & 0x80:
            header += 4
    if be32(frame, header) >> 8 != 0xAAAA03 and frame.num >= header + 4 and be16(frame, header + 2) == 0xAAAA:
        header += 2                     # radiotap's data pad: some cards hand headers over in whole words
    opened.header += header
    opened.ether_type = 0
