"""`kwsniff.why`: findings of captures or of a folder of tables, and how many calls they explain."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from kwsniff.analysis.analyze import Paths, analyze
from kwsniff.analysis.filtered_folder import open_chosen, resolve_where
from kwsniff.filter.expression import Filter
from kwsniff.filter.parser import parse_filter
from kwsniff.findings.finding import Finding
from kwsniff.findings.views import READ, is_folder_of_tables
from kwsniff.sources.file_objects import as_paths
from kwsniff.temporary import temporary_folder
from kwsniff.texts import clean

if TYPE_CHECKING:
    import duckdb
    import pandas


@dataclass(frozen=True, slots=True, repr=False)
class Findings(Sequence[Finding]):
    """Findings, worst first.

    `account`, `connections`: numbers of calls and connections: all of them, `fine`, `routine` and `explained`
    by name, `unexplained`; None where memory lacks. `not_seen`: what the capture cannot show, in sentences.
    """

    findings: tuple[Finding, ...]
    account: Mapping[str, Any] | None
    connections: Mapping[str, Any] | None
    not_seen: tuple[str, ...]

    @overload
    def __getitem__(self, place: int) -> Finding: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Finding, ...]: ...
    def __getitem__(self, place: int | slice) -> Finding | tuple[Finding, ...]:
        return self.findings[place]

    def __len__(self) -> int:
        return len(self.findings)

    def __repr__(self) -> str:
        lines = [f"{each.severity}: {each.finding}: {clean(each.text)}" for each in self.findings]
        calls = f" in {self.account['calls']:,} calls" if self.account else ""
        return "\n".join(lines) or f"no findings{calls}"

    def to_pandas(self) -> "pandas.DataFrame":
        """A row for each finding, with the columns of the table `findings`."""
        import pyarrow as pa

        from kwsniff.findings.finding_rows import rows_of
        from kwsniff.tables.rows import batch_of

        rows = pa.Table.from_batches([batch_of("findings", rows_of(self.findings))])
        frame: pandas.DataFrame = rows.to_pandas()
        return frame


def why(paths: Paths, *, where: str | Filter | None = None, **options: Any) -> Findings:
    """What is wrong in captures, or in one folder of tables: the findings of `kwsniff why`.

    `paths`: as `kwsniff.analyze` takes them, or a folder that analyze, live or pipeline wrote. `where`: a
    filter (docs/filters.md): as if there were no other calls. `options`: those of `kwsniff.analyze` for
    captures, such as `since`, `ports` and `tls_keylog`. Raises CaptureError, LayoutError, UsageError.
    """
    from kwsniff.findings.context import QUERIES, describe_basis, list_not_seen
    from kwsniff.findings.evaluate import evaluate, prepare_views
    from kwsniff.findings.finding_calls import add_up
    from kwsniff.findings.prefilter.figures import figures_of

    with _tables_of(paths, where, options) as (database, files):
        rules = figures_of(files).worth_asking()
        prepare_views(database, rules, QUERIES)
        findings = evaluate(database, rules=rules)
        accounts = add_up(database, findings)
        not_seen = list_not_seen(describe_basis(database))
    return Findings(tuple(findings), accounts["account"], accounts["connections"], tuple(not_seen))


@contextmanager
def _tables_of(
    paths: Paths, where: str | Filter | None, options: Mapping[str, Any]
) -> Iterator[tuple["duckdb.DuckDBPyConnection", Mapping[str, list[str]]]]:
    filter_ = parse_filter(where) if isinstance(where, str) else where
    if isinstance(paths, str | os.PathLike) and is_folder_of_tables(paths):
        if options:
            raise TypeError(f"a folder of tables takes no option {next(iter(options))!r}")
        with open_chosen(os.fspath(paths), filter_, every_view=False) as opened:
            yield opened
        return
    with temporary_folder() as folder, as_paths(paths) as names:
        analyze(names, output=folder, tables=READ, **options)
        with open_chosen(folder, resolve_where(filter_, names), every_view=False) as opened:
            yield opened
