"""Which clients brokers of another release would refuse, and why.

What counts is the release table, not what a broker advertises: 4.x says that it takes Produce from 0 on, for
clients that look there whether a broker is too new (KIP-896), and hangs up on anything below 3.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from kwsniff.findings.api_purposes import names_of
from kwsniff.findings.evaluate import evaluate, fetch
from kwsniff.findings.finding import Finding
from kwsniff.findings.rule import UPGRADE, read_rules
from kwsniff.findings.upgrade_targets import Target, find_target
from kwsniff.layout.catalog import load_catalog

if TYPE_CHECKING:
    import duckdb

Verdict = Literal["breaks", "unknown", "works"]
VERDICTS: Final[tuple[Verdict, ...]] = ("breaks", "unknown", "works")
"""Worst first."""
Why = Literal[
    "below", "above", "dropped", "held_back", "perhaps_asked", "perhaps_needless", "not_known", "closed"
]
_BREAKS: Final = ("below", "above", "dropped")


@dataclass(frozen=True, slots=True)
class Reason:
    """A version of an API that the release does not take from this client, or perhaps not.

    `min_version`, `max_version`: what the release takes, None where it does not have the API. `call_id`,
    `frame`: the first such call and the packet in which it begins.
    """

    api_name: str
    api_version: int
    min_version: int | None
    max_version: int | None
    calls: int
    call_id: int
    frame: int | None
    why: Why
    record_formats: tuple[int, ...] = ()
    """The formats below 2 of what it wrote; a release that takes no Produce below 3 takes none of them."""


@dataclass(frozen=True, slots=True)
class Client:
    """A client and its verdict. `not_tested`: APIs of the release that clients use and this one did not."""

    client_id: str | None
    client_address: str | None
    software: str | None
    verdict: Verdict
    reasons: tuple[Reason, ...]
    not_tested: tuple[str, ...]

    @property
    def name(self) -> str:
        """What it calls itself, else its address."""
        return self.client_id or self.client_address or "an unknown client"


_CALLS = """
with talk as (
    select c.*, n.handshake, coalesce(n.caller, c.caller) as conversation,
        is_api_versions(c.api_name) and c.status <> 'unanswered' as asks_now,
        trim(concat_ws(' ', coalesce(c.client_software_name, n.client_software_name),
            coalesce(c.client_software_version, n.client_software_version))) as said,
        {held_back} as held_back
    from call c
    left join connection n on n.connection_id = c.connection_id and n.run_id is not distinct from c.run_id
    where c.api_key is not null and c.api_version is not null
), party as (
    select *, bool_or(conversation <> 'client' or caller <> 'client')
            over (partition by run_id, client_id, client_address) as is_server,
        -- franz-go asks on one connection to a broker and knows for all of them.
        bool_or(asks_now) over (partition by run_id, client_id, client_address, broker) as asks,
        bool_or(asks_now) over (partition by run_id, client_id, client_address) as asks_somebody
    from talk
), spoken as (
    -- What was refused already, as UNSUPPORTED_VERSION, was a trial.
    from party where not coalesce(is_server, false) and error_code is distinct from 35
), formats as (
    select call_id, run_id, list(distinct magic order by magic) as record_formats
    from batch where is_produce(api_name) and magic < 2 group by all
), named as (
    -- Software is said once for each connection; one whose beginning is not there is that of the others.
    select client_id, client_address, min(said) as software from spoken
    where said <> '' group by all having count(distinct said) = 1
)
select s.client_id, s.client_address, coalesce(nullif(s.said, ''), n.software) as software,
    s.api_key, s.api_name, s.api_version, count(*) as calls, min(s.call_id) as call_id,
    arg_min(s.request_frame, s.call_id) as frame,
    bool_and(s.asks) as asks,
    bool_and(s.asks_somebody or not coalesce(s.handshake, false)) as perhaps_asks,
    bool_and(s.held_back) as held_back, flatten(list(f.record_formats)) as record_formats
from spoken s
left join named n on n.client_id is not distinct from s.client_id
    and n.client_address is not distinct from s.client_address
