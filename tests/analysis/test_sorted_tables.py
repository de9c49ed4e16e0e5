"""`--sort`: tables in the order of time, against pyarrow's sort of the same rows."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.analysis import sorted_tables
from kwsniff.cli.main import DONE, FAILED, run
from kwsniff.errors import OutputError, UsageError

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
FIRST_TIMES = {
    "api_calls": "request_time",
    "connections": "first_time",
    "error_codes": "response_time",
    "partitions": "time",
    "deliveries": "record_time",
    "stalls": "start_time",
}


def _sort(rows: pa.Table, column: str) -> pa.Table:
    numbered = rows.append_column("number", pa.array(range(len(rows))))
    keys = [(column, "ascending", "at_end"), ("number", "ascending", "at_end")]
    return rows.take(pc.sort_indices(numbered, sort_keys=keys))


@pytest.mark.parametrize("name", ["kraft_start", "first_steps", "rebalance"])
def test_rows_are_those_of_a_run_without_it_in_the_order_of_time(name: str, tmp_path: Path) -> None:
    capture = CAPTURES / name / "capture.pcap"
    sorted_, plain = tmp_path / "sorted", tmp_path / "plain"
    kwsniff.analyze(capture, output=sorted_, run_id="same", sort=True)
    kwsniff.analyze(capture, output=plain, run_id="same")
    moved = 0
    for path in sorted(plain.glob("*.parquet")):
        rows, found = pq.read_table(path), pq.read_table(sorted_ / path.name)
        if column := FIRST_TIMES.get(path.stem):
            assert found.equals(_sort(rows, column)), path.stem
            moved += not found.equals(rows)
            metadata = pq.ParquetFile(sorted_ / path.name).metadata
            for group in range(metadata.num_row_groups):
                (order,) = metadata.row_group(group).sorting_columns
                assert rows.schema.names[order.column_index] == column
        assert sorted(map(str, found.to_pylist())) == sorted(map(str, rows.to_pylist())), path.stem
        assert found.schema.equals(rows.schema, check_metadata=True), path.stem
    assert moved


def test_findings_stay_worst_first() -> None:
    assert sorted_tables.time_of("findings") is None
    assert sorted_tables.time_of("hops") is None


def test_sorting_wants_files(capsys: pytest.CaptureFixture[str]) -> None:
    capture = CAPTURES / "first_steps" / "capture.pcap"
    with pytest.raises(UsageError, match="output="):
        kwsniff.analyze(capture, sort=True)
    assert run(["analyze", str(capture), "--sort"]) == FAILED
    assert capsys.readouterr() == (
        "",
        "kwsniff: error: --sort orders files: name a folder for them with -o\n",
    )


def test_the_command_line_sorts(tmp_path: Path) -> None:
    capture = CAPTURES / "first_steps" / "capture.pcap"
    assert run(["analyze", str(capture), "--sort", "--table", "api_calls", "-o", str(tmp_path)]) == DONE
    times = pq.read_table(tmp_path / "api_calls.parquet")["request_time"].to_pylist()
    assert times == sorted(times)


def test_without_room_to_sort_no_table_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    def refuse(*_: object) -> None:
        raise duckdb.OutOfMemoryException("there is no more")

    monkeypatch.setattr(sorted_tables, "open_database", refuse)
    with pytest.raises(OutputError, match="leave out --sort"):
        kwsniff.analyze(CAPTURES / "first_steps" / "capture.pcap", output=tmp_path, sort=True)
    assert list(tmp_path.glob("*.parquet")) == []
