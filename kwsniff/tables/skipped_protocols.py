"""Names of skipped protocols and of tunnels, from a capture's facts.

Source: the link type list of tcpdump.org, IANA's protocol numbers and EtherTypes.
"""

from collections.abc import Mapping
from typing import Any, Final

_LINKS: Final = {
    6: "Token Ring", 7: "ARCNET", 8: "SLIP", 9: "PPP", 10: "FDDI", 50: "PPP", 51: "PPPoE", 100: "ATM",
    104: "Cisco HDLC", 105: "IEEE 802.11", 107: "Frame Relay", 114: "LocalTalk", 117: "pflog",
    119: "IEEE 802.11 (Prism)", 122: "IP over Fibre Channel", 123: "SunATM", 127: "IEEE 802.11",
    129: "ARCNET", 138: "IP over FireWire", 139: "MTP2", 140: "MTP2", 141: "MTP3", 142: "SCCP",
    143: "DOCSIS", 144: "IrDA", 163: "IEEE 802.11 (AVS)", 165: "BACnet", 166: "PPP", 169: "GPRS LLC",
    177: "LAPD", 182: "Frame Relay (multi-link)", 187: "Bluetooth", 189: "USB", 192: "PPI",
    195: "IEEE 802.15.4", 197: "ERF", 199: "IPMB", 201: "Bluetooth", 202: "AX.25", 203: "LAPD", 204: "PPP",
    205: "Cisco HDLC", 206: "Frame Relay", 209: "I2C", 215: "IEEE 802.15.4", 220: "USB",
    224: "Fibre Channel", 225: "Fibre Channel", 226: "Solaris ipnet", 227: "CAN bus", 230: "IEEE 802.15.4",
    231: "D-Bus", 235: "DVB-CI", 239: "NFLOG", 240: "netANALYZER", 241: "netANALYZER", 242: "InfiniBand",
    243: "MPEG-2 TS", 245: "NFC", 247: "InfiniBand", 248: "SCTP", 249: "USB", 251: "Bluetooth LE",
    252: "Wireshark's exported PDUs", 253: "Netlink", 254: "Bluetooth", 256: "Bluetooth LE", 257: "PROFIBUS",
    258: "pktap", 259: "EPON", 266: "USB", 270: "LoRaTap", 271: "vsock", 272: "Bluetooth LE",
    274: "Ethernet mPackets", 280: "Linux vsock", 283: "IEEE 802.15.4",
}  # fmt: skip
_PROTOCOLS: Final = {
    0: "IPv6 hop-by-hop options", 1: "ICMP", 2: "IGMP", 4: "IP in IP", 17: "UDP", 33: "DCCP",
    41: "IPv6 in IP", 46: "RSVP", 47: "GRE", 50: "ESP", 51: "AH", 58: "ICMPv6", 59: "no next header",
    88: "EIGRP", 89: "OSPF", 97: "EtherIP", 103: "PIM", 108: "IPComp", 112: "VRRP", 115: "L2TP",
    132: "SCTP", 136: "UDP-Lite", 137: "MPLS in IP",
}  # fmt: skip
_ETHER: Final = {
    "arp": "ARP", "rarp": "RARP", "pppoe_discovery": "PPPoE discovery", "pppoe_session": "PPPoE, not IP",
    "jumbo": "jumbo LLC", "eapol": "EAPOL", "lldp": "LLDP", "macsec": "MACsec", "ptp": "PTP", "fcoe": "FCoE",
    "nsh": "NSH", "fip": "FCoE", "aoe": "ATA over Ethernet", "loopback": "Ethernet loopback",
    "llc": "LLC", "other": "other EtherTypes",
}  # fmt: skip


def not_read(facts: Mapping[str, Any]) -> dict[str, int]:
    """Skipped packets by the name of their protocol."""
    found: dict[str, int] = {}
    for fact, number in facts.items():
        if fact.startswith("unread_"):
            name = _name(*fact.removeprefix("unread_").split("_", 1))
            found[name] = found.get(name, 0) + number
    return found


def encapsulations(facts: Mapping[str, Any]) -> dict[str, int]:
    """Packets per tunnel."""
    return {
        fact.removeprefix("tunnel_"): number for fact, number in facts.items() if fact.startswith("tunnel_")
    }


def format_counts(numbers: Mapping[str, int]) -> list[str] | None:
    """`name=number`, most first."""
    ordered = sorted(numbers.items(), key=lambda item: (-item[1], item[0]))
    return [f"{name}={number}" for name, number in ordered if number] or None


def _name(kind: str, which: str) -> str:
    if kind == "ether":
        return _ETHER[which]
    number = int(which)
    if kind == "protocol":
        return _PROTOCOLS.get(number, f"IP protocol {number}")
    if 147 <= number <= 162:
        return f"link type USER{number - 147}"
    return _LINKS.get(number, f"link type {number}" if number < 320 else "other link types")
