"""What of a capture was not read, by name."""

from __future__ import annotations

import pytest

from kwsniff.tables.skipped_protocols import encapsulations, format_counts, not_read


def test_packets_of_one_name_are_added_up_and_the_most_come_first() -> None:
    facts = {
        "packets": 99,
        "unread_protocol_17": 5,
        "unread_protocol_250": 1,
        "unread_link_9": 2,
        "unread_link_50": 7,
        "unread_ether_arp": 9,
        "unread_protocol_50": 9,
        "unread_protocol_88": 0,
        "tunnel_vxlan": 3,
        "tunnel_gre": 0,
    }
    found = not_read(facts)
    assert found["PPP"] == 9
    assert format_counts(found) == ["ARP=9", "ESP=9", "PPP=9", "UDP=5", "IP protocol 250=1"]
    assert format_counts(encapsulations(facts)) == ["vxlan=3"]
    assert format_counts({}) is None


@pytest.mark.parametrize(
    ("link", "name"),
    [
        (146, "link type 146"),
        (147, "link type USER0"),
        (162, "link type USER15"),
        (163, "IEEE 802.11 (AVS)"),
        (319, "link type 319"),
        (320, "other link types"),
    ],
)
def test_link_types_have_names(link: int, name: str) -> None:
    """LINKTYPE_USER0 is 147 and LINKTYPE_USER15 is 162, by tcpdump.org."""
    assert not_read({f"unread_link_{link}": 1}) == {name: 1}
