"""Several recorders into one directory: all files grow at a time, and each is followed to its end."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

from kwsniff.errors import UsageError
from kwsniff.spark.stream import Stream
from kwsniff.spark.stream_sources import Streams
from kwsniff.tables.schema import TABLES
from tests.spark.compare import followed, rotated, written
from tests.spark.followed import Growing, of_this_folder

CAPTURES = Path(__file__).parents[2] / "captures"
RECORDED = ("transactions", "group_consumer")


class Recorders(Growing):
    """As a directory with one recorder, with several: their files are written in turns."""

    def __init__(self, folder: Path, seed: int, sources: list[str]) -> None:
        super().__init__(folder, seed)
        self.sources = sources

    def stream(self) -> Any:
        return Streams(self.directory, self.output, spark=None, sources=self.sources)  # type: ignore[arg-type]

    def _kill_later(self, stream: Any) -> None:
        members = [*stream._members.values()]
        if members:
            super()._kill_later(self.dice.choice(members))

    def write_all(self, recorders: list[list[Path]]) -> None:
        """Each has its files, of which one grows after another."""
        left = [[(path, path.read_bytes()) for path in paths] for paths in recorders]
        while any(left):
            files = self.dice.choice([each for each in left if each])
            path, data = files[0]
            size = self.dice.choice((30, 3000, 20_000))
            place = self.directory / path.relative_to(self.whole)
            place.parent.mkdir(exist_ok=True)
            with place.open("ab") as file:
                file.write(data[:size])
            files[0] = (path, data[size:])
            if not data[size:]:
                files.pop(0)
            self.follow()

    @property
    def whole(self) -> Path:
        return self.directory.parent / "whole"


def recorded(folder: Path, inside: str) -> list[list[Path]]:
    """Two recorders' files: `inside` says how they are named."""
    recorders = []
    for number, name in enumerate(RECORDED):
        place = folder / "whole" / inside.format(number=number)
        place.parent.mkdir(parents=True, exist_ok=True)
        data = (CAPTURES / name / "capture.pcap").read_bytes()
        recorders.append(rotated(data, 2, place.parent, place.name))
    return recorders


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    "way",
    [("broker{number}.pcap", ["broker0*", "broker1*"]), ("broker{number}/x.pcap", ["*/"])],
    ids=["names", "folders"],
)
def test_what_grows_at_a_time_is_followed_to_its_end_whatever_dies(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, way: tuple[str, list[str]]
) -> None:
    inside, sources = way
    recorders = recorded(tmp_path, inside)
    growing = Recorders(tmp_path, seed, sources)
    growing.write_all(recorders)
    growing.finish(monkeypatch)
    found = of_this_folder(written(growing.output), growing.directory)
    each = [of_this_folder(followed(*paths), tmp_path / "whole") for paths in recorders]
    assert found == {name: sorted((row for rows in each for row in rows[name]), key=repr) for name in TABLES}


def test_a_capture_of_no_source_or_of_two_is_an_error(in_process: None, tmp_path: Path) -> None:
    recorded(tmp_path, "broker{number}.pcap")
    for sources, said in (
        (["broker0*"], "no --source matches it"),
        (["*0*", "br*"], "match it; each"),
    ):
        with pytest.raises(UsageError, match=said):
            Streams(tmp_path / "whole", tmp_path / "out", spark=None, sources=sources)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_a_folder_goes_on_with_the_sources_that_it_was_begun_with(in_process: None, tmp_path: Path) -> None:
    recorded(tmp_path, "broker{number}.pcap")
    begun: Any = {"spark": None}
    with closing(
        Streams(tmp_path / "whole", tmp_path / "out", sources=["broker0*", "broker1*"], **begun)
    ) as stream:
        stream.advance()
    with pytest.raises(UsageError, match="begun with other sources"):
        Streams(tmp_path / "whole", tmp_path / "out", sources=["broker0*", "*r1*"], **begun)
    with pytest.raises(UsageError, match="created with --source"):
        Stream(tmp_path / "whole", tmp_path / "out", **begun)
    Stream(tmp_path / "whole", tmp_path / "other", **begun).close()
