"""Tables with a history, read by others than those who wrote them; modes are those of the rows' days."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

import kwsniff
from kwsniff.cli import main as cli
from kwsniff.errors import OutputError, UsageError
from kwsniff.spark import dated_parts, delta, iceberg, output_lock, table_formats
from kwsniff.spark.parts import by_date
from kwsniff.spark.pipeline import run_pipeline
from kwsniff.spark.storage import Place
from kwsniff.tables.folder import MANIFEST, Folder
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.tables.stored_files import open_catalog
from tests.spark.compare import analyzed, analyzed_once, in_order

CAPTURES = Path(__file__).parents[2] / "captures"
ONE, OTHER = (CAPTURES / name / "capture.pcap" for name in ("transactions", "first_steps"))
FORMS = ("parquet", "delta", "iceberg")
SHOWN = ("api_calls", "connections", "transactions")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, in_process: None) -> None:
    monkeypatch.setattr(output_lock, "BEAT_S", 0.2)
    monkeypatch.setattr(output_lock, "PATIENCE_S", 1.0)
    pytest.importorskip("deltalake", reason="deltalake is not installed")
    pytest.importorskip("pyiceberg", reason="pyiceberg is not installed")


def run(capture: Path, output: Path, form: str, mode: str = "overwrite") -> Any:
    spark: Any = object()
    return run_pipeline(
        capture, output, spark=spark, tables=(*SHOWN, "findings"), num_buckets=2, form=form, mode=mode
    )


def read(output: Path, form: str, table: str, version: int | None = None) -> pa.Table:
    """By the format's own library; of parquet by the manifest."""
    if form == "delta":
        import deltalake

        return deltalake.DeltaTable(str(output / table), version=version).to_pyarrow_table()
    if form == "iceberg":
        with open_catalog(output) as catalog:
            found = catalog.load_table(f"kwsniff.{table}")
            snapshot = None if version is None else found.history()[version].snapshot_id
            return found.scan(snapshot_id=snapshot).to_arrow()
    files = json.loads((output / MANIFEST).read_text())["files"][table]
    return ds.dataset([str(output / each["path"]) for each in files]).to_table()


def rows(table: pa.Table, name: str) -> list[dict[str, Any]]:
    schema = arrow_schema(TABLES[name])
    return in_order(table.select(schema.names).cast(schema), ())


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("form", FORMS)
def test_rows_are_replaced_added_and_replaced_by_their_days(form: str, tmp_path: Path) -> None:
    output = tmp_path / "lake"
    one, other = analyzed_once(ONE), analyzed_once(OTHER)
    run(ONE, output, form)
    assert {name: rows(read(output, form, name), name) for name in SHOWN} == {n: one[n] for n in SHOWN}
    run(OTHER, output, form, "append")
    for name in SHOWN:
        assert rows(read(output, form, name), name) == sorted([*one[name], *other[name]], key=repr)
    run(OTHER, output, form, "replace-dates")
    for name in SHOWN:
        kept = [row for row in one[name] if days([row], name).isdisjoint(days(other[name], name))]
        assert rows(read(output, form, name), name) == sorted([*kept, *other[name]], key=repr), name
    run(OTHER, output, form)
    assert {name: rows(read(output, form, name), name) for name in SHOWN} == {n: other[n] for n in SHOWN}


def days(found: list[dict[str, Any]], name: str) -> set[str]:
    schema = arrow_schema(TABLES[name])
    filled = [{**dict.fromkeys(schema.names), **row} for row in found]
    batches = pa.Table.from_pylist(filled, schema=schema).to_batches()
    return {day for batch in batches for day, _ in by_date(name, batch)}


