"""The packets of the calls that prove findings, as Wireshark's display filters."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from kwsniff.findings.evaluate import fetch
from kwsniff.findings.finding import Finding
from kwsniff.texts import display_filter

if TYPE_CHECKING:
    import duckdb

_PACKETS = (
    "call_id", "capture", "client_port", "request_frame", "request_end_frame", "response_frame",
    "response_end_frame",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DisplayFilter:
    """`call_id`, `capture`: None where packets prove a finding and no call, and where it is not known."""

    call_id: int | None
    capture: str | None
    filter: str


def frames_of(row: Mapping[str, Any]) -> list[tuple[int | None, int | None]]:
    """First and last packet of a call's request and response, as far as they lie in the call's capture.

    `row` of api_calls. Packets are counted in each capture: one before what it follows is in another capture.
    """
    asked, asked_end = row["request_frame"], row["request_end_frame"]
    said, said_end = row["response_frame"], row["response_end_frame"]
    if asked is not None and asked_end is not None and asked_end < asked:
        return [(asked, asked)]
    spans = [(asked, asked_end)]
    if said is not None and (asked is None or said >= asked):
        spans.append((said, said_end if said_end is not None and said_end >= said else said))
    return spans


def find_filters(
    database: "duckdb.DuckDBPyConnection", numbers: Collection[int]
) -> dict[int, list[DisplayFilter]]:
    """Number of a call -> what finds its packets, once for each run that has a call of that number."""
    listed = ", ".join(map(str, sorted(numbers))) or "null"
    rows = fetch(database, f"select {', '.join(_PACKETS)} from api_calls where call_id in ({listed})")  # noqa: S608
    found: dict[int, list[DisplayFilter]] = {}
    for row in rows:
        text = display_filter(frames_of(row), row["client_port"])
        found.setdefault(row["call_id"], []).append(DisplayFilter(row["call_id"], row["capture"], text))
    return found


def filters_of(
    finding: Finding, filters: Mapping[int, Sequence[DisplayFilter]], captures: Sequence[str]
) -> list[dict[str, Any]]:
    """Those of a finding, as JSON has them; `captures`: all that its tables are of."""
    if finding.call_ids:
        return [asdict(each) for number in finding.call_ids for each in filters.get(number, ())]
    if not finding.frames:
        return []
    text = display_filter((each, each) for each in finding.frames)
    return [asdict(DisplayFilter(None, captures[0] if len(captures) == 1 else None, text))]
