"""A store in the place of a folder: an S3 on loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

import kwsniff
from kwsniff.errors import OutputError, UsageError
from kwsniff.spark import output_lock, pipeline, staging
from kwsniff.spark.decode import decode_bucket
from kwsniff.spark.delta import options_of
from kwsniff.spark.file_systems import check_uri
from kwsniff.spark.hadoop import Settings
from kwsniff.spark.manifest import NEXT, paths_of, read_published
from kwsniff.spark.output_lock import Claim
from kwsniff.spark.pipeline import run_pipeline
from kwsniff.spark.storage import Place
from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.column import RUN
from kwsniff.tables.folder import MANIFEST
from kwsniff.tables.schema import TABLES, arrow_schema
from tests.spark.compare import Rows, analyzed, analyzed_once, in_order, parts, unjudged, written
from tests.spark.store import new_bucket

CAPTURES = Path(__file__).parents[2] / "captures"
ONE, OTHER = (CAPTURES / name / "capture.pcap" for name in ("transactions", "first_steps"))


@pytest.fixture
def output(settings: Settings, monkeypatch: pytest.MonkeyPatch, in_process: None) -> Place:
    monkeypatch.setattr(staging, "settings_for", lambda *_: settings)
    monkeypatch.setattr(output_lock, "BEAT_S", 0.2)
    monkeypatch.setattr(output_lock, "PATIENCE_S", 1.5)
    monkeypatch.setattr(output_lock, "_LOOK_S", 0.1)
    return new_bucket(settings).inside("some/tables")


def run(capture: Path, output: Place, tables: tuple[str, ...] = tuple(TABLES), num_buckets: int = 3) -> Any:
    return run_pipeline(capture, output.root, spark=object(), tables=tables, num_buckets=num_buckets)  # type: ignore[arg-type]


def read(output: Place, paths: list[str]) -> Rows:
    """The rows of these files, by table."""
    found: Rows = {}
    for name, table in TABLES.items():
        files = [pq.read_table(output.open_input(path)) for path in paths if path.startswith(f"{name}/")]
        found[name] = in_order(pa.concat_tables([arrow_schema(table).empty_table(), *files]), ())
    return found


def named(output: Place) -> Rows:
    return read(output, sorted(paths_of(read_published(output))))


def listed(output: Place) -> Rows:
    """What who lists the folders of the tables finds."""
    return read(output, [path for path in output.files() if path.endswith(".parquet")])


@pytest.mark.slow
def test_the_tables_are_those_of_analyze_and_nothing_else_is_there(output: Place) -> None:
    wanted = analyzed_once(ONE)
    for _ in range(2):  # also in the place of a run before
        result = run(ONE, output)
        assert named(output) == listed(output) == wanted
        assert set(output.files()) == {MANIFEST, *paths_of(read_published(output))}
        assert result.rows == {name: len(rows) for name, rows in wanted.items()}
    manifest = json.loads(output.read_text(MANIFEST) or "")
    for files in manifest["files"].values():
        for each in files:
            data = output.open_input(each["path"])
            assert data.size() == each["size"]
            table = pq.read_table(data)
            assert table.num_rows == each["rows"]
            assert set(table[RUN].to_pylist()) <= {manifest["run_id"]}


@pytest.mark.slow
def test_a_run_that_is_killed_at_any_write_leaves_the_old_or_the_new(
    output: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice at the same place, then one that lives. One that died does nothing to the store any more."""
    tables = ("api_calls", "captures")
    old, new = ({name: unjudged(analyzed_once(path))[name] for name in tables} for path in (ONE, OTHER))
    seen = set()
    steps = 0
    while True:
        run(ONE, output, tables, 1)
        lived = False
        for _ in range(2):
            with monkeypatch.context() as patch:
                lived = _dies_after(steps, output, patch, tables)
            found = named(output)
            shown = {name: found[name] for name in tables}
            assert shown in (old, new), steps
            seen.add(shown == new)
        if lived:
            break
        run(OTHER, output, tables, 1)
        found = listed(output)
        assert {name: found[name] for name in tables} == new
        assert set(output.files()) == {MANIFEST, *paths_of(read_published(output))}
        steps += 2
    assert seen == {False, True}
    assert steps > 8


class Killed(BaseException):
    pass


