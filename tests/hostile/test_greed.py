"""Captures that ask for much memory in few bytes stay below the one bound; greed.py has more of them."""

import sys
import tracemalloc
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kwsniff.findings.views import FOUND
from kwsniff.tables.schema import TABLES
from kwsniff.texts import clean, json_pieces, json_text
from tests.hostile import greed
from tests.hostile.flood import HEADER
from tests.perf.measure import process
from tests.traffic.messages import produce
from tests.traffic.records import batch

_MEMORY = 400_000_000
_SIZES = {
    "client_ids": 40_000_000,
    "sessions": 10_000_000,
    "frames": 40_000_000,
    "topics": 40_000_000,
    "errors": 60_000_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("generator", list(_SIZES))
def test_memory_stays_below_its_bound(tmp_path: Path, generator: str) -> None:
    """Today's peaks are 230 to 320 MB; before there was a bound, the first of them took 1 GB."""
    capture = tmp_path / "capture.pcap"
    greed.write(capture, generator, _SIZES[generator])
    found = greed.analyze(capture, tmp_path)
    assert found.problem is None
    assert found.peak_bytes < _MEMORY


@pytest.mark.slow
@pytest.mark.parametrize("generator", ["long_topics", "long_groups"])
@pytest.mark.parametrize(
    "verb", [("analyze", "-o", "tables"), ("why",), ("upgrade", "4.3")], ids=lambda verb: verb[0]
)
def test_names_of_32_kb_stay_within_the_bound_whatever_is_asked(
    tmp_path: Path, generator: str, verb: tuple[str, ...]
) -> None:
    """8,000 topics or group ids; before, each was kept or read with all others: 330 to 500 MB."""
    capture = tmp_path / "capture.pcap"
    greed.write(capture, generator, 250_000_000)
    program = Path(sys.executable).with_name("kwsniff")
    words = [str(tmp_path / word) if word == "tables" else word for word in verb]
    found = process((str(program), *words, str(capture)), tmp_path / "shown", done=(0, 1))
    assert found.problem is None
    assert found.peak_bytes < _MEMORY


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize(("findings", "most"), [(False, 200_000_000), (True, 300_000_000)])
def test_the_least_memory_that_may_be_asked_for_is_kept(tmp_path: Path, findings: bool, most: int) -> None:
    """As docs/limits.md says: texts of 32 kB at 200 MB; to find something in them takes more."""
    capture = tmp_path / "capture.pcap"
    greed.write(capture, "errors", 30_000_000)
    tables = [] if findings else [part for name in TABLES if name not in FOUND for part in ("--table", name)]
    found = greed.analyze(capture, tmp_path, "--limit", "memory=200MB", *tables)
    assert found.problem is None
    assert found.peak_bytes < most
    assert (tmp_path / "tables" / "findings.parquet").exists() == findings


def test_every_row_of_a_capture_that_is_taken_in_parts_is_there(tmp_path: Path) -> None:
    """Tables are taken between two calls, and no text is lost: 20 MB of names, taken several times."""
    capture = tmp_path / "capture.pcap"
    greed.write(capture, "client_ids", 20_000_000)
    found = greed.analyze(capture, tmp_path)
    assert found.problem is None
    tables = {
        name: pq.ParquetFile(tmp_path / "tables" / f"{name}.parquet").read()
        for name in ("api_calls", "latencies", "anomalies")
    }
    names = tables["api_calls"]["client_id"].to_pylist()
    assert len(names) == tables["latencies"].num_rows > 600
    assert names == [greed.name(number) for number in range(len(names))]
    assert tables["latencies"]["client_id"].to_pylist() == names
    assert tables["anomalies"].num_rows == 0


def test_a_bomb_is_shown_as_json_within_the_bound(tmp_path: Path) -> None:
    """50 kB that decompress to 80 MB, each byte of which is asked for; it took 1.3 GB."""
    line = greed.Line()
    call = produce(9, 1, {"orders": {0: batch([b"x" * 1_000_000] * 80, gzipped=True)}})
    capture = tmp_path / "bomb.pcap"
    capture.write_bytes(HEADER + line.open() + line.talk(call))
    assert capture.stat().st_size < 200_000
    program = Path(sys.executable).with_name("kwsniff")
    found = process((str(program), "show", str(capture), "--payload", "--json"), tmp_path / "shown")
    assert found.problem is None
    assert (tmp_path / "shown").stat().st_size > 80_000_000 * 4 // 3
    assert found.peak_bytes < _MEMORY


def test_json_in_pieces_is_the_json() -> None:
    value = {"a": [1, None, {"b": "\u2028\x9bé"}, [], {}], "c": float("nan"), "d": (), "é\x7f": [[True]]}
    assert "".join(json_pieces(value)) == json_text(value)


@pytest.mark.sample(1)
@pytest.mark.parametrize("text", ["x" * 2_000_000, "é\x9b" * 1_000_000])
def test_a_long_text_is_spelled_out_in_parts(text: str) -> None:
    """What joins two million characters one by one takes 16 MB for their places alone."""
    tracemalloc.start()
    try:
        assert "\x9b" not in clean(text)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 15_000_000
