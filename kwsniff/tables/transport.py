"""The tables about what carried the calls: connections, anomalies, captures."""

from dataclasses import replace

from kwsniff.tables.column import Column, TableSchema
from kwsniff.tables.columns import (
    BROKER_ADDRESS,
    BROKER_PORT,
    CALL_ID,
    CALLER,
    CAPTURE,
    CLIENT_ADDRESS,
    CLIENT_ID,
    CLIENT_PORT,
    CONNECTION_ID,
    PRINCIPAL,
    SASL_MECHANISM,
    SOFTWARE_NAME,
    SOFTWARE_VERSION,
)
from kwsniff.tables.losses import LOSSES, each_side
from kwsniff.tables.proven_ends import EVIDENCE, OPENING
from kwsniff.tables.words import WORDS


def _both_sides(name: str, doc: str, source: str, unit: str | None = None) -> tuple[Column, Column]:
    client, broker = (
        Column(name=f"{side}_{name}", type="int64", unit=unit, doc=f"{doc} {side}.", source=source)
        for side in ("client", "broker")
    )
    return client, broker


def _count(name: str, doc: str, source: str, *, unit: str | None = None, null: str | None = None) -> Column:
    return Column(name=name, type="int64", unit=unit, doc=doc, source=source, null=null)


def _word(name: str, enum: str, doc: str, source: str, null: str | None = None) -> Column:
    return Column(name=name, type="string", enum=enum, doc=doc, source=source, null=null)


def _moment(name: str, doc: str, null: str, *, statistics: bool = False) -> Column:
    source = "packet time"
    return Column(name=name, type="time", doc=doc, source=source, null=null, statistics=statistics)


_NO_TIME = "the packets carry no time"

