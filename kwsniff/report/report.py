"""The report of `kwsniff why --html`: all sections of one database of tables."""

from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from kwsniff.findings.context import describe_checks
from kwsniff.findings.finding import Finding
from kwsniff.report.account import make_account
from kwsniff.report.deliveries import make_deliveries
from kwsniff.report.digest import make_digest
from kwsniff.report.errors import make_errors
from kwsniff.report.lag import make_lag
from kwsniff.report.latency import make_latency
from kwsniff.report.page import write_page
from kwsniff.report.proof import find_commands, make_findings
from kwsniff.report.rebalances import make_rebalances
from kwsniff.report.section import Section
from kwsniff.report.span import find_span
from kwsniff.report.time_parts import make_time_parts
from kwsniff.report.topology import make_topology
from kwsniff.report.upgrade import make_upgrade
from kwsniff.tables.servers import name_known
from kwsniff.texts import clean, plural
from kwsniff.zones import UTC_ZONE, Zone

if TYPE_CHECKING:
    import duckdb

_MOST_CAPTURES = 6


def write_report(
    file: IO[str],
    database: "duckdb.DuckDBPyConnection",
    findings: Sequence[Finding],
    *,
    basis: Mapping[str, Any],
    not_seen: Sequence[str],
    accounts: Mapping[str, Any] | None = None,
    capture: str | None = None,
    upgrade: tuple[str, Sequence[Mapping[str, Any]]] | None = None,
    zone: Zone = UTC_ZONE,
) -> None:
    """Writes the page of `findings` and of the tables that `database` shows.

    `basis` and `not_seen` come from findings/context.py, `accounts` from findings/finding_calls.py;
    `capture`: the captures as commands name them, None for tables; `upgrade`: a release and the rows of its
    verdicts, if any; `zone`: the time zone of the page.
    """
    span = find_span(database, zone)
    commands = find_commands(database, capture)
    sections: list[Section] = [
        make_findings(database, findings, commands, zone),
        make_latency(database, span, findings, zone),
        make_time_parts(database, span),
        make_deliveries(database, span),
        make_digest(database, commands),
        make_errors(database, span, commands, zone),
        make_rebalances(database, span),
        make_lag(database, span),
        make_topology(database),
    ]
    if account := make_account(accounts or {}):
        sections.insert(1, account)
    if upgrade is not None:
        sections.append(make_upgrade(*upgrade))
    write_page(
        file,
        title="kwsniff: findings",
        summary=_summary(basis, findings, zone),
        sections=sections,
        footer=not_seen,
    )


def _summary(basis: Mapping[str, Any], findings: Sequence[Finding], zone: Zone) -> list[str]:
    counts = [(word, sum(each.severity == word for each in findings)) for word in ("problem", "warning")]
    told = [plural(count, word) for word, count in counts if count]
    harmed = any(each.finding == "unexplained" for each in findings)
    found = "No rule explains the harm" if harmed else "No findings"
    verdict = f"{' and '.join(told)}." if told else f"{found}. {describe_checks()}"
    if not basis["calls"]:
        none = "he capture has no Kafka calls."
        verdict = f"{' and '.join(told)}; t{none}" if told else f"T{none}"
    seconds = "" if basis["seconds"] is None else f" in {basis['seconds']:,.1f} s"
    scope = (
        f"{plural(basis['calls'], 'call')} from {plural(basis['clients'], 'client')} "
        f"to {plural(basis['brokers'], 'broker')}{name_known(basis['servers'])}{seconds}, "
        f"{basis['payload_bytes']:,} bytes of payload."
    )
    captures = [clean(each) for each in basis["captures"] or ()]
    named = ", ".join(captures[:_MOST_CAPTURES])
    more = f" and {len(captures) - _MOST_CAPTURES} more" if len(captures) > _MOST_CAPTURES else ""
    began = "" if basis["first_time"] is None else f", from {zone.moment(basis['first_time'])}"
    return [verdict, scope, f"{named}{more}{began}"]
