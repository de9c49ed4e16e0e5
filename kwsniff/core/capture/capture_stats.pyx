# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""The statistics of a capture, as facts for Python.

Rules
  1. Asked for once per capture: nothing here works on packets.
"""

from libc.stdint cimport int64_t

from kwsniff.core.capture.reader cimport NO_TIME, NUM_UNREAD, UNREAD_ETHER, UNREAD_PROTOCOL, Reader

from kwsniff.core.capture.packets import PACKET_VERDICTS
from kwsniff.core.declared import ENUMS

# In the order of number_of_type of headers.pyx.
ETHER_NAMES = ("arp", "rarp", "pppoe_discovery", "pppoe_session", "jumbo", "eapol", "lldp", "macsec", "ptp", "fcoe", "fip",
               "aoe", "loopback", "nsh", "llc", "other")


cdef dict tell_contents(int64_t* tunnels, int64_t* unread):
    """Packets per tunnel and per what is not read, those that there are, as facts of a capture."""
    cdef int i
    told = {f"tunnel_{name}": tunnels[number + 1] for number, name in enumerate(ENUMS["tunnel"]) if tunnels[<int>number + 1]}
    for i in range(<int>NUM_UNREAD):
        if not unread[i]:
            continue
        if i < UNREAD_PROTOCOL:
            name = f"link_{i}"
        elif i < UNREAD_ETHER:
            name = f"protocol_{i - UNREAD_PROTOCOL}"
        else:
            name = f"ether_{ETHER_NAMES[i - UNREAD_ETHER]}"
        told[f"unread_{name}"] = unread[i]
    return told


cdef dict tell_times(Reader* reader):
    """Of packets that were read, and of those outside of the bounds; None where there are none with a time."""
    return {
        "first_time": None if reader.first_time == NO_TIME else reader.first_time,
        "last_time": None if reader.last_time == NO_TIME else reader.last_time,
        "other_first_time": None if reader.other_first == NO_TIME else reader.other_first,
        "other_last_time": None if reader.other_last == NO_TIME else reader.other_last,
    }


cdef dict tell_packets(Reader* reader):
    """How many got which verdict, what they carry, and their times."""
    verdicts = {f"packets_{name}": reader.verdicts[<int>number] for number, name in enumerate(PACKET_VERDICTS)}
    return verdicts | tell_times(reader) | tell_contents(reader.tunnels, reader.unread)


cdef dict tell_fragments(Reader* reader):
    """The share of IP fragments in that."""
    return tell_contents(reader.fragment_tunnels, reader.fragment_unread) | {
        f"packets_{name}": reader.fragment_verdicts[<int>number] for number, name in enumerate(PACKET_VERDICTS)
    } | {"tcp_payload_bytes": reader.fragment_payload_bytes}
