"""The column `harm` of calls and connections says what the account counts."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.errors import OutputError, UsageError
from kwsniff.findings.prefilter.figures import figures_of
from kwsniff.findings.rule import SEVERITIES
from kwsniff.tables.enums import WORDS
from kwsniff.tables.harm import KEYS
from kwsniff.tables.stored_files import files_of_tables
from tests.findings.account import CAPTURES, read_account
from tests.findings.conftest import ENOUGH, AccountOf, TablesOf
from tests.findings.measured import Recording, recordings
from tests.findings.stage import Stage
from tests.findings.test_consumer_stuck import BROKER, RECORDS, read
from tests.traffic import messages
from tests.traffic.records import batch
from tests.traffic.tcp import Endpoint

pytestmark = pytest.mark.sample_tests(9)

REFUSED = CAPTURES / "incidents" / "not_authorized" / "broker.pcap"
RESET = CAPTURES / "killed_broker" / "capture.pcap"
STUCK = CAPTURES / "field" / "l_stuck_consumer.pcap"

SUMS = """
with explains as (
    select finding_id from '{folder}/findings.parquet' where severity <> 'info' and finding <> 'unexplained'
),
explained as (
    select distinct {key} from '{folder}/finding_calls.parquet' semi join explains using (finding_id)
    where (call_id is null) = {is_connection}
)
select count(*) as all_rows, count(e.{key}) as explained,
    count(*) filter (harm is not null and e.{key} is null) as unexplained
from '{folder}/{table}.parquet' t left join explained e using ({key})
where connection_id not in (
    select connection_id from '{folder}/connections.parquet' where twin_of is not null)
"""


SIGNS = """
select (select count(*) > 0 from '{folder}/api_calls.parquet'
        where status = 'unanswered' or reason = 'cut_off_by_client'),
    (select coalesce(max(total_ns), 0) >= 1000000000 from '{folder}/latencies.parquet'),
    (select coalesce(list(distinct error_code), []) from '{folder}/error_codes.parquet')
