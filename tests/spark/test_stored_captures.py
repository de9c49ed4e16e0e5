"""Captures in a store, an S3 on loopback: the rows of analyze, every byte asked for once, in large pieces."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

from kwsniff.errors import CaptureError, UsageError
from kwsniff.spark import stored_captures
from kwsniff.spark.hadoop import Settings
from kwsniff.spark.pipeline import run_pipeline
from kwsniff.spark.run_result import Result
from kwsniff.spark.storage import Place
from kwsniff.spark.stored_file import StoredFile
from kwsniff.tables.schema import TABLES
from tests.spark.compare import analyzed, rotated, written
from tests.spark.store import as_if_local, new_bucket, put

pytestmark = pytest.mark.sample_tests(3)

CAPTURES = Path(__file__).parents[2] / "captures"
NAMES = ("capture", "subject", "call_ids", "text", "command", "advice")


@pytest.fixture
def store(settings: Settings, monkeypatch: pytest.MonkeyPatch, in_process: None) -> Place:
    monkeypatch.setattr(stored_captures, "settings_for", lambda *_: settings)
    return new_bucket(settings)


def run(paths: Any, output: Path, **options: Any) -> Result:
    options.setdefault("num_buckets", 3)
    return run_pipeline(paths, output, spark=object(), tables=tuple(TABLES), **options)  # type: ignore[arg-type]


@pytest.fixture
def parts(store: Place, tmp_path: Path) -> list[Path]:
    """Rotated files, one of them compressed, in the store and in a folder."""
    (tmp_path / "in").mkdir()
    paths = rotated((CAPTURES / "transactions" / "capture.pcap").read_bytes(), 4, tmp_path / "in")
    packed = paths[1].with_name("rotated.pcap1.gz")
    packed.write_bytes(gzip.compress(paths[1].read_bytes()))
    paths[1].unlink()
    paths[1] = packed
    for path in paths:
        put(store, f"in/{path.name}", path.read_bytes())
    return paths


@pytest.mark.sample(1)
@pytest.mark.parametrize("given", ["in", "in/rotated.pcap*", "*/rotated*", ""])
def test_captures_of_a_store_give_the_tables_of_analyze(
    store: Place, parts: list[Path], tmp_path: Path, given: str
) -> None:
    uris = (
        [f"{store.root}/{given}"] if given else [f"{store.root}/in/{path.name}" for path in reversed(parts)]
    )
    made = run(uris, tmp_path / "out", split_bytes=3000)
    found, wanted = as_if_local(written(tmp_path / "out"), store, tmp_path), analyzed(*parts)
    assert found == wanted
    size = sum(path.stat().st_size for path in parts)
    assert made.facts["capture_bytes"] == size
    assert made.facts["splits"] > len(parts)


@pytest.mark.slow
def test_a_byte_is_asked_for_once_in_large_pieces(
    store: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted where the store is asked, over and above the beginning that tells what a file is."""
    asked: list[int] = []
    readinto = StoredFile.readinto

    def counted(self: Any, space: Any, /) -> int:
        num = readinto(self, space)
        asked.append(num)
        return num

    data = (CAPTURES / "large_messages" / "capture.pcap").read_bytes()
    records = data[24:]
    uri = put(store, "large.pcap", data[:24] + records * (30_000_000 // len(records)))
    monkeypatch.setattr(StoredFile, "readinto", counted)
    made = run(uri, tmp_path / "out")
    size = made.facts["capture_bytes"]
    assert size > 25_000_000
    assert size <= sum(asked) <= 1.02 * size
    assert made.facts["bytes_read"] == size - 24
    assert sorted(asked)[-(size // (8 << 20)) :] == [8 << 20] * (size // (8 << 20))
    assert len(asked) < 12


def test_here_and_there_are_one_sequence(store: Place, parts: list[Path], tmp_path: Path) -> None:
    uris = [f"{store.root}/in/{path.name}" for path in parts[2:]]
    run([*uris, *parts[:2]], tmp_path / "out")
    assert as_if_local(written(tmp_path / "out"), store, tmp_path) == analyzed(*parts)


def test_what_cannot_be_read_is_told(store: Place, parts: list[Path], tmp_path: Path) -> None:
    for name, data in (("empty.pcap", b""), ("other", b"GIF89a"), ("deeper/x.pcap", parts[0].read_bytes())):
        put(store, f"in/{name}", data)
        path = tmp_path / "in" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    made = run(f"{store.root}/in", tmp_path / "out")
    assert {Path(each.name).name: each.why for each in made.unread} == {
        Path(row["capture"]).name: row["notes"][0]
        for row in analyzed(tmp_path / "in")["captures"]
        if row["format"] is None
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("nothing.pcap", "no such file; check the URI"),
        ("in/*.cap", "no file matches this pattern"),
    ],
)
def test_what_is_not_there_is_an_error_before_anything_is_written(
    store: Place, parts: list[Path], tmp_path: Path, given: str, words: str
) -> None:
    assert parts
    with pytest.raises(CaptureError, match=words):
        run(f"{store.root}/{given}", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_store_that_is_not_known_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="knows no ftp://"):
        run("ftp://host/x.pcap", tmp_path / "out")


@pytest.mark.slow
def test_times_count_from_the_first_packet_there(store: Place, parts: list[Path], tmp_path: Path) -> None:
    run(f"{store.root}/in", tmp_path / "out", since="+1s")
    found = as_if_local(written(tmp_path / "out"), store, tmp_path)
    assert found == analyzed(*parts, since="+1s")
    with pytest.raises(UsageError, match="count from the first"):
        run(f"{store.root}/in", tmp_path / "out", since="-1s")


def test_credentials_are_in_no_file(
    store: Place, parts: list[Path], tmp_path: Path, settings: Settings
) -> None:
    """Nor in what is sent to tasks as items, nor in the scratch files."""
    from kwsniff.spark import scan

    assert parts
    seen: list[bytes] = []
    task = scan.scan_split

    def looking(number: int, **options: Any) -> Any:
        done = task(number, **options)
        seen.extend(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        return done

    secret = dict(settings)["fs.s3a.secret.key"].encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "scan_split", looking)
        run(f"{store.root}/in", tmp_path / "out")
    seen.extend(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert len(seen) > 10
    assert not any(secret in data for data in seen)
