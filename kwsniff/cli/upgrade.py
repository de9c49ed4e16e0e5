"""``kwsniff upgrade``: clients that brokers of another release would reject."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kwsniff.cli.inputs import HELP, add_input_options, open_inputs, width, wrap
from kwsniff.texts import JSON_VERSION, clean, json_text, plural

if TYPE_CHECKING:
    from kwsniff.findings.finding import Finding
    from kwsniff.findings.upgrade import Client, Reason

_EXAMPLES = """examples:
  kwsniff upgrade 4.3.1 capture.pcap             clients that brokers of 4.3.1 would reject
  kwsniff upgrade 3.9 tables/                    the same for a folder of tables, for a downgrade
  kwsniff upgrade "Event Hubs" capture.pcap      those that another product would reject
  kwsniff upgrade 4.3.1 rotated/ --json          JSON for scripts
  kwsniff explain releases                       known releases

exit status: 0 no client known to break; 1 a client breaks, or nothing to read; 2 error
"""

_REASON = ("api_name", "api_version", "min_version", "max_version", "calls", "call_id", "frame")
_DOUBTS = {
    "held_back": "the current broker offers no newer version; the client may support one",
    "perhaps_asked": "the capture does not show whether it asked this broker for supported versions",
    "perhaps_needless": "the client can detect that, and may not need it",
    "not_known": "what it accepts of this API is not known",
    "closed": "it closes the connection; the client has to ask in a lower version",
}
_MOST_NAMES = 6


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "upgrade",
        help="find clients that brokers of another release would reject",
        description="Compare the API versions that clients use with those that brokers of a release accept. "
        "Inter-broker traffic is left out.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "release",
        metavar="RELEASE",
        help="a Kafka release, older or newer: 4.3.1, or 4.3 for the newest 4.3.x; or a product: "
        "redpanda-25.1, automq-1.6, event_hubs, msk-3.9, confluent-7.9, ...",
    )
    parser.add_argument("inputs", nargs="+", metavar="INPUT", help=HELP)
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    add_input_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit status 1 if a client breaks or there was nothing to read, else 0. Raises UsageError for an
    unknown release."""
    from kwsniff.findings.context import describe_basis, list_not_seen
    from kwsniff.findings.upgrade import find_breaks, judge
    from kwsniff.findings.upgrade_targets import find_target

    args.release = find_target(args.release).name  # before captures are read
    with open_inputs(args.inputs, args) as (database, _, capture, _, read):
        clients = judge(database, args.release)
        findings = find_breaks(database, args.release, clients, capture=capture)
        basis = describe_basis(database)
    if args.json:
        print(json_text(_facts(args.release, clients), indent=2))
    else:
        for line in _lines(args.release, clients, findings, width()):
            print(line)
        _print_limits(basis, list_not_seen(basis))
    return int(not read or any(each.verdict == "breaks" for each in clients))


def _facts(release: str, clients: Sequence["Client"]) -> dict[str, Any]:
    return {
        "version": JSON_VERSION,
        "release": release,
        "clients": [
            {
                "client_id": each.client_id,
                "client_address": each.client_address,
                "software": each.software,
                "verdict": each.verdict,
                "reasons": [{name: getattr(reason, name) for name in _REASON} for reason in each.reasons],
                "not_tested": list(each.not_tested),
            }
            for each in clients
        ],
    }


def _lines(
    release: str, clients: Sequence["Client"], findings: Sequence["Finding"], room: int
) -> Iterator[str]:
    counts = {
        verdict: [each for each in clients if each.verdict == verdict]
        for verdict in ("breaks", "unknown", "works")
    }
    if not clients:
        yield "No clients found."
        return
    said = [
        f"{len(each)} {word}"
        for word, each in zip(("break", "unknown", "work"), counts.values(), strict=True)
    ]
    yield from wrap(f"{plural(len(clients), 'client')} on {release}: {', '.join(said)}.", room)
    for client in counts["breaks"]:
        yield ""
        yield from wrap(f"BREAKS {_who(client)}", room)
        for reason in client.reasons:
            yield from wrap(f"{_use(reason, release)}{_name_proof(reason)}", room, "  ")
    for advice in dict.fromkeys(each.advice for each in findings):
        yield from wrap(advice, room, "  Do: ")
    for client in counts["unknown"]:
        yield ""
        yield from wrap(f"UNKNOWN {_who(client)}", room)
        if not client.reasons:
            yield from wrap("only ApiVersions requests were seen", room, "  ")
        for reason in client.reasons:
            yield from wrap(
                f"{_use(reason, release)}: {_DOUBTS[reason.why]}{_name_proof(reason)}", room, "  "
            )
    if counts["works"]:
        yield ""
        yield "WORKS, for the requests seen"
        for client in counts["works"]:
            yield from wrap(_who(client), room, "  ")
    yield ""
    yield "Not tested: APIs that were not seen"
    for client in clients:
        names = ", ".join(client.not_tested[:_MOST_NAMES])
        more = len(client.not_tested) - _MOST_NAMES
        yield from wrap(f"{clean(client.name)}: {names}{f' and {more} more' if more > 0 else ''}", room, "  ")


def _who(client: "Client") -> str:
    where = f" at {client.client_address}" if client.client_id and client.client_address else ""
    software = f", {client.software}" if client.software else ""
    return clean(f"{client.name}{where}{software}")


def _use(reason: "Reason", release: str) -> str:
    from kwsniff.findings.upgrade import describe

    return describe([reason], release)


def _name_proof(reason: "Reason") -> str:
    packet = "" if reason.frame is None else f", packet {reason.frame}"
    return f"; {plural(reason.calls, 'call')}, the first is {reason.call_id}{packet}"


def _print_limits(basis: Mapping[str, Any], not_seen: Sequence[str]) -> None:
    """Reasons for hidden clients or versions: TLS without keys, connections older than the capture."""
    if basis["sealed"] or basis["begun_before"]:
        print("\nNot seen:")
        for sentence in not_seen:
            if "TLS" in sentence or "began before" in sentence:
                print("\n".join(wrap(sentence, width(), "- ")))