def _dies_after(steps: int, output: Place, patch: pytest.MonkeyPatch, tables: tuple[str, ...]) -> bool:
    """Whether it lived on: it changed the store less often."""
    left = [steps]

    def counted(name: str) -> None:
        there = getattr(Place, name)

        def change(*arguments: Any) -> Any:
            if Claim.__name__ in str(arguments) or "claims" in str(arguments[1:]):
                return there(*arguments) if left[0] >= 0 else None
            if left[0] <= 0:
                left[0] = -1
                raise Killed
            left[0] -= 1
            return there(*arguments)

        patch.setattr(Place, name, change)

    for name in ("copy", "write_text", "remove", "remove_folder", "open_output"):
        counted(name)
    try:
        run(OTHER, output, tables, 1)
    except Killed:
        return False
    return True


def test_of_two_at_once_one_wins_and_the_other_says_so(
    output: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode = decode_bucket
    said: list[str] = []

    def meanwhile(number: int, *, work: Any) -> Any:
        if not said:
            said.append("")
            with pytest.raises(OutputError, match="another kwsniff is writing there") as raised:
                run(ONE, output, ("api_calls",))
            said.append(str(raised.value))
        return decode(number, work=work)

    monkeypatch.setattr(pipeline, "decode_bucket", meanwhile)
    run(OTHER, output, ("api_calls",))
    assert said[1:]
    assert named(output)["api_calls"] == listed(output)["api_calls"] == analyzed_once(OTHER)["api_calls"]


def test_one_that_was_held_for_dead_changes_nothing(output: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """It sleeps for longer than others wait; another run comes and goes meanwhile."""
    run(ONE, output, ("api_calls",))
    monkeypatch.setattr(output_lock, "BEAT_S", 3600)
    decode = decode_bucket
    again: list[bool] = []

    def meanwhile(number: int, *, work: Any) -> Any:
        if not again:
            again.append(True)
            (claim,) = output.files(output_lock.FOLDER)
            output.remove([claim])
            run(OTHER, output, ("api_calls",))
        return decode(number, work=work)

    monkeypatch.setattr(pipeline, "decode_bucket", meanwhile)
    with pytest.raises(OutputError, match=r"another kwsniff took over|cannot write|it is missing"):
        run(ONE, output, ("api_calls",))
    assert named(output)["api_calls"] == listed(output)["api_calls"] == analyzed_once(OTHER)["api_calls"]


@pytest.mark.slow
def test_on_spark_aggregates_are_there_too(
    spark: Any, settings: Settings, capture: Path, tmp_path: Path
) -> None:
    """The settings are found in the session's own configuration; aggregates are those of a folder."""
    place = new_bucket(settings).inside("out")
    for name, value in settings:
        spark.conf.set(f"spark.hadoop.{name}", value)
    try:
        found = run_pipeline(capture, place.root, spark=spark, num_buckets=2)
    finally:
        for name, _ in settings:
            spark.conf.unset(f"spark.hadoop.{name}")
    wanted = run_pipeline(capture, tmp_path / "out", spark=spark, num_buckets=2)
    assert found.rows == wanted.rows
    assert named(place) == written(tmp_path / "out") == analyzed(capture)
    for name in AGGREGATES:
        files = [path for path in paths_of(read_published(place)) if path.startswith(f"{name}/")]
        assert files
        there = pa.concat_tables([pq.read_table(place.open_input(path)) for path in files])
        assert in_order(there, ("sketch",)) == aggregated(tmp_path / "out", name)


def aggregated(folder: Path, name: str) -> list[dict[str, Any]]:
    files = [pq.ParquetFile(path).read() for path in parts(folder, name)]
    return in_order(pa.concat_tables(files), ("sketch",))


@pytest.mark.slow
def test_a_delta_table_in_a_store_has_its_versions(output: Place) -> None:
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")
    spark: Any = object()
    for capture, mode in ((ONE, "overwrite"), (OTHER, "append")):
        run_pipeline(
            capture, output.root, spark=spark, tables=["api_calls"], num_buckets=1, form="delta", mode=mode
        )
    options = options_of(output)
    one, other = (unjudged(analyzed_once(path))["api_calls"] for path in (ONE, OTHER))
    for version, wanted in ((1, one), (2, sorted([*one, *other], key=repr))):
        table = deltalake.DeltaTable(output.display("api_calls"), version=version, storage_options=options)
        found = table.to_pyarrow_table().drop_columns(["date"])
        assert in_order(found.cast(arrow_schema(TABLES["api_calls"])), ()) == wanted


@pytest.mark.parametrize("name", ["letter.txt", "api_calls/date=2026-01-01/mine.parquet"])
def test_files_of_others_are_let_be(output: Place, name: str) -> None:
    output.write_text(name, "dear")
    with pytest.raises(OutputError, match="did not write"):
        run(ONE, output)
    assert output.files() == [name]


@pytest.mark.slow
def test_a_file_that_is_not_what_was_written_is_not_published(
    output: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(ONE, output, ("api_calls",))
    copy = Place.copy

    def half(self: Place, source: str, target: str) -> None:
        copy(self, source, target)
        with self.open_input(target) as file:
            data = file.read()
        with self.open_output(target) as file:
            file.write(data[:-1])

    monkeypatch.setattr(Place, "copy", half)
    with pytest.raises(OutputError, match=r"has \d+ bytes in place of \d+; nothing was published"):
        run(OTHER, output, ("api_calls",))
    assert named(output)["api_calls"] == unjudged(analyzed_once(ONE))["api_calls"]


@pytest.mark.slow
def test_a_manifest_that_was_cut_off_is_not_the_last_word(output: Place) -> None:
    """As in a store whose files appear before they are whole: the other copy is."""
    run(ONE, output, ("api_calls",))
    text = output.read_text(MANIFEST) or ""
    output.write_text(NEXT, text)
    output.write_text(MANIFEST, text[:100])
    assert named(output)["api_calls"] == unjudged(analyzed_once(ONE))["api_calls"]
    run(OTHER, output, ("api_calls",))
    assert listed(output)["api_calls"] == analyzed_once(OTHER)["api_calls"]


@pytest.mark.parametrize("uri", ["ftp://host/x", "s3a:///x", "http://host/x"])
def test_other_uris_are_refused_in_one_line(uri: str) -> None:
    with pytest.raises(UsageError) as raised:
        check_uri(uri)
    assert uri in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_store_that_is_not_there_is_said_in_one_line(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, in_process: None
) -> None:
    monkeypatch.setattr(staging, "settings_for", lambda *_: settings)
    with pytest.raises(OutputError, match=r"^s3a://nowhere-at-all/out: cannot write") as raised:
        run(ONE, Place("s3a://nowhere-at-all/out", settings))
    assert "\n" not in str(raised.value)


def test_who_reads_the_run_before_keeps_its_files_for_a_time(
    output: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its manifest; an hour later the next run removes them."""
    clock = [1_000_000.0]
    monkeypatch.setattr("kwsniff.spark.manifest.time.time", lambda: clock[0])
    tables = ("api_calls",)
    for keep_old in (0.0, 3600.0):
        run(ONE, output, tables)
        before = sorted(paths_of(read_published(output)))
        spark: Any = object()
        run_pipeline(OTHER, output.root, spark=spark, tables=tables, keep_old=keep_old)
        assert named(output)["api_calls"] == unjudged(analyzed_once(OTHER))["api_calls"]
        if keep_old:
            assert read(output, before)["api_calls"] == unjudged(analyzed_once(ONE))["api_calls"]
        else:
            assert not {*before} & {*output.files()}
    clock[0] += 3599
    run(ONE, output, tables)
    assert {*before} <= {*output.files()}
    clock[0] += 2
    run(OTHER, output, tables)
    assert set(output.files()) == {MANIFEST, *paths_of(read_published(output))}


def test_in_a_folder_too(in_process: None, tmp_path: Path) -> None:
    spark: Any = object()
    options: dict[str, Any] = {"spark": spark, "tables": ("api_calls",)}
    run_pipeline(ONE, tmp_path / "out", keep_old=60, **options)
    before = parts(tmp_path / "out", "api_calls")
    run_pipeline(OTHER, tmp_path / "out", keep_old=60, **options)
    assert {*before} < {*parts(tmp_path / "out", "api_calls")}
    wanted = unjudged(analyzed_once(OTHER))["api_calls"]
    assert kwsniff.open(tmp_path / "out").rows("api_calls") == len(wanted)


def test_a_manifest_that_another_published_meanwhile_stays(
    output: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim is checked before: only the condition of the write notices."""
    pytest.importorskip("boto3", reason="boto3 is not installed")
    tables, check = ("api_calls",), Claim.check

    def publish_meanwhile(self: Claim) -> None:
        check(self)
        output.write_text(MANIFEST, '{"version": 1, "run_id": "of another"}')

    for has_manifest in (False, True):
        if has_manifest:
            run(ONE, output, tables)
        with monkeypatch.context() as patch:
            patch.setattr(Claim, "check", publish_meanwhile)
            with pytest.raises(OutputError, match="another kwsniff has published there meanwhile"):
                run(OTHER, output, tables)
        assert json.loads(output.read_text(MANIFEST) or "")["run_id"] == "of another"
        output.remove([MANIFEST])