CONNECTIONS = TableSchema(
    name="connections",
    row="one TCP connection",
    doc="Every TCP connection of the captures, whatever it carries.",
    columns=(
        CONNECTION_ID,
        replace(CAPTURE, doc="The capture file in which the connection was first seen."),
        CLIENT_ADDRESS,
        CLIENT_PORT,
        BROKER_ADDRESS,
        BROKER_PORT,
        _word("protocol", "protocol", "What the connection carries.", "first bytes of both directions"),
        _word("role", "role", "How client and broker were told apart.", "TCP flags, contents, ports"),
        _moment("first_time", "When the first packet passed.", _NO_TIME, statistics=True),
        _moment("last_time", "When the last packet passed.", _NO_TIME),
        _count("first_frame", "First packet, as Wireshark counts.", "position of the packet in its capture"),
        _count("last_frame", "Last packet, as Wireshark counts.", "position of the packet in its capture"),
        Column(
            name="handshake",
            type="bool",
            doc="Whether the connection was seen from its beginning.",
            source="TCP SYN",
        ),
        _count(
            "round_trip_ns",
            "Network round trip as the handshake shows it.",
            "times of SYN, SYN-ACK and ACK",
            unit="nanoseconds",
            null="the handshake was not seen whole",
        ),
        *_both_sides("bytes", "New bytes of the stream sent by the", "TCP payload", "bytes"),
        *_both_sides("packets", "Packets sent by the", "TCP segments"),
        *_both_sides("retransmitted_bytes", "Bytes sent again by the", "TCP sequence numbers", "bytes"),
        *_both_sides("out_of_order", "Packets out of order from the", "TCP sequence numbers"),
        *_both_sides(
            "missing_bytes", "Bytes not in the capture, sent by the", "TCP sequence numbers", "bytes"
        ),
        *LOSSES,
        _count("calls", "Calls on the connection.", "rows of api_calls"),
        replace(CLIENT_ID, doc="The first name the client gave itself.", null="no request named the client"),
        SOFTWARE_NAME,
        SOFTWARE_VERSION,
        replace(SASL_MECHANISM, source="SaslHandshake request, mechanism", null="no SaslHandshake was seen"),
        _word("end", "end", "How the connection ended.", "TCP FIN and RST"),
        *each_side(
            "round_trip_ns",
            "Smallest time from a segment of the {other} to its acknowledgement by the {side}, as seen at "
            "the place of the capture.",
            "times of segments and acknowledgements",
            unit="nanoseconds",
            null="no segment and its acknowledgement were seen",
        ),
        _word(
            "vantage",
            "vantage",
            "Where the capture looks to have been taken.",
            "which side acknowledges faster",
        ),
        *each_side(
            "zero_window_ns",
            "How long the {side} said that it has no room.",
            "TCP window",
            unit="nanoseconds",
        ),
        PRINCIPAL,
        CALLER,
        Column(
            name="tls_version",
            type="string",
            doc="The version of TLS agreed on: 1.3, 1.2 and older, or the number of another.",
            source="ServerHello, supported_versions or legacy_version (RFC 8446 4.1.3)",
            null="not TLS, or no whole ServerHello was captured",
        ),
        Column(
            name="tls_server_name",
            type="string",
            doc="The broker's name as the client wants it.",
            source="ClientHello, server_name (RFC 6066 3)",
            null="not TLS, the client named none, or its ClientHello was not captured",
        ),
        Column(
            name="tls_cipher",
            type="string",
            doc="The cipher suite agreed on, by IANA's name, or the number of one without.",
            source="ServerHello, cipher_suite (RFC 8446 4.1.3)",
            null="not TLS, or no ServerHello was captured",
        ),
        _word(
            "closed_by",
            "direction",
            "Who closed the connection first.",
            "the first TCP FIN or RST that counts",
            "neither side was seen to, or client and broker were not told apart",
        ),
        _count(
            "close_frame",
            "The packet that closed it, as Wireshark counts.",
            "position of that FIN or RST in its capture",
            null="neither side was seen to close it",
        ),
        _moment(
            "close_time", "When that packet passed.", f"neither side was seen to close it, or {_NO_TIME}"
        ),
        *OPENING,
        Column(
            name="encapsulation",
            type="string",
            doc="Tunnels around its first packet that had one, the outermost first, separated by slashes: "
            "vxlan, gre/vxlan. VLAN tags, MPLS and PPPoE are none. Last socks5 or connect, where the "
            "connection is a tunnel through a proxy; broker_address is the proxy's then.",
            source="headers around the innermost IP packet; SOCKS5 (RFC 1928), CONNECT (RFC 9110 9.3.6)",
            null="no tunnel",
        ),
        _count(
            "duplicate_packets",
            "Packets captured again while it was open: copies, not retransmissions. No other figure has "
            "them.",
            "TCP header and IP identification, equal to those of an earlier packet",
        ),
        _count(
            "twin_of",
            "The connection_id of the connection seen first that carries the same bytes, at another place "
            "under other addresses: behind NAT, or behind a proxy or load balancer. Its calls stay rows; "
            "summaries, findings, aggregates, and tables of what happened over several calls leave them out.",
            "initial sequence numbers and messages_hash of both connections",
            null="no other connection was proven to, or `live`, a stream or a data source made the row",
        ),
        _count(
            "twin_delay_ns",
            "How much later the first packet of this connection was seen than that of `twin_of`: the time "
            "between the two places. Of microseconds, as the times of the table are.",
            "first_time of both connections",
            null="no twin; it stands at the other side of a proxy; the two are in different captures, whose "
            "clocks may differ; or a SYN was lost between the places",
            unit="nanoseconds",
        ),
        _word(
            "answered_in",
            "protocol",
            "Protocol of the broker's first bytes, where a client asks in Kafka or TLS: neither of these.",
            "first bytes of the broker",
            "the broker answered in the same protocol, or sent nothing, or the client asked in another one",
        ),
        _word("proxy_header", "proxy_header", "Version of the PROXY header.", "PROXY protocol", "none"),
        _word(
            "tls_handshake",
            "tls_handshake",
            "How far the TLS handshake came, as far as it shows without secrets.",
            "kinds and lengths of TLS records (RFC 8446 2, RFC 5246 7.3)",
            "not TLS, or no ClientHello was captured",
        ),
        _word(
            "tls_client_certificate",
            "tls_client_certificate",
            "Whether the client sent a certificate when the broker asked for one; of TLS 1.3 the lengths of "
            "its first encrypted records tell where it sent none.",
            "Certificate message of the client (RFC 5246 7.4.6, RFC 8446 4.4.2)",
            null="not TLS, or the client was not seen to send a Certificate message",
        ),
        Column(
            name="tls_hello",
            type="bool",
            doc="Whether a ClientHello was seen; without tls_cipher no ServerHello was.",
            source="first record of the client (RFC 8446 4.1.2)",
            null="not TLS",
        ),
        Column(
            name="tls_alert",
            type="string",
            doc="The alert in the place of a first response, or before the handshake was complete: name or "
            "number; `encrypted` where nothing but its length shows that it is one.",
            source="TLS alert (RFC 8446 6)",
            null="none was seen",
        ),
        _word("tls_alert_by", "direction", "Who sent it.", "TLS alert", "none was seen"),
        Column(
            name="proxied_address",
            type="string",
            doc="The client's own address, where a proxy names it; client_address is the proxy's.",
            source="PROXY protocol, version 1 or 2",
            null="no PROXY header, or one that names nobody",
        ),
        Column(
            name="proxied_port",
            type="int32",
            doc="The client's own port.",
            source="PROXY protocol, version 1 or 2",
            null="no PROXY header, or one that names nobody",
        ),
        *(
            _count(
                f"{side}_isn",
                f"The {side}'s initial sequence number, as it was on the wire; where its SYN was not "
                "captured, the number before its first byte that was.",
                "TCP SYN, else the first segment (RFC 9293 3.4)",
                null=f"neither a SYN nor a byte of the {side} was captured, or nobody knows which side it is",
            )
            for side in ("client", "broker")
        ),
        _count(
            "messages_hash",
            "A hash of the first four requests and the first four responses, byte by byte, or of all where a "
            "connection that was closed had fewer: what carries the same messages has the same.",
            "Kafka messages",
            null="one of them was not seen whole, or there were fewer and the connection was not closed",
        ),
        *(
            _count(
                f"{side}_tls_records",
                f"TLS records with data that the {side} sent, as far as they were captured. A message is one "
                "record of up to 16 kB, or several; of TLS 1.3 handshakes, tickets and alerts count too.",
                "headers of TLS records (RFC 8446 5.1)",
                null="not TLS",
            )
            for side in ("client", "broker")
        ),
        *EVIDENCE,
    ),
)

