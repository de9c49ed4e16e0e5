"""An hourly job, on a folder and on S3: a run for each piece of a day gives the rows of one run."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

from kwsniff.spark import output_lock, staging, stored_captures
from kwsniff.spark.checkpoint import FOLLOWED
from kwsniff.spark.hadoop import Settings
from kwsniff.spark.manifest import paths_of, read_published
from kwsniff.spark.pipeline import run_pipeline
from kwsniff.spark.storage import Place
from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.column import RUN
from kwsniff.tables.schema import TABLES, arrow_schema
from tests.spark.compare import Rows, followed, in_order, records, rotated
from tests.spark.followed import pieces
from tests.spark.hourly import Hours, run_with_deaths
from tests.spark.store import as_if_local, new_bucket, put

ROOT = Path(__file__).parents[2]
_DAY_S = 86_400


@pytest.fixture
def store(settings: Settings, monkeypatch: pytest.MonkeyPatch, in_process: None) -> Place:
    for module in (staging, stored_captures):
        monkeypatch.setattr(module, "settings_for", lambda *_: settings)
    for name, seconds in (("BEAT_S", 0.2), ("PATIENCE_S", 1.0), ("_LOOK_S", 0.1)):
        monkeypatch.setattr(output_lock, name, seconds)
    return new_bucket(settings)


def published(output: Place, names: tuple[str, ...] = tuple(TABLES)) -> Rows:
    """The rows of the files that the manifest names."""
    paths = sorted(paths_of(read_published(output)))
    found: Rows = {}
    for name in names:
        schema = arrow_schema({**TABLES, **AGGREGATES}[name])
        files = [pq.read_table(output.open_input(path)) for path in paths if path.startswith(f"{name}/")]
        rows = pa.concat_tables([schema.empty_table(), *files])
        assert len(set(rows[RUN].to_pylist())) <= 1
        found[name] = in_order(rows, ("sketch",))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transactions", "group_consumer"])
def test_24_pieces_on_a_folder_give_the_rows_of_a_day(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Killed in between, each run at a write that a seed chooses."""
    paths = pieces(name, 24, tmp_path)
    hours = Hours(tmp_path / "tables", tmp_path / "state")
    assert run_with_deaths(hours, paths, 24, monkeypatch) > 10
    assert published(Place(str(tmp_path / "tables"))) == followed(*paths)


@pytest.mark.parametrize(
    "chosen",
    [
        ("transactions", 3, False),
        pytest.param(("transactions", 4, True), marks=pytest.mark.slow),
        pytest.param(("group_consumer", 24, False), marks=pytest.mark.slow),
    ],
)
def test_pieces_on_s3_give_the_rows_of_a_day(
    store: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: tuple[str, int, bool]
) -> None:
    """Captures, tables and state are all in the bucket. `chosen`: a recording, how many pieces, and whether
    runs are killed."""
    name, number, deadly = chosen
    paths = pieces(name, number, tmp_path)
    uris = [
        put(store, f"hour={hour:02}/{path.name}", path.read_bytes()).rpartition("/")[0] + "/*"
        for hour, path in enumerate(paths)
    ]
    output = store.inside("some/tables")
    hours = Hours(output.root, f"{store.root}/some/state", tables=FOLLOWED)
    if deadly:
        assert run_with_deaths(hours, uris, 7, monkeypatch) > 2
    else:
        for uri in uris:
            hours.run(uri, finish=uri == uris[-1])
    folders = {f"/hour={hour:02}/": "/" for hour in range(number)}
    found = as_if_local(published(output), store, tmp_path / "whole")
    assert _renamed(found, folders) == followed(*paths)


def _renamed(rows: Rows, words: dict[str, str]) -> Rows:
    """With captures named without the folder of their hour."""

    def rename(value: Any) -> Any:
        if isinstance(value, str):
            for old, new in words.items():
                value = value.replace(old, new)
            return value
        return [*map(rename, value)] if isinstance(value, list) else value

    made = {
        table: [{name: rename(value) for name, value in row.items()} for row in found]
        for table, found in rows.items()
    }
    return {table: sorted(found, key=repr) for table, found in made.items()}


def over_midnight(data: bytes) -> bytes:
    """A little-endian pcap whose middle packet comes at midnight."""
    packets = records(data)
    middle = struct.unpack_from("<I", packets[len(packets) // 2])[0]
    later = -middle % _DAY_S
    return data[:24] + b"".join(
        struct.pack("<I", struct.unpack_from("<I", each)[0] + later) + each[4:] for each in packets
    )


@pytest.mark.slow
def test_aggregates_of_all_days_are_those_of_one_run(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    data = over_midnight((ROOT / "captures" / "group_consumer" / "capture.pcap").read_bytes())
    paths = rotated(data, 4, tmp_path / "in")
    tables = (*FOLLOWED, *AGGREGATES)
    hours = Hours(tmp_path / "tables", tmp_path / "state", tables=tables)
    for path in paths:
        hours.run(path, finish=path == paths[-1], spark=spark)
    run_pipeline(paths, tmp_path / "whole", spark=spark, tables=tables, num_buckets=2)
    names = tuple(AGGREGATES)
    found = published(Place(str(tmp_path / "tables")), names)
    assert found == published(Place(str(tmp_path / "whole")), names)
    assert found["latency_minutes"]
    days = {path.split("/")[1] for path in paths_of(read_published(Place(str(tmp_path / "tables"))))}
    assert len(days - {"date=__HIVE_DEFAULT_PARTITION__"}) == 2