left join formats f on f.call_id = s.call_id and f.run_id is not distinct from s.run_id
group by all order by s.api_key, s.api_version
"""

_HELD_BACK = """exists (from api_ranges r where r.broker_address = c.broker_address
        and r.broker_port = c.broker_port and r.api_key = c.api_key and r.max_version = c.api_version)"""


def judge(database: "duckdb.DuckDBPyConnection", release: str) -> list[Client]:
    """The verdict on every client of the tables that `database` shows (views.py), worst first.

    Brokers among themselves are left out. `release`: as `find_target` takes it. Raises UsageError for one
    that is not known.
    """
    takes = find_target(release)
    by_client: dict[tuple[str | None, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row in fetch(database, _CALLS.format(held_back=_held_back(database))):
        by_client[row["client_id"], row["client_address"], row["software"]].append(row)
    clients = [_client(key, rows, takes) for key, rows in by_client.items()]
    return sorted(clients, key=lambda each: (VERDICTS.index(each.verdict), each.name, str(each.software)))


def _held_back(database: "duckdb.DuckDBPyConnection") -> str:
    """SQL: whether a call has the greatest version that its broker offers, so that the client may know more.

    What a broker offers is in the table api_ranges; from nothing else is a release inferred.
    """
    known = fetch(database, "select 1 as known from duckdb_views() where view_name = 'api_ranges'")
    return _HELD_BACK if known else "false"


def _client(
    key: tuple[str | None, ...],
    rows: Sequence[Mapping[str, Any]],
    takes: Target,
) -> Client:
    apis = load_catalog().apis
    seen = {row["api_key"] for row in rows}
    named = [row for row in rows if row["api_key"] in apis and not apis[row["api_key"]].traits.internal]
    reasons = [reason for row in named if (reason := _reason(row, takes)) is not None]
    broken = tuple(each for each in reasons if each.why in _BREAKS)
    there = sorted(key for key, span in takes.ranges.items() if span is not None)
    unseen = [apis[number] for number in there if number not in seen]
    untested = [api.name for api in unseen if not api.traits.internal]
    tested = any(row["api_name"] not in names_of("is_api_versions") for row in rows)
    verdict: Verdict = "breaks" if broken else "works" if tested and not reasons else "unknown"
    client_id, address, software = key
    return Client(client_id, address, software, verdict, broken or tuple(reasons), tuple(untested))


def _reason(row: Mapping[str, Any], takes: Target) -> Reason | None:
    key = row["api_key"]
    span = takes.ranges.get(key)
    first, last = takes.closes_on.get(key, (1, 0))
    why: Why | None = "not_known"
    if first <= row["api_version"] <= last:
        why = "closed"
    elif takes.knows(key):
        why = _why(row, span)
    if why is None or (why == "not_known" and row["api_name"] in names_of("is_api_versions")):
        return None
    low, high = span or (None, None)
    return Reason(
        api_name=row["api_name"],
        api_version=row["api_version"],
        min_version=low,
        max_version=high,
        calls=row["calls"],
        call_id=row["call_id"],
        frame=row["frame"],
        why=why,
        record_formats=tuple(sorted(set(row["record_formats"] or ()))) if why == "below" else (),
    )


def _why(row: Mapping[str, Any], span: tuple[int, int] | None) -> Why | None:
    """Why the release may not take what the row says; None where it does."""
    if row["api_name"] in names_of("is_api_versions"):
        return None  # a broker answers a version of it that it does not know in version 0 (KIP-511)
    if span is None:
        # Who asks sees that the API is not there. Whether it can do without is its own affair.
        return "perhaps_needless" if row["perhaps_asks"] else "dropped"
    low, high = span
    if row["api_version"] < low:
        # Asking does not help who knows nothing newer: Java 0.10.2.2 asks, and fails.
        return "held_back" if row["held_back"] else "below"
    if row["api_version"] > high and not row["asks"]:
        return "perhaps_asked" if row["perhaps_asks"] else "above"
    return None


def find_breaks(
    database: "duckdb.DuckDBPyConnection",
    release: str,
    clients: Iterable[Client],
    *,
    capture: str = "CAPTURE",
) -> list[Finding]:
    """A finding breaks_on_upgrade for every client that breaks, most calls first."""
    broken = [each for each in clients if each.verdict == "breaks"]
    database.execute(
        "create or replace temp table upgrade_break (release varchar, client varchar, client_id varchar, "
        "client_address varchar, uses varchar, calls bigint, call_ids bigint[], api_names varchar[])"
    )
    for each in broken:
        row = [release, each.name, each.client_id, each.client_address, describe(each.reasons, release)]
        row += [sum(reason.calls for reason in each.reasons)]  # type: ignore[list-item]
        row += [[reason.call_id for reason in each.reasons], [reason.api_name for reason in each.reasons]]  # type: ignore[list-item]
        database.execute("insert into upgrade_break values (?, ?, ?, ?, ?, ?, ?, ?)", row)
    return evaluate(database, capture=capture, rules=read_rules(UPGRADE))


def describe(reasons: Sequence[Reason], release: str) -> str:
    """What is not taken, in words: "Produce 2 (4.3.1 takes 3-13), ..."."""
    by_api: dict[str, list[Reason]] = defaultdict(list)
    for reason in reasons:
        by_api[reason.api_name].append(reason)
    return ", ".join(_describe(name, each, release) for name, each in by_api.items())


def _describe(name: str, reasons: Sequence[Reason], release: str) -> str:
    first = reasons[0]
    versions = " and ".join(str(each.api_version) for each in reasons)
    formats = sorted({number for each in reasons for number in each.record_formats})
    written = f", records in format {' and '.join(map(str, formats))}" if formats else ""
    if first.why == "not_known":
        return f"{name} {versions}{written}"
    if first.min_version is None:
        return f"{name} {versions}{written} ({release} does not have it)"
    span = f"{first.min_version}-{first.max_version}"
    return f"{name} {versions}{written} ({release} accepts {span})"
