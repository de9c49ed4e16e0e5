"""kwsniff as a library: what notebooks and scripts meet."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.tables.schema import TABLES
from tests.house.tree import ROOT
from tests.traffic import messages
from tests.traffic.files import frames, pcap
from tests.traffic.records import batch
from tests.traffic.tcp import MILLISECOND, Endpoint, Scene

CAPTURE = ROOT / "captures" / "first_steps" / "capture.pcap"
LARGE_OFFSET = 2**53 + 1  # the first whole number that is no float


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tables")
    kwsniff.analyze(CAPTURE, output=out)
    return out


def test_one_port_and_one_table_need_no_list() -> None:
    found = kwsniff.analyze(CAPTURE, ports=9092, tables="api_calls")
    assert found.names == ("api_calls",)
    assert found.summary["ports"] == [9092]


def test_a_folder_of_tables_has_the_tables_of_its_analysis(folder: Path) -> None:
    stored = kwsniff.open(folder)
    again = kwsniff.analyze(CAPTURE)
    assert list(stored.names) == list(TABLES)
    for name in stored.names:
        mine, other = (each.drop_columns(["run_id"]) for each in (stored[name], again[name]))
        assert mine.equals(other), name
        assert stored.rows(name) == again.rows(name) == mine.num_rows


def test_a_folder_of_before_has_the_columns_of_today(tmp_path: Path, folder: Path) -> None:
    for name in ("api_calls", "connections"):
        rows = pq.read_table(folder / f"{name}.parquet")
        pq.write_table(rows.drop_columns(["run_id"]), tmp_path / f"{name}.parquet")
    stored = kwsniff.open(tmp_path)
    assert list(stored.names) == ["api_calls", "connections"]
    assert stored.api_calls["run_id"].null_count == stored.api_calls.num_rows > 0


def test_a_folder_without_tables_and_a_table_that_is_not_there_are_one_line(
    tmp_path: Path, folder: Path
) -> None:
    with pytest.raises(kwsniff.UsageError, match="holds no tables of kwsniff"):
        kwsniff.open(tmp_path)
    with pytest.raises(kwsniff.UsageError, match="no table 'latency'"):
        kwsniff.open(folder).table("latency")
    with pytest.raises(kwsniff.UsageError, match="did you mean api_calls"):
        kwsniff.analyze(CAPTURE, tables="api_cals")


def test_a_damaged_table_is_one_line(tmp_path: Path, folder: Path) -> None:
    for name in ("api_calls", "connections"):
        (tmp_path / f"{name}.parquet").write_bytes((folder / f"{name}.parquet").read_bytes()[:-100])
    with pytest.raises(kwsniff.CaptureError, match="api_calls cannot be read"):
        kwsniff.open(tmp_path).table("api_calls")


def test_calls_come_in_batches(folder: Path) -> None:
    batches = list(kwsniff.calls(CAPTURE))
    rows = pa.Table.from_batches(batches).drop_columns(["run_id"])
    assert rows.equals(kwsniff.open(folder).api_calls.drop_columns(["run_id"]))


def test_whole_numbers_stay_whole_beside_nulls(tmp_path: Path) -> None:
    scene = Scene()
    script = scene.connection(Endpoint("10.0.0.1", 4000), Endpoint("10.0.0.2", 9092))
    script.open()
    asked = messages.fetch(11, 1, {"a": {0: b""}}, high_watermark=LARGE_OFFSET)
    script.call(asked, at=MILLISECOND, answer_at=2 * MILLISECOND)
    sent = messages.produce(7, 2, {"b": {0: batch([b"v"])}})
    script.call(sent, at=3 * MILLISECOND, answer_at=4 * MILLISECOND)
    capture = tmp_path / "capture.pcap"
    capture.write_bytes(pcap(frames(scene.packets())))
    found = kwsniff.analyze(capture, output=tmp_path / "out")
    for frame in (
        found.partitions.to_pandas(),
        kwsniff.open(tmp_path / "out").partitions.to_pandas(),
        kwsniff.analyze(capture).partitions.to_pandas(),
        pd.read_parquet(tmp_path / "out" / "partitions.parquet"),
    ):
        offsets = frame.set_index("topic")["high_watermark"]
        assert offsets.dtype == "Int64"
        assert int(offsets["a"]) == LARGE_OFFSET
        assert offsets["b"] is pd.NA


def test_a_notebook_shows_tables_and_never_markup_of_others(tmp_path: Path) -> None:
    capture = tmp_path / "<script>x.pcap"
    capture.write_bytes(CAPTURE.read_bytes())
    found = kwsniff.analyze(capture, tables=("api_calls", "error_codes"))
    assert repr(found).endswith("<script>x.pcap: api_calls 34, error_codes 6>")
    page = found._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "34" in page


@pytest.mark.slow
def test_a_users_script_holds_under_strict_mypy(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "import kwsniff\n"
        "\n"
        "def slowest(path: Path) -> int:\n"
        "    found = kwsniff.analyze(path, ports=9092, tables=['latencies', 'api_calls'])\n"
        "    rows: int = found.rows('latencies')\n"
        "    for batch in kwsniff.calls(path):\n"
        "        rows += batch.num_rows\n"
        "    try:\n"
        "        rows += kwsniff.open('out').latencies.num_rows\n"
        "    except kwsniff.KwsniffError as error:\n"
        "        print(str(error), kwsniff.__version__)\n"
        "    return rows\n"
    )
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file="]
    done = subprocess.run(
        [*command, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "MYPYPATH": str(ROOT)},
    )  # fmt: skip
    assert "checked 1 source file" in done.stdout
    # Of modules that are installed mypy says nothing; here kwsniff is none.
    assert "script.py" not in done.stdout, done.stdout


def test_the_version_is_that_of_the_package() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "kwsniff", "--version"], capture_output=True, text=True, check=True
    )
    assert said.stdout.partition(" (commit ")[0].rstrip() == f"kwsniff {kwsniff.__version__}"


def test_a_verb_that_is_none_is_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kwsniff", "analze", "x.pcap"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "kwsniff: error: unknown verb 'analze'; did you mean analyze?\n"


@pytest.mark.parametrize("name", ["latencies", "findings", "captures"])
def test_a_folder_of_one_table_opens_whichever_it_is(name: str, tmp_path: Path) -> None:
    kwsniff.analyze(CAPTURE, output=tmp_path, tables=name)
    assert tuple(kwsniff.open(tmp_path).names) == (name,)


def test_a_folder_of_other_things_is_none(folder: Path) -> None:
    with pytest.raises(kwsniff.UsageError, match="holds no tables of kwsniff"):
        kwsniff.open(folder.parent)


@pytest.mark.parametrize(
    ("ports", "says"),
    [
        ("9092", "'9092' is not a port"),
        (["9092"], "'9092' is not a port"),
        (0, "0 is outside"),
        ([9092.5], "9092.5"),
    ],
)
def test_ports_that_are_none_are_refused_in_words(ports: object, says: str) -> None:
    with pytest.raises(kwsniff.UsageError, match=says):
        kwsniff.analyze(CAPTURE, ports=ports)  # type: ignore[arg-type]
    with pytest.raises(kwsniff.UsageError, match=says):
        kwsniff.sniff("no such interface", ports=ports)  # type: ignore[arg-type]


def test_sniff_takes_one_port_and_one_table_as_analyze_does() -> None:
    with pytest.raises(kwsniff.UsageError, match="unknown table 'api_cals'; did you mean api_calls"):
        kwsniff.sniff("no such interface", tables="api_cals")
    with pytest.raises(kwsniff.CaptureError, match="no such interface"):
        kwsniff.sniff("no such interface", ports=9092, tables="api_calls")


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("harm is not null", "harm is known once all calls have passed"),
        ("request_time > -5s", "the last packet is not known in advance"),
    ],
)
def test_sniff_refuses_a_filter_before_it_opens_the_interface(where: str, says: str) -> None:
    with pytest.raises(kwsniff.UsageError, match=says):
        kwsniff.sniff("no such interface", where=where)


def test_ports_may_be_numbers_of_numpy() -> None:
    names = pd.Series([9092, 9093]).to_numpy()
    assert kwsniff.analyze(CAPTURE, ports=names).summary["ports"] == [9092, 9093]  # type: ignore[arg-type]