"""


@pytest.mark.sample(4)
@pytest.mark.parametrize("recording", recordings(), ids=lambda each: f"{each.name}-{each.place}")
def test_figures_show_what_sql_over_the_tables_finds(recording: Recording, tables_of: TablesOf) -> None:
    """By figures, what calls suffered is not looked for where there is none."""
    folder = tables_of(recording.path)
    ((unanswered, long, errors),) = duckdb.execute(SIGNS.format(folder=folder)).fetchall()
    signs = figures_of(files_of_tables(folder)).signs()
    assert (signs["unanswered"], signs["long"]) == (unanswered, long)
    assert signs["errors"] - {0} == set(errors) - {0}


@pytest.mark.sample(4)
@pytest.mark.parametrize("recording", recordings(), ids=lambda each: f"{each.name}-{each.place}")
def test_sql_over_the_column_gives_the_account(
    recording: Recording, tables_of: TablesOf, account_of: AccountOf
) -> None:
    """calls = fine + routine + explained + unexplained; the two first are the rest. The column is filled by
    rules worth asking, the account is of all."""
    folder = tables_of(recording.path)
    account = account_of(recording.path)
    for table, key, told in (
        ("api_calls", "call_id", account.calls),
        ("connections", "connection_id", account.connections),
    ):
        is_connection = str(table == "connections").lower()
        query = SUMS.format(folder=folder, table=table, key=key, is_connection=is_connection)
        ((rows, explained, unexplained),) = duckdb.execute(query).fetchall()
        assert rows == told[table.removeprefix("api_")]
        assert explained == sum(told["explained"].values())
        assert unexplained == told["unexplained"]
        assert rows - explained - unexplained == told["fine"] + sum(told["routine"].values())


WEIGHTS = """
with harmed as (
    select call_id, connection_id from '{folder}/api_calls.parquet' where harm is not null
    union all select null, connection_id from '{folder}/connections.parquet' where harm is not null
),
weight as (
    select finding_id, count(h.connection_id) as number
    from '{folder}/finding_calls.parquet' e left join harmed h
        on h.connection_id = e.connection_id and h.call_id is not distinct from e.call_id
    group by finding_id
)
select severity, explained_by, case when finding = 'unexplained' then 0 else coalesce(number, 0) end
from '{folder}/findings.parquet' left join weight using (finding_id) order by finding_id
"""


@pytest.mark.sample(6)
@pytest.mark.parametrize("recording", recordings(), ids=lambda each: f"{each.name}-{each.place}")
def test_within_a_severity_the_most_harm_comes_first(recording: Recording, tables_of: TablesOf) -> None:
    """By SQL over the tables; what is a cause, or follows from one, weighs with the other."""
    rows = duckdb.execute(WEIGHTS.format(folder=tables_of(recording.path))).fetchall()
    names = pq.read_table(tables_of(recording.path) / "findings.parquet")["finding"].to_pylist()
    causes = {cause for _, cause, _ in rows}
    for severity in SEVERITIES:
        plain = [
            number
            for name, (of, cause, number) in zip(names, rows, strict=True)
            if of == severity and cause is None and name not in causes
        ]
        assert plain == sorted(plain, reverse=True)


def _harm(rows: pa.Table, table: str) -> Mapping[int, str]:
    pairs = zip(rows[KEYS[table]].to_pylist(), rows["harm"].to_pylist(), strict=True)
    return {number: word for number, word in pairs if word is not None}


def test_the_column_names_what_happened(tables_of: TablesOf) -> None:
    """The broker was killed while one Produce waited (captures/killed_broker/about.toml)."""
    folder = tables_of(RESET)
    calls = pq.read_table(folder / "api_calls.parquet")
    harm = _harm(calls, "api_calls")
    told = {row["call_id"]: (row["api_name"], row["status"]) for row in calls.to_pylist()}
    assert [(*told[number], harm[number]) for number in sorted(harm)] == [
        ("Produce", "unanswered", "unanswered"),
        # without a producer id, and the record may be stored
        ("Produce", "answered", "repeated"),
    ]
    lost = next(row for row in calls.to_pylist() if row["call_id"] == min(harm))
    connections = _harm(pq.read_table(folder / "connections.parquet"), "connections")
    assert connections == {lost["connection_id"]: "reset"}


@pytest.mark.parametrize("capture", [REFUSED, RESET, STUCK], ids=["refused", "reset", "stuck"])
def test_tables_in_memory_have_the_same_words(capture: Path, tables_of: TablesOf) -> None:
    folder, found = tables_of(capture), kwsniff.analyze(capture)
    opened = kwsniff.open(folder)
    for table in KEYS:
        assert _harm(found.table(table), table) == _harm(opened.table(table), table)
        assert found.table(table).schema.equals(pq.read_table(folder / f"{table}.parquet").schema)
    assert _harm(found.api_calls, "api_calls")


def test_all_words_are_those_of_the_list(tables_of: TablesOf) -> None:
    for table, words in (("api_calls", "call_harm"), ("connections", "connection_harm")):
        told = pq.read_table(tables_of(REFUSED) / f"{table}.parquet")["harm"].drop_null().to_pylist()
        assert set(told) <= set(WORDS[words])


def test_only_the_column_differs_from_a_run_without_findings(tmp_path: Path) -> None:
    """Row groups, their order, encodings and metadata stay as they were written at first."""
    kwsniff.analyze(REFUSED, output=tmp_path / "all", run_id="one")
    kwsniff.analyze(REFUSED, output=tmp_path / "some", run_id="one", tables=[*KEYS])
    for table in KEYS:
        both = [tmp_path / name / f"{table}.parquet" for name in ("all", "some")]
        judged, plain = (pq.ParquetFile(path) for path in both)
        assert plain.read()["harm"].null_count == plain.metadata.num_rows
        assert judged.read().drop_columns("harm").equals(plain.read().drop_columns("harm"))
        assert judged.schema_arrow.equals(plain.schema_arrow, check_metadata=True)
        assert _shape(judged) == _shape(plain)


def _shape(file: pq.ParquetFile) -> list[Any]:
    groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
    columns = [
        (column.path_in_schema, column.compression, column.encodings, column.is_stats_set)
        for group in groups
        for column in (group.column(place) for place in range(group.num_columns))
        if column.path_in_schema != "harm"
    ]
    return [[group.num_rows for group in groups], columns]


def test_of_chosen_calls_nobody_looked_for_findings(tmp_path: Path) -> None:
    kwsniff.analyze(REFUSED, output=tmp_path, where="api_name = 'Metadata'")
    assert _harm(pq.read_table(tmp_path / "api_calls.parquet"), "api_calls") == {}


def test_a_filter_by_harm_chooses_the_calls_that_were_harmed(tables_of: TablesOf, tmp_path: Path) -> None:
    expected = _harm(pq.read_table(tables_of(REFUSED) / "api_calls.parquet"), "api_calls")
    chosen = kwsniff.analyze(REFUSED, where="harm = 'refused'").api_calls
    assert set(chosen["call_id"].to_pylist()) == set(expected)
    stored = kwsniff.open(tables_of(REFUSED), where="harm is not null").api_calls
    assert _harm(stored, "api_calls") == expected
    with pytest.raises(UsageError, match="harm is known once all calls have passed"):
        kwsniff.sniff("no such interface", where="harm is not null")
    with pytest.raises(UsageError, match="unknown harm 'refusd'"):
        kwsniff.analyze(REFUSED, where="harm = 'refusd'")


def test_a_folder_of_before_has_no_harm(tables_of: TablesOf, tmp_path: Path) -> None:
    for table in KEYS:
        rows = pq.read_table(tables_of(REFUSED) / f"{table}.parquet")
        pq.write_table(rows.drop_columns("harm"), tmp_path / f"{table}.parquet")
    tables = kwsniff.open(tmp_path)
    assert tables.api_calls["harm"].null_count == tables.api_calls.num_rows
    assert read_account(tmp_path).calls["calls"] == tables.api_calls.num_rows


def test_a_full_disk_leaves_the_tables_of_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kwsniff.analyze(RESET, output=tmp_path, limits={"memory": ENOUGH})
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.parquet")}

    def full(*_: object) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("kwsniff.tables.harm.with_codes", full)
    with pytest.raises(OutputError, match="No space left on device"):
        kwsniff.analyze(REFUSED, output=tmp_path, limits={"memory": ENOUGH})
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.parquet")} == before
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_a_run_that_is_killed_while_it_fills_the_column_leaves_the_tables_of_before(tmp_path: Path) -> None:
    kwsniff.analyze(RESET, output=tmp_path, limits={"memory": ENOUGH})
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.parquet")}
    script = (
        "import os, signal, sys, kwsniff, kwsniff.tables.harm as harm\n"
        "harm.with_codes = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "kwsniff.analyze(sys.argv[1], output=sys.argv[2])"
    )
    done = subprocess.run([sys.executable, "-c", script, str(REFUSED), str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.parquet")} == before
    kwsniff.analyze(REFUSED, output=tmp_path)
    assert _harm(pq.read_table(tmp_path / "api_calls.parquet"), "api_calls")
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def _reader(folder: Path, offsets: Sequence[int], data: bytes, **told: Any) -> Mapping[int, str]:
    capture = read(folder, offsets, data, **told).write()
    return _harm(kwsniff.analyze(capture).api_calls, "api_calls")


def test_fetches_that_get_nothing_where_more_follows_are_stuck(tmp_path: Path) -> None:
    """Fifteen fetches ask for offset 500 in 4.5 s; the high watermark is 1000."""
    assert [*_reader(tmp_path, [500] * 15, b"").values()] == ["stuck"] * 15


def test_fetches_that_get_the_same_records_again_are_repeated_but_not_the_first(tmp_path: Path) -> None:
    assert [*_reader(tmp_path, [0] * 12, RECORDS, in_group=True).values()] == ["repeated"] * 11


@pytest.mark.parametrize(
    ("offsets", "told"),
    [
        ([1000] * 15, {}),  # long polls at the end of the log
        ([500, 500, 503, 503, 506, 506], {}),  # read twice, and further
        ([500] * 4, {"every": 2_000_000_000}),
    ],
)
def test_fetches_that_wait_or_go_back_once_are_no_harm(
    offsets: Sequence[int], told: dict[str, Any], tmp_path: Path
) -> None:
    assert _reader(tmp_path, offsets, RECORDS if offsets[0] < 1000 else b"", **told) == {}


def test_two_readers_with_one_client_id_do_not_repeat_each_other(tmp_path: Path) -> None:
    """Four connections read the same offsets, each once."""
    stage = read(tmp_path, [500, 503, 506], RECORDS)
    for port in range(51_001, 51_005):
        script = stage.scene.connection(Endpoint("10.1.0.7", port), BROKER)
        script.open()
        for number, offset in enumerate((500, 503, 506), 1):
            moment = port % 10 * 1_500_000_000 + number * 300_000_000
            call = messages.fetch(
                correlation_id=number, batches={"orders": {0: RECORDS}}, offset=offset, version=11,
                client_id="auditor",
            )  # fmt: skip
            script.call(call, at=moment, answer_at=moment + 2_000_000)
        script.close(at=9_000_000_000)
    assert _harm(kwsniff.analyze(stage.write()).api_calls, "api_calls") == {}


def _written(folder: Path, tries: Sequence[tuple[bytes, bool]]) -> list[str | None]:
    """Harm of Produce calls, one on each connection: a batch, and whether it gets a response within 9 s."""
    stage = Stage(folder)
    for number, (data, is_answered) in enumerate(tries):
        script = stage.scene.connection(Endpoint("10.1.0.7", 51_000 + number), BROKER)
        start = number * 10_000_000_000
        script.open(at=start)
        call = messages.produce(9, number, {"orders": {0: data}}, client_id="till")
        if is_answered:
            script.call(call, at=start + 1_000_000, answer_at=start + 3_000_000)
        else:
            script.call(call.unanswered(), at=start + 1_000_000)
            script.acknowledge(start + 2_000_000, from_client=False)
        script.close(at=start + 9_000_000_000)
    rows = kwsniff.analyze(stage.write()).api_calls.to_pylist()
    calls = [row for row in rows if row["api_name"] == "Produce"]
    return [row["harm"] for row in sorted(calls, key=lambda row: row["request_time"])]


PLAIN = batch([b"ten euros"])
NUMBERED = batch([b"ten euros"], producer=(7, 0, 3))


@pytest.mark.parametrize(
    ("tries", "harm"),
    [
        ([(PLAIN, False), (PLAIN, True)], ["gave_up", "repeated"]),
        # The broker knows the batch by its producer: a retry is harmless, and another one is not.
        ([(NUMBERED, False), (NUMBERED, True)], ["gave_up", None]),
        ([(NUMBERED, False), (NUMBERED, False), (NUMBERED, True)], ["gave_up", "gave_up", "repeated"]),
        # Nothing was lost, or something else is written.
        ([(PLAIN, True), (PLAIN, True)], [None, None]),
        ([(PLAIN, False), (batch([b"ten euros"], time_ms=1_700_000_000_001), True)], ["gave_up", None]),
        ([(NUMBERED, False), (batch([b"ten euros"], producer=(7, 0, 4)), True)], ["gave_up", None]),
    ],
)
def test_a_batch_that_may_be_stored_already_is_repeated(
    tries: Sequence[tuple[bytes, bool]], harm: Sequence[str | None], tmp_path: Path
) -> None:
    assert _written(tmp_path, tries) == harm
