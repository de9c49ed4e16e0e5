"""The lines of a summary that say what connections there were, and what to try where they gave no calls."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kwsniff.texts import clean, in_bytes, in_time, plural

Facts = Mapping[str, Any]

_MOST_SUITES = 3


def connections_line(summary: Facts) -> str:
    """How many calls and connections there are; without calls, what may be the reason."""
    calls = sum(item["calls"] for item in summary["calls"])
    protocols = ", ".join(f"{item['count']:,} {item['protocol']}" for item in summary["connections"])
    connections = plural(sum(item["count"] for item in summary["connections"]), "connection")
    if calls:
        return f"{plural(calls, 'call')} on {connections} ({protocols})"
    if not protocols and summary["no_packets"]:
        return "No packet of that time."
    if not protocols:
        return "No TCP connections: was the capture taken on the right interface, with the right filter?"
    advice = "give broker ports with --port if there should be"
    if all(item["protocol"] == "empty" for item in summary["connections"]):
        advice = "see how they ended: nothing was said on them"
    elif summary["ports"]:
        advice = f"nor on port {', '.join(map(str, summary['ports']))}: see how the connections ended"
    encrypted = sum(item["count"] for item in summary["connections"] if item["protocol"] == "tls")
    hellos = sum(item["connections"] for item in summary["unanswered_hellos"])
    if hellos and hellos >= encrypted:
        advice = "none of the TLS got a ServerHello: is the listener a plaintext one?"
    elif encrypted:
        advice = "TLS hides it: give its secrets with --tls-keylog, or capture on a plaintext listener"
    return f"No Kafka calls on {connections} ({protocols}); {advice}"


def twins_line(twins: Facts) -> Iterator[str]:
    """Connections that are there twice."""
    if twins["left_out"]:
        more = plural(twins["left_out"], "more connection")
        yield f"{more} seen at a second place too (twin_of), left out of what follows"
    if twins["counted"]:
        those = plural(twins["counted"], "connection")
        yield (
            f"{those} seen at a second place too (twin_of), counted all the same: what cannot be read twice "
            "is counted before that is known"
        )


def encrypted_lines(closed: Sequence[Facts], hellos: Sequence[Facts], top: int) -> Iterator[str]:
    """Hellos without answer, and connections inside TLS whose keys are not known, by whom they go to, with
    what they show all the same."""
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
        yield f"  {', '.join(_shown(kinds[kind]))}"


def closed_line(broker: str, version: str, count: int, *, midway: bool) -> str:
    """Of connections that were not opened; `midway`: neither side's hello was captured."""
    shown = f", TLS {version}" if version else ""
    why = "handshake not captured" if midway else "without keys"
    return f"{plural(count, 'TLS connection')} to {broker}{shown}, {why}: see --tls-keylog"


def _shown(items: Sequence[Facts]) -> Iterator[str]:
    """Cipher suites, the nearest client, traffic, what went wrong below."""
    yield from [clean(item["tls_cipher"]) for item in items if item["tls_cipher"]][:_MOST_SUITES]
    trips = [item["round_trip_ns"] for item in items if item["round_trip_ns"] is not None]
    if trips:
        yield f"round trip {in_time(min(trips))}"
    for side in ("client", "broker"):
        sent, records = (sum(item[f"{side}_{what}"] for item in items) for what in ("bytes", "tls_records"))
        yield f"{side} sent {in_bytes(sent)} in {plural(records, 'record')}"
    again = sum(item[f"{side}_retransmitted_bytes"] for item in items for side in ("client", "broker"))
    if again:
        yield f"{in_bytes(again)} sent again"
    if resets := sum(item["resets"] for item in items):
        yield plural(resets, "reset")
