"""Where another reader sees the captures of ../shared otherwise than kwsniff does, and why.

A difference that is not in here fails its test; so does one that is in here and is none any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Difference(NamedTuple):
    """What differs ("packets", "tcp_packets", "fragments", "connections", "bytes", "times") and why."""

    what: frozenset[str]
    why: str


def _differ(what: str, why: str) -> Difference:
    return Difference(frozenset(what.split()), why)


_CUT = _differ(
    "tcp_packets", "The TCP header is cut before its flags: tshark shows the ports, kwsniff says malformed."
)
_LATE = _differ("times", "A fraction of a second or more is no time to kwsniff; tshark writes it as it is.")
_SWITCH = _differ("packets times", "tshark 4.0 refuses files with this link type (a switch's tag).")
_TCPDUMP = "tcp/the-tcpdump-group+tcpdump"

_BIG = tuple(
    f"tcp/the-tcpdump-group+tcpdump/bigtcp-ipv{outer}-{tunnel}-ipv{inner}.pcap"
    for outer in (4, 6)
    for tunnel in ("geneve", "vxlan")
    for inner in (4, 6)
)

TSHARK: Mapping[str, Difference] = {
    "tcp/seladb+PcapPlusPlus/Tests__Packet++Test__PacketExamples__dns_over_tcp.pcapng": _differ(
        "connections bytes",
        "A segment comes again 51 years later, by the file's own clock: another connection, after "
        "`idle_seconds`; to tshark a retransmission.",
    ),
    "tcp/seladb+PcapPlusPlus/Tests__Packet++Test__PacketExamples__tcp-malformed.pcap": _differ(
        "tcp_packets connections",
        "The data offset points behind the segment: malformed; tshark shows the ports.",
    ),
    "tcp/secdev+scapy/http_chunk.pcap.gz": _differ(
        "bytes",
        "The first segment of the client is a keep-alive: tshark says so, and counts its byte of garbage.",
    ),
    f"{_TCPDUMP}/bigtcp-ipv6.pcap": _differ(
        "connections bytes",
        "Payload length 0 without a jumbo option (Linux BIG TCP): the frame's length counts, not for tshark.",
    ),
    f"{_TCPDUMP}/brcm-tag.pcap": _SWITCH,
    f"{_TCPDUMP}/brcm-tag-prepend.pcap": _SWITCH,
    f"{_TCPDUMP}/dsa.pcap": _SWITCH,
    f"{_TCPDUMP}/dsa-high-vid.pcap": _SWITCH,
    f"{_TCPDUMP}/tcp_header_heapoverflow.pcap": _CUT,
    f"{_TCPDUMP}/timestamp_invalid_micro.pcap": _LATE,
    f"{_TCPDUMP}/timestamp_invalid_nano.pcap": _LATE,
    "tcp/zeek+zeek/pppoe-over-qinq.pcap": _differ(
        "tcp_packets",
        "Six packets are longer by their IP header than by PPPoE's length (a box took padding for payload): "
        "a receiver drops them, kwsniff says malformed, tshark cuts them.",
    ),
    "tcp/zeek+zeek/tcp__rst-inject-rae.pcap": _differ(
        "bytes",
        "What the client sends after the second RST is counted as `after_end`: nobody answers it.",
    ),
    "tcp/zeek+zeek/trunc__ip-discarder-truncated-tcp-oob.pcapng": _CUT,
    **dict.fromkeys(
        _BIG,
        _differ(
            "tcp_packets connections bytes",
            "Packets of more than 64 KiB inside tunnels, with lengths of 0 in their IP headers; tshark 4.0 "
            "reads nothing behind those.",
        ),
    ),
}

_TUNNEL = _differ("tcp", "Inside a tunnel or a link type that kwsniff does not open.")
_CUT_PAYLOAD = _differ(
    "payload missing", "The list counts payload as it was on the wire; a snaplen cut it off."
)
_TAIL = _differ(
    "missing",
    "The list counts holes before captured bytes. These were acknowledged, and nothing was captured "
    "behind them: tshark says `ACKed unseen segment`.",
)
_ZEEK = "tcp/zeek+zeek"
_SAME = (
    "tcp/seladb+PcapPlusPlus/Tests__Packet++Test__PacketExamples__dns_over_tcp.pcapng",
    "tcp/seladb+PcapPlusPlus/Tests__Packet++Test__PacketExamples__tcp-malformed.pcap",
    f"{_TCPDUMP}/bigtcp-ipv6.pcap",
    f"{_ZEEK}/pppoe-over-qinq.pcap",
)
_TUNNELS = (
    "tcp/seladb+PcapPlusPlus/Tests__ExamplesTest__pcap_examples__tcp-reassembly.pcap",
    f"{_ZEEK}/tunnels__gre-aruba-amsdu.pcap",
    f"{_ZEEK}/tunnels__gre-aruba.pcap",
    f"{_ZEEK}/tunnels__gre-over-udp-4754.pcap",
)
_TAILS = (
    "tcp/deepflowio+deepflow/flow_generator__client-keep-alive.pcap",
    "tcp/deepflowio+deepflow/flow_generator__l4-source-port-reuse.pcap",
    "tcp/deepflowio+deepflow/flow_generator__rtt-rtt-2.pcap",
    "tcp/deepflowio+deepflow/flow_generator__syn-1.pcap",
    f"{_ZEEK}/tcp__miss_end_data.pcap",
)

PROVENANCE: Mapping[str, Difference] = {
    **dict.fromkeys(_TUNNELS, _TUNNEL),
    **dict.fromkeys(_BIG, _differ("tcp streams payload", TSHARK[_BIG[0]].why)),
    "tcp/deepflowio+deepflow/common__decapsulate_erspan1.pcap": _differ(
        "missing", "The list counts losses by segments."
    ),
    "tcp/deepflowio+deepflow/common__ip6-vxlan.pcap": _differ("missing", _CUT_PAYLOAD.why),
    **{name: _differ(what, TSHARK[name].why) for name, what in zip(
        _SAME, ("streams", "tcp streams", "tcp streams payload", "tcp"), strict=True
    )},
    **{f"{_TCPDUMP}/{name}": _CUT_PAYLOAD for name in (
        "heapoverflow-tcp_print.pcap", "tcp-auth-heapoverflow.pcap",
    )},
    **{f"{_TCPDUMP}/{name}": _differ("payload", _CUT_PAYLOAD.why) for name in (
        "tcp_rst_data-trunc.pcap", "tcp_rst_diag_payload-trunc.pcap",
    )},
    **{f"{_ZEEK}/{name}": _CUT_PAYLOAD for name in (
        "tcp__retransmit-fast009.pcap", "tcp__timestamp.pcap", "tcp__truncated-header.pcap",
    )},
    **dict.fromkeys(_TAILS, _TAIL),
    "tcp/deepflowio+deepflow/flow_generator__xiangdao-retrans.pcap": _differ(
        "missing", "The file forgot that a snaplen cut its packets at 66 bytes; their IP headers know."
    ),
}  # fmt: skip
