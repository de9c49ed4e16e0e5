"""The upgrade table: the clients that brokers of a release would reject. It only shows the verdicts it
gets."""

from collections.abc import Mapping, Sequence
from typing import Any

from kwsniff.report.section import Section, Table, text
from kwsniff.texts import clean

_MOST_REASONS = 6


def make_upgrade(release: str, clients: Sequence[Mapping[str, Any]]) -> Section:
    """The section of an upgrade to `release`.

    `clients`: rows with client_id, client_address, software, verdict (works, breaks, unknown), reasons
    (each with api_name, api_version, min_version, max_version, calls, call_id, frame) and not_tested
    (names of APIs).
    """
    breaks = sum(row["verdict"] == "breaks" for row in clients)
    table = Table(
        caption=f"Clients against Kafka {clean(release)}",
        columns=("client", "address", "software", "verdict", "why", "not tested"),
        rows=[
            [
                text(clean(row.get("client_id") or "")),
                text(row.get("client_address")),
                text(clean(row.get("software") or "")),
                text(row["verdict"]),
                text("; ".join(_reasons(row.get("reasons") or ()))),
                text(", ".join(row.get("not_tested") or ())),
            ]
            for row in clients
        ],
    )
    says = f"{breaks} of {len(clients)} clients break." if clients else "No clients."
    return Section(name="upgrade", title=f"Upgrade to {clean(release)}", says=(says,), tables=(table,))


def _reasons(reasons: Sequence[Mapping[str, Any]]) -> list[str]:
    said = [
        f"{each['api_name']} v{each['api_version']} in {each['calls']} calls, "
        + (
            "not in the release"
            if each["min_version"] is None
            else f"the release accepts {each['min_version']} to {each['max_version']}"
        )
        + f" (call {each['call_id']}{_packet(each['frame'])})"
        for each in reasons[:_MOST_REASONS]
    ]
    return said + ([f"and {len(reasons) - _MOST_REASONS} more"] if len(reasons) > _MOST_REASONS else [])


def _packet(frame: int | None) -> str:
    return "" if frame is None else f", packet {frame}"
