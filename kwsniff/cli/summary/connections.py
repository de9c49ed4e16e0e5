"""The summary's lines on connections, and advice if they gave no calls."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kwsniff.texts import clean, in_bytes, in_time, plural

Facts = Mapping[str, Any]

_MOST_SUITES = 3


def connections_line(summary: Facts) -> str:
    """The numbers of calls and connections; without calls, the likely reason."""
    calls = sum(item["calls"] for item in summary["calls"])
    protocols = ", ".join(f"{item['count']:,} {item['protocol']}" for item in summary["connections"])
    connections = plural(sum(item["count"] for item in summary["connections"]), "connection")
    if calls:
        return f"{plural(calls, 'call')} on {connections} ({protocols})"
    if not protocols and summary["no_packets"]:
        return "No packets in that time range."
    if not protocols:
        return "No TCP connections. Check the capture's interface and filter."
    advice = "if brokers use an unusual port, give it with --port"
    if all(item["protocol"] == "empty" for item in summary["connections"]):
        advice = "no data was exchanged; see how they ended"
    elif summary["ports"]:
        advice = f"none on port {', '.join(map(str, summary['ports']))} either; see how the connections ended"
    encrypted = sum(item["count"] for item in summary["connections"] if item["protocol"] == "tls")
    hellos = sum(item["connections"] for item in summary["unanswered_hellos"])
    if hellos and hellos >= encrypted:
        advice = "no TLS handshake got a ServerHello: check whether the listener is plaintext"
    elif encrypted:
        advice = (
            "TLS encrypts the traffic: give its secrets with --tls-keylog, or capture on a plaintext listener"
        )
    return f"No Kafka calls on {connections} ({protocols}); {advice}"


def twins_line(twins: Facts) -> Iterator[str]:
    """Connections that were captured twice."""
    if twins["left_out"]:
        more = plural(twins["left_out"], "more connection")
        yield f"{more} also captured at a second point (twin_of), left out below"
    if twins["counted"]:
        those = plural(twins["counted"], "connection")
        yield (
            f"{those} also captured at a second point (twin_of), but counted below: for input that cannot "
            f"be read twice, "
            "kwsniff counts calls before it detects that"
        )


def encrypted_lines(closed: Sequence[Facts], hellos: Sequence[Facts], top: int) -> Iterator[str]:
    """ClientHellos without a response, and encrypted connections without known keys, by broker, with
    what is visible without keys."""
    kinds: dict[tuple[str, str], list[Facts]] = {}
    for item in closed:
        name = clean(f"{item['broker']}:{item['broker_port']}")
        kinds.setdefault((name, clean(item["tls_version"])), []).append(item)
    counts = Counter({kind: sum(item["connections"] for item in items) for kind, items in kinds.items()})
    for number, item in enumerate(hellos):
        name = clean(f"{item['broker']}:{item['broker_port']}")
        counts[name, ""] -= item["connections"]
        if number < top:
            hello = plural(item["connections"], "ClientHello")
            yield f"{hello} to {name} without ServerHello: see tls_alert, closed_by"
    for kind, count in (+counts).most_common(top):
        midway = sum(item["without_handshake"] for item in kinds[kind])
        yield closed_line(kind[0], kind[1], count, midway=midway == count)
        yield f"  {', '.join(_show(kinds[kind]))}"


def closed_line(broker: str, version: str, count: int, *, midway: bool) -> str:
    """One line on connections that were not decrypted. `midway`: neither side's hello was captured."""
    shown = f", TLS {version}" if version else ""
    why = "handshake not captured" if midway else "without keys"
    return f"{plural(count, 'TLS connection')} to {broker}{shown}, {why}: see --tls-keylog"


def _show(items: Sequence[Facts]) -> Iterator[str]:
    """Cipher suites, lowest round trip, traffic, retransmissions."""
    yield from [clean(item["tls_cipher"]) for item in items if item["tls_cipher"]][:_MOST_SUITES]
    trips = [item["round_trip_ns"] for item in items if item["round_trip_ns"] is not None]
    if trips:
        yield f"round trip {in_time(min(trips))}"
    for side in ("client", "broker"):
        sent, records = (sum(item[f"{side}_{what}"] for item in items) for what in ("bytes", "tls_records"))
        yield f"{side} sent {in_bytes(sent)} in {plural(records, 'record')}"
    again = sum(item[f"{side}_retransmitted_bytes"] for item in items for side in ("client", "broker"))
    if again:
        yield f"{in_bytes(again)} retransmitted"
    if resets := sum(item["resets"] for item in items):
        yield plural(resets, "reset")
