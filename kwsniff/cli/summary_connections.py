"""The lines of a summary that say what connections there were, and what to try where they gave no calls."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kwsniff.texts import clean, plural

Facts = Mapping[str, Any]


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


def encrypted_lines(tls: Sequence[Facts], hellos: Sequence[Facts], top: int) -> Iterator[str]:
    """Hellos without answer, and connections inside TLS whose keys are not known, by whom they go to."""
    counts: Counter[tuple[str, str]] = Counter()
    for item in tls:
        if item["protocol"] == "tls":
            name = clean(f"{item['broker']}:{item['broker_port']}")
            counts[name, clean(item["tls_version"])] += item["connections"]
    for number, item in enumerate(hellos):
        name = clean(f"{item['broker']}:{item['broker_port']}")
        counts[name, ""] -= item["connections"]
        if number < top:
            hello = plural(item["connections"], "ClientHello")
            yield f"{hello} to {name} without ServerHello: see tls_alert, closed_by"
    for (name, version), count in (+counts).most_common(top):
        shown = f", TLS {version}" if version else ""
        yield f"{plural(count, 'TLS connection')} to {name}{shown}, without keys: see --tls-keylog"
