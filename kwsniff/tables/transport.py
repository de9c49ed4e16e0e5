"""The tables of the transport: connections, anomalies, captures."""

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
    COMMUNITY_ID,
    CONNECTION_HARM,
    CONNECTION_ID,
    PRINCIPAL,
    SASL_MECHANISM,
    SOFTWARE_NAME,
    SOFTWARE_VERSION,
)
from kwsniff.tables.endings import EVIDENCE, OPENING
from kwsniff.tables.enums import WORDS
from kwsniff.tables.hops import PLACE
from kwsniff.tables.losses import LOSSES, each_side


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


_NO_TIME = "the packets have no times"

CONNECTIONS = TableSchema(
    name="connections",
    row="one TCP connection",
    doc="Every TCP connection of the captures, with any protocol.",
    columns=(
        CONNECTION_ID,
        replace(CAPTURE, doc="Capture file with the first packet of the connection."),
        CLIENT_ADDRESS,
        CLIENT_PORT,
        BROKER_ADDRESS,
        BROKER_PORT,
        _word("protocol", "protocol", "Protocol of the connection.", "first bytes of both directions"),
        _word("role_source", "role_source", "What identified the client side.", "TCP flags, contents, ports"),
        _moment("first_time", "Time of the first packet.", _NO_TIME, statistics=True),
        _moment("last_time", "Time of the last packet.", _NO_TIME),
        _count("first_frame", "First packet, as Wireshark counts.", "position of the packet in its capture"),
        _count("last_frame", "Last packet, as Wireshark counts.", "position of the packet in its capture"),
        Column(
            name="handshake",
            type="bool",
            doc="Whether the capture has the connection from its beginning.",
            source="TCP SYN",
        ),
        _count(
            "round_trip_ns",
            "Network round trip of the handshake.",
            "times of SYN, SYN-ACK and ACK",
            unit="nanoseconds",
            null="the capture does not have the whole handshake",
        ),
        *_both_sides(
            "bytes", "Bytes of the stream, without retransmissions, sent by the", "TCP payload", "bytes"
        ),
        *_both_sides("packets", "Packets sent by the", "TCP segments"),
        *_both_sides("retransmitted_bytes", "Bytes retransmitted by the", "TCP sequence numbers", "bytes"),
        *_both_sides("out_of_order", "Packets out of order from the", "TCP sequence numbers"),
        *_both_sides(
            "missing_bytes", "Bytes missing from the capture, sent by the", "TCP sequence numbers", "bytes"
        ),
        *LOSSES,
        _count("calls", "Calls on the connection.", "rows of api_calls"),
        _count(
            "max_in_flight", "Most requests in flight together, except those with acks=0.", "order of calls"
        ),
        replace(
            CLIENT_ID, doc="Client id of the first request that has one.", null="no request has a client id"
        ),
        SOFTWARE_NAME,
        SOFTWARE_VERSION,
        replace(
            SASL_MECHANISM, source="SaslHandshake request, mechanism", null="no SaslHandshake was captured"
        ),
        _word("ending", "ending", "How the connection ended.", "TCP FIN and RST"),
        *each_side(
            "round_trip_ns",
            "Shortest time from a segment of the {other} to its acknowledgement by the {side}, at "
            "the capture point.",
            "times of segments and acknowledgements",
            unit="nanoseconds",
            null="no segment was captured with its acknowledgement",
        ),
        _word(
            "capture_point",
            "capture_point",
            "Estimated capture point.",
            "which side acknowledges faster",
        ),
        *each_side(
            "zero_window_ns",
            "How long the {side} advertised a zero window.",
            "TCP window",
            unit="nanoseconds",
        ),
        PRINCIPAL,
        CALLER,
        Column(
            name="tls_version",
            type="string",
            doc="Negotiated TLS version: 1.3, 1.2 and older, or the number of another.",
            source="ServerHello, supported_versions or legacy_version (RFC 8446 4.1.3)",
            null="not TLS, or no complete ServerHello was captured",
        ),
        Column(
            name="tls_server_name",
            type="string",
            doc="Server name that the client requested (SNI).",
            source="ClientHello, server_name (RFC 6066 3)",
            null="not TLS, no server name, or the ClientHello was not captured",
        ),
        Column(
            name="tls_cipher",
            type="string",
            doc="Negotiated cipher suite, by IANA name, or the number of one without a name.",
            source="ServerHello, cipher_suite (RFC 8446 4.1.3)",
            null="not TLS, or no ServerHello was captured",
        ),
        _word(
            "closed_by",
            "direction",
            "Who closed the connection first.",
            "the first TCP FIN or RST that counts",
            "no close was captured, or it is unknown which side is the client",
        ),
        _count(
            "close_frame",
            "The packet that closed it.",
            "position of that FIN or RST in its capture",
            null="no close was captured",
        ),
        _moment("close_time", "Time of that packet.", f"no close was captured, or {_NO_TIME}"),
        *OPENING,
        Column(
            name="encapsulation",
            type="string",
            doc="Tunnels around the first packet that has any, the outermost first, separated by slashes: "
            "vxlan, gre/vxlan. VLAN tags, MPLS and PPPoE do not count. The last one is socks5 or connect "
            "if the connection is a tunnel through a proxy; broker_address is then the proxy's.",
            source="headers around the innermost IP packet; SOCKS5 (RFC 1928), CONNECT (RFC 9110 9.3.6)",
            null="no tunnel",
        ),
        _count(
            "duplicate_packets",
            "Packets captured more than once while it was open: duplicates, not retransmissions. No other "
            "figure has "
            "them.",
            "TCP header and IP identification, equal to those of an earlier packet",
        ),
        _count(
            "twin_of",
            "The connection_id of an earlier connection with the same bytes at another capture point, "
            "under other addresses: across NAT, a proxy or a load balancer. Its calls stay rows; "
            "summaries, findings, aggregates, and tables of what happened over several calls leave them out.",
            "initial sequence numbers and messages_hash of both connections",
            null="no such connection was proven, or the row comes from `live`, a stream or a data source",
        ),
        _count(
            "twin_delay_ns",
            "Delay of the first packet of this connection after that of `twin_of`: the time between the "
            "two capture points. In steps of microseconds, like the times of the table.",
            "first_time of both connections",
            null="no twin; the twin is on the other side of a proxy; the two are in different captures, "
            "whose clocks may differ; or a SYN was lost between the capture points",
            unit="nanoseconds",
        ),
        _word(
            "answered_in",
            "protocol",
            "Protocol of the broker's first bytes if the client speaks Kafka or TLS and the broker neither.",
            "first bytes of the broker",
            "the broker responded in the same protocol or sent nothing, or the client speaks another one",
        ),
        _word("proxy_header", "proxy_header", "Version of the PROXY header.", "PROXY protocol", "none"),
        _word(
            "tls_handshake",
            "tls_handshake",
            "Progress of the TLS handshake, as visible without secrets.",
            "kinds and lengths of TLS records (RFC 8446 2, RFC 5246 7.3)",
            "not TLS, or no ClientHello was captured",
        ),
        _word(
            "tls_client_certificate",
            "tls_client_certificate",
            "Whether the client sent a certificate when the broker requested one; in TLS 1.3 the lengths "
            "of its first encrypted records show that it sent none.",
            "Certificate message of the client (RFC 5246 7.4.6, RFC 8446 4.4.2)",
            null="not TLS, or no Certificate message of the client was captured",
        ),
        Column(
            name="tls_hello",
            type="bool",
            doc="Whether a ClientHello was captured; without tls_cipher, no ServerHello was.",
            source="first record of the client (RFC 8446 4.1.2)",
            null="not TLS",
        ),
        Column(
            name="tls_alert",
            type="string",
            doc="The alert in place of a first response, or before the handshake was complete: name or "
            "number; `encrypted` if only its length shows that it is an alert.",
            source="TLS alert (RFC 8446 6)",
            null="no alert was captured",
        ),
        _word("tls_alert_by", "direction", "Sender of the alert.", "TLS alert", "no alert was captured"),
        Column(
            name="proxied_address",
            type="string",
            doc="The client's own address, from the PROXY header; client_address is the proxy's.",
            source="PROXY protocol, version 1 or 2",
            null="no PROXY header, or one without an address",
        ),
        Column(
            name="proxied_port",
            type="int32",
            doc="The client's own port.",
            source="PROXY protocol, version 1 or 2",
            null="no PROXY header, or one without an address",
        ),
        *(
            _count(
                f"{side}_isn",
                f"The {side}'s initial sequence number on the wire; if its SYN was not captured, the "
                f"number before its first captured byte.",
                "TCP SYN, else the first segment (RFC 9293 3.4)",
                null=f"neither a SYN nor a byte of the {side} was captured, or it is unknown which side "
                f"it is",
            )
            for side in ("client", "broker")
        ),
        _count(
            "messages_hash",
            "A hash of the bytes of the first four requests and responses, or of all of them if a closed "
            "connection had fewer. Connections with the same messages have the same hash.",
            "Kafka messages",
            null="one of them was not captured whole, or there were fewer and the connection was not closed",
        ),
        *(
            _count(
                f"{side}_tls_records",
                f"Captured TLS records with data from the {side}. A message is one record of up to 16 kB, "
                f"or several; in TLS 1.3, records of handshakes, tickets and alerts count too.",
                "headers of TLS records (RFC 8446 5.1)",
                null="not TLS",
            )
            for side in ("client", "broker")
        ),
        *EVIDENCE,
        CONNECTION_HARM,
        COMMUNITY_ID,
    ),
)