ANOMALIES = TableSchema(
    name="anomalies",
    row="one oddity",
    doc="Everything that is not as it should be, by name: lost segments, torn frames, undecodable messages, "
    "limits reached. Damaged bytes never stop a run: they end up here.",
    columns=(
        CAPTURE,
        replace(CONNECTION_ID, null="it is about the file"),
        replace(CALL_ID, null="it is about no call"),
        _moment("time", "Time of the packet it was noticed at.", "it is about no packet", statistics=True),
        _count(
            "frame", "That packet, as Wireshark counts.", "position in the capture", null="about no packet"
        ),
        _word("direction", "direction", "Who sent the bytes.", "TCP stream", "it is about no direction"),
        _count(
            "stream_offset",
            "Where in the stream of that direction, from its first byte seen.",
            "TCP sequence numbers",
            unit="bytes",
            null="it is about no place in a stream",
        ),
        _word("name", "anomaly", "What it is.", "kwsniff's list of anomalies"),
        _count(
            "value", "How much: bytes lost, a limit, a key; by name.", "depends on the name", null="no number"
        ),
    ),
)

_FILE = "header of the file"
_PACKETS = "packet headers"

CAPTURES = TableSchema(
    name="captures",
    row="one capture file",
    doc="What each file is, how much of it could be used, and why the rest could not. The columns after "
    "`tcp_payload_bytes` say where every byte of it ended up: they add up to it.",
    columns=(
        CAPTURE,
        Column(name="format", type="string", doc="pcap or pcapng.", source=_FILE, null="nothing was read"),
        Column(
            name="compression",
            type="string",
            doc="gzip or zstd.",
            source="first bytes of the file",
            null="the file is not compressed",
        ),
        Column(name="byte_order", type="string", doc="little or big.", source=_FILE, null="nothing was read"),
        Column(
            name="link_types",
            type="strings",
            doc="Link types of the interfaces, by name or number (LINKTYPE_ registry).",
            source=_FILE,
            null="no interface is described",
        ),
        _count("interfaces", "Interfaces in the file.", _FILE, null="not known"),
        _count(
            "snaplen", "Longest packet the capture keeps.", _FILE, unit="bytes", null="no limit, or unknown"
        ),
        _count("bytes", "Size of the capture, decompressed.", "bytes read", unit="bytes"),
        _count("packets", "Packets in the capture.", _PACKETS),
        _count("tcp_packets", "Of these, TCP segments.", _PACKETS),
        _count("skipped_not_ip", "Packets passed over: neither IPv4 nor IPv6.", _PACKETS),
        _count("skipped_not_tcp", "Packets passed over: IP, but not TCP.", _PACKETS),
        _count("skipped_fragment", "Packets passed over: later fragments of an IP packet.", _PACKETS),
        _count("skipped_malformed", "Packets passed over: headers that contradict themselves.", _PACKETS),
        _count("skipped_unknown_link_type", "Packets passed over: of a link type not known.", _PACKETS),
        _count(
            "skipped_other_time", "Packets passed over: of a time outside of --since and --until.", _PACKETS
        ),
        Column(
            name="not_read",
            type="strings",
            doc="What the packets passed over are, with their number, most first: `Frame Relay=123`. By "
            "link type, IP protocol or EtherType.",
            source=_PACKETS,
            null="every packet was read",
        ),
        Column(
            name="encapsulations",
            type="strings",
            doc="Packets per tunnel, most first: `vxlan=46`. One in a tunnel inside a tunnel counts for "
            "both.",
            source=_PACKETS,
            null="no packet came through a tunnel",
        ),
        _moment("first_time", "Time of the first packet.", "no packets", statistics=True),
        _moment("last_time", "Time of the last packet.", "no packets"),
        Column(
            name="truncated",
            type="bool",
            doc="Whether the file ends inside a packet, or its compressed stream before its time.",
            source="end of the file",
        ),
        Column(
            name="damaged",
            type="bool",
            doc="Whether the file's structure is broken somewhere; what comes after is not read.",
            source="packet headers",
        ),
        _count(
            "dropped_by_kernel",
            "Packets the capturing system says it lost.",
            "pcapng interface statistics",
            null="the file does not say",
        ),
        _count("tcp_payload_bytes", "Payload of the TCP segments.", _PACKETS, unit="bytes"),
        *(
            _count(f"{name}_bytes", f"Of this payload: {meaning}.", "where each byte ended up", unit="bytes")
            for name, meaning in WORDS["bin"].items()
        ),
        Column(
            name="notes",
            type="strings",
            doc="Anything else worth knowing about the file.",
            source="reading the file",
        ),
    ),
)
