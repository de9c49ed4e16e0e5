"""A directory that grows piece by piece, and a stream that follows it and is killed now and then."""

from __future__ import annotations

import json
import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.spark.compare import rotated

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

from kwsniff.spark import stream as streaming
from kwsniff.spark.compaction import NO_RULES, Rules
from kwsniff.spark.stream import Stream

ROOT = Path(__file__).parents[2]


class Killed(Exception):
    """In the place of a signal: nothing after it happens."""


class Growing:
    """Files that are written piece by piece, and the output that follows them."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        num_buckets: int = 1,
        rules: Rules = NO_RULES,
        tls_keylog: Path | None = None,
    ) -> None:
        self.num_buckets = num_buckets
        self.tls_keylog = tls_keylog
        self.rules = rules
        self.directory = folder / "captures"
        self.directory.mkdir()
        self.output = folder / "tables"
        self.dice = random.Random(seed)

    def write(self, files: list[tuple[str, bytes]]) -> None:
        for name, data in files:
            at = 0
            while at < len(data):
                size = self.dice.choice((1, 30, 700, 3000, 20_000))
                with (self.directory / name).open("ab") as file:
                    file.write(data[at : at + size])
                at += size
                self.follow()

    def stream(self) -> Stream:
        return Stream(
            self.directory,
            self.output,
            spark=None,  # type: ignore[arg-type]
            num_buckets=self.num_buckets,
            rules=self.rules,
            tls_keylog=self.tls_keylog,
        )

    def follow(self) -> None:
        """A process of its own, which is killed now and then, at any point."""
        try:
            with closing(self.stream()) as stream:
                self._kill_later(stream)
                while stream.advance(self.dice.choice((500, 5000, 1 << 30))):
                    pass
        except Killed:
            pass

    def _kill_later(self, stream: Stream) -> None:
        def kill(*_: Any, **__: Any) -> None:
            raise Killed

        def save_then_kill(record: Any) -> None:
            Stream._save(stream, record)
            raise Killed

        when = self.dice.choice(("_on_driver", "_place", "_save", "saved", "_settle", *["never"] * 10))
        if when == "saved":
            stream._save = save_then_kill  # type: ignore[method-assign]
        elif when != "never":
            setattr(stream, when, kill)

    def finish(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(streaming, "AGGREGATES", {})
        with closing(self.stream()) as stream:
            while stream.advance():
                pass
            stream.finish()


def pieces(name: str, number: int, folder: Path) -> list[Path]:
    (folder / "whole").mkdir()
    return rotated((ROOT / "captures" / name / "capture.pcap").read_bytes(), number, folder / "whole")


def of_this_folder(rows: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Rows with the captures named as if they lay elsewhere."""
    text = json.dumps(rows, default=str).replace(str(folder), "")
    return {name: sorted(found, key=repr) for name, found in json.loads(text).items()}