ANOMALIES = TableSchema(
    name="anomalies",
    row="one oddity",
    doc="All irregularities by name: lost segments, incomplete frames, undecodable messages, limits "
    "reached. Damaged bytes never stop a run; they become rows here.",
    columns=(
        CAPTURE,
        replace(CONNECTION_ID, null="it concerns the file"),
        replace(CALL_ID, null="it concerns no call"),
        _moment("time", "Time of the packet that revealed it.", "it concerns no packet", statistics=True),
        _count("frame", "That packet.", "position in the capture", null="it concerns no packet"),
        _word("direction", "direction", "Sender of the bytes.", "TCP stream", "it concerns no direction"),
        _count(
            "stream_offset",
            "Offset in the stream of that direction, from its first captured byte.",
            "TCP sequence numbers",
            unit="bytes",
            null="it has no stream offset",
        ),
        _word("name", "anomaly", "Name of the anomaly.", "kwsniff's list of anomalies"),
        _count(
            "value",
            "A number that depends on the name: bytes lost, a limit, a key.",
            "depends on the name",
            null="no number",
        ),
    ),
)

_FILE = "header of the file"
_PACKETS = "packet headers"

CAPTURES = TableSchema(
    name="captures",
    row="one capture file",
    doc="Format of each file, how much of it was used, and why the rest was not. The columns after "
    "`tcp_payload_bytes` are its parts and add up to it.",
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
        _count("snaplen", "Maximum bytes kept per packet.", _FILE, unit="bytes", null="no limit, or unknown"),
        _count("bytes", "Size of the capture, decompressed.", "bytes read", unit="bytes"),
        _count("packets", "Packets in the capture.", _PACKETS),
        _count("tcp_packets", "Of these, TCP segments.", _PACKETS),
        _count("skipped_not_ip", "Packets skipped: neither IPv4 nor IPv6.", _PACKETS),
        _count("skipped_not_tcp", "Packets skipped: IP, but not TCP.", _PACKETS),
        _count("skipped_fragment", "Packets skipped: later fragments of an IP packet.", _PACKETS),
        _count("skipped_malformed", "Packets skipped: inconsistent headers.", _PACKETS),
        _count("skipped_unknown_link_type", "Packets skipped: unknown link type.", _PACKETS),
        _count("skipped_other_time", "Packets skipped: outside --since and --until.", _PACKETS),
        Column(
            name="not_read",
            type="strings",
            doc="Number of skipped packets by link type, IP protocol or EtherType, most first: `Frame "
            "Relay=123`.",
            source=_PACKETS,
            null="no packet was skipped",
        ),
        Column(
            name="encapsulations",
            type="strings",
            doc="Packets per tunnel, most first: `vxlan=46`. One in a tunnel inside a tunnel counts for "
            "both.",
            source=_PACKETS,
            null="no tunnels",
        ),
        _moment("first_time", "Time of the first packet.", "no packets", statistics=True),
        _moment("last_time", "Time of the last packet.", "no packets"),
        Column(
            name="truncated",
            type="bool",
            doc="Whether the file ends inside a packet, or its compressed stream is cut off.",
            source="end of the file",
        ),
        Column(
            name="damaged",
            type="bool",
            doc="Whether the file's structure is damaged; kwsniff does not read the part after the damage.",
            source="packet headers",
        ),
        _count(
            "dropped_by_kernel",
            "Packets that the capturing system reports as dropped.",
            "pcapng interface statistics",
            null="not in the file",
        ),
        _count("tcp_payload_bytes", "Payload of the TCP segments.", _PACKETS, unit="bytes"),
        *(
            _count(f"{name}_bytes", f"Payload: {meaning}.", "classification of each byte", unit="bytes")
            for name, meaning in WORDS["bin"].items()
        ),
        *PLACE,
        Column(
            name="notes",
            type="strings",
            doc="Other notes on the file.",
            source="reading the file",
        ),
    ),
)