def counted(output: Path, form: str, capsys: pytest.CaptureFixture[str]) -> set[int]:
    """Calls in a folder, by every reader of kwsniff, and by the format's own library."""
    found = {read(output, form, "api_calls").num_rows, kwsniff.open(output).rows("api_calls")}
    capsys.readouterr()
    assert cli.run(["sql", str(output), "select count(*) as calls from api_calls", "--format", "jsonl"]) == 0
    found.add(json.loads(capsys.readouterr().out)["calls"])
    cli.run(["why", "--json", str(output)])
    found.add(json.loads(capsys.readouterr().out)["account"]["calls"])
    account = kwsniff.why(output).account
    assert account is not None
    return found | {account["calls"]}


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
@pytest.mark.parametrize("form", FORMS)
def test_every_reader_counts_the_rows_of_the_newest_version(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "a lake"
    one, other = (len(analyzed_once(each)["api_calls"]) for each in (ONE, OTHER))
    run(ONE, output, form)
    run(OTHER, output, form)
    assert counted(output, form, capsys) == {other}
    run(ONE, output, form, "append")
    assert counted(output, form, capsys) == {one + other}
    left = output / "api_calls" / "date=2001-01-01" / "dead-writer.parquet"
    left.parent.mkdir()
    pq.write_table(read(output, form, "api_calls").slice(0, 1), left)
    assert counted(output, form, capsys) == {one + other}
    if form == "delta":
        import deltalake

        table = deltalake.DeltaTable(str(output / "api_calls"))
        table.delete("api_name = 'Fetch'")
    elif form == "iceberg":
        with open_catalog(output) as catalog:
            catalog.load_table("kwsniff.api_calls").delete("api_name = 'Fetch'")
    fetches = sum(
        row["api_name"] == "Fetch" for each in (ONE, OTHER) for row in analyzed_once(each)["api_calls"]
    )
    rest = one + other - (0 if form == "parquet" else fetches)
    assert counted(output, form, capsys) == {rest}
    if form == "delta":
        table.optimize.compact()
        assert counted(output, form, capsys) == {rest}


@pytest.mark.sample(1)
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_log_that_cannot_be_read_is_no_folder_of_all_files(form: str, tmp_path: Path) -> None:
    output = tmp_path / "lake"
    run(OTHER, output, form)
    moved = tmp_path / "moved"
    output.rename(moved)
    if form == "delta":  # names in its log begin at the table
        assert kwsniff.open(moved).rows("api_calls") == len(analyzed_once(OTHER)["api_calls"])
        for file in (moved / "api_calls" / "_delta_log").iterdir():
            file.write_text("{")
    with pytest.raises(UsageError, match=r"api_calls: its .* cannot be read .*; if the folder was moved"):
        kwsniff.open(moved)


def test_a_damaged_manifest_is_said(tmp_path: Path) -> None:
    output = tmp_path / "lake"
    run(OTHER, output, "parquet")
    (output / MANIFEST).write_text("{")
    with pytest.raises(UsageError, match=r"_kwsniff\.json: is damaged"):
        kwsniff.open(output)


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_what_was_there_before_can_still_be_read(form: str, tmp_path: Path) -> None:
    output = tmp_path / "lake"
    run(ONE, output, form)
    run(OTHER, output, form)
    version = 1 if form == "delta" else 0  # Delta's first is the table without rows
    assert rows(read(output, form, "api_calls", version), "api_calls") == analyzed_once(ONE)["api_calls"]
    assert rows(read(output, form, "api_calls"), "api_calls") == analyzed_once(OTHER)["api_calls"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Iceberg scan planning")
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_polars_and_duckdb_read_them(form: str, tmp_path: Path) -> None:
    import duckdb
    import polars

    output = tmp_path / "lake"
    run(ONE, output, form)
    run(OTHER, output, form, "append")
    number = len(analyzed_once(ONE)["api_calls"]) + len(analyzed_once(OTHER)["api_calls"])
    if form == "delta":
        import deltalake

        frame = polars.scan_delta(str(output / "api_calls"))
        files = [
            path.removeprefix("file://")
            for path in deltalake.DeltaTable(str(output / "api_calls")).file_uris()
        ]
    else:
        with open_catalog(output) as catalog:
            found = catalog.load_table("kwsniff.api_calls")
        frame = polars.scan_iceberg(found)
        files = [task.file.file_path.removeprefix("file://") for task in found.scan().plan_files()]
    assert frame.select(polars.len()).collect().item() == number
    (counted,) = duckdb.execute(
        "select count(distinct (run_id, call_id)) from read_parquet($files)", {"files": files}
    ).fetchone() or (0,)
    assert counted == number


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_columns_that_are_new_are_added(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the table had been begun by a kwsniff that did not know a column: its rows have none."""
    output = tmp_path / "lake"
    columns = dated_parts.dated_schema
    placed = table_formats.place_part

    with monkeypatch.context() as patch:
        for module in (delta, iceberg):
            patch.setattr(
                module,
                "dated_schema",
                lambda table: pa.schema([f for f in columns(table) if f.name != "acks"]),
            )

        def without(name: str, place: Place, source: str, part: Any) -> Any:
            with place.open_parquet(source) as file:
                table = file.read()
            if "acks" in table.column_names:
                with place.open_output(source) as target:
                    pq.write_table(table.drop_columns(["acks"]), target)
                    part = type(part)(part.table, part.path, part.rows, target.tell())
            return placed(name, place, source, part)

        patch.setattr("kwsniff.spark.store_staging.place_part", without)
        run(ONE, output, form)
        assert "acks" not in read(output, form, "api_calls").column_names
    run(OTHER, output, form, "append")
    found = read(output, form, "api_calls")
    wanted = [row["acks"] for row in analyzed(OTHER)["api_calls"] if row["acks"] is not None]
    assert sorted(each for each in found["acks"].to_pylist() if each is not None) == sorted(wanted)
    assert found.num_rows == len(analyzed(ONE)["api_calls"]) + len(analyzed(OTHER)["api_calls"])


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("before", "after"), [("delta", "parquet"), ("parquet", "iceberg"), ("iceberg", "delta")]
)
def test_tables_of_another_format_are_let_be(before: str, after: str, tmp_path: Path) -> None:
    output = tmp_path / "lake"
    run(ONE, output, before)
    with pytest.raises(OutputError, match=f"its tables are {before}; say --format {before}"):
        run(OTHER, output, after)
    assert rows(read(output, before, "api_calls"), "api_calls") == analyzed_once(ONE)["api_calls"]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("form", "mode"), [("parquet", "append"), ("delta", "overwrite")])
def test_a_folder_has_one_writer_whatever_it_writes(form: str, mode: str, tmp_path: Path) -> None:
    output = tmp_path / "lake"
    with Folder(output), pytest.raises(OutputError, match="another kwsniff is writing there"):
        run(ONE, output, form, mode)
    run(ONE, output, form, mode)
    assert rows(read(output, form, "api_calls"), "api_calls") == analyzed_once(ONE)["api_calls"]


@pytest.mark.parametrize(
    ("options", "said"),
    [(("orc", "append"), "no format 'orc'"), (("delta", "merge"), "no mode 'merge'")],
)
def test_what_there_is_not_is_said(options: tuple[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        table_formats.check_format(*options, is_uri=False)
    with pytest.raises(UsageError, match="its catalog in a folder"):
        table_formats.check_format("iceberg", "append", is_uri=True)


def test_delta_says_the_least_and_greatest_values_of_each_file(tmp_path: Path) -> None:
    """As the file's own values have them; longer texts are left out."""
    import deltalake
    import pyarrow.compute as pc

    run(ONE, tmp_path / "lake", "delta")
    table = deltalake.DeltaTable(str(tmp_path / "lake" / "api_calls"))
    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    assert actions
    seen = set()
    for action in actions:
        file = pq.ParquetFile(tmp_path / "lake" / "api_calls" / action["path"]).read()
        assert action["num_records"] == file.num_rows
        for name in file.column_names:
            if action.get(f"min.{name}") is None:
                continue
            ends = pc.min_max(file[name]).as_py()
            assert (action[f"min.{name}"], action[f"max.{name}"]) == (ends["min"], ends["max"]), name
            assert action[f"null_count.{name}"] == file[name].null_count
            seen.add(name)
    assert {"request_time", "api_key", "latency_ns"} <= seen


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_columns_have_their_descriptions(form: str, tmp_path: Path) -> None:
    output = tmp_path / "lake"
    run(ONE, output, form)
    if form == "delta":
        import deltalake

        fields = deltalake.DeltaTable(str(output / "api_calls")).schema().fields
        said = {field.name: field.metadata.get("comment") for field in fields}
    else:
        with open_catalog(output) as catalog:
            said = {
                field.name: field.doc for field in catalog.load_table("kwsniff.api_calls").schema().fields
            }
    for column in TABLES["api_calls"].columns:
        assert (said[column.name] or "").startswith(column.doc.partition("[")[0]), column.name
    assert said["request_bytes"]
