"""Several recorders that write into one directory: one sequence for each, into the same tables.

A source is a pattern of names inside the directory (`broker1*`), or, with a slash at its end (`*/`), every
folder that fits. Each has a position, a state and a `run_id` of its own: what two recorders write is not one
capture.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from kwsniff.errors import CaptureError, UsageError
from kwsniff.layout.catalog import Layouts
from kwsniff.sources.files import find_captures
from kwsniff.spark.compaction import NO_RULES, Rules
from kwsniff.spark.stream import BATCH_BYTES, STATE, Stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kwsniff.sources.files import Unread
    from kwsniff.sources.tls import KeyLog


_PATTERNS = "sources.json"


class Streams:
    """As `Stream`, of several sources; without any it is one sequence."""

    def __init__(
        self,
        directory: str | os.PathLike[str],
        output: str | os.PathLike[str],
        *,
        spark: "SparkSession",
        sources: Sequence[str] = (),
        ports: Sequence[int] = (),
        limits: Mapping[str, int] | None = None,
        num_buckets: int = 1,
        layouts: Layouts | None = None,
        tls_keylog: "KeyLog" = None,
        rules: Rules = NO_RULES,
    ) -> None:
        if sources and rules != NO_RULES:
            raise UsageError("--compact and --keep are for a stream of one recorder, without --source")
        self._directory, self._output = directory, output
        self._patterns = tuple(sources)
        self._options = (spark, ports, limits, num_buckets, layouts, tls_keylog, rules)
        self._members: dict[str, Stream] = {}
        found = sorted(self._find()) if sources else [""]
        try:
            for source in found:
                self._open(source)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Releases the lock for other processes."""
        for member in self._members.values():
            member.close()

    @property
    def batches(self) -> int:
        """How many there were."""
        return sum(member.record.batch for member in self._members.values())

    @property
    def rows(self) -> dict[str, int]:
        """Table -> rows."""
        total: dict[str, int] = {}
        for member in self._members.values():
            for name, rows in member.record.rows.items():
                total[name] = total.get(name, 0) + rows
        return total

    @property
    def unread(self) -> "list[Unread]":
        """What was there when the streams were finished, and cannot be read."""
        return [each for member in self._members.values() for each in member.unread]

    @property
    def num_captures(self) -> int:
        """How many were read."""
        return sum(len(member.record.captures) for member in self._members.values())

    @property
    def is_finished(self) -> bool:
        """Whether no more comes."""
        return bool(self._members) and all(member.record.finished for member in self._members.values())

    def advance(self, most_bytes: int = BATCH_BYTES) -> int:
        """A batch of each source that has something new; how many pieces of files they had."""
        if self._patterns:
            for source in sorted(self._find() - self._members.keys()):
                self._open(source)
        return sum(member.advance(most_bytes) for member in self._members.values())

    def finish(self) -> None:
        """No more is going to come: open calls and connections become rows, then the aggregates."""
        if not self._members:
            raise UsageError(f"{self._directory}: there is nothing yet that a --source matches")
        for member in self._members.values():
            member.finish_tables()
        next(iter(self._members.values())).write_aggregates()

    def _check_patterns(self, path: Path) -> None:
        """What was read under one pattern would be read again under another."""
        said = json.dumps(sorted(self._patterns))
        if not path.exists():
            path.write_text(said, "utf-8")
        elif path.read_text("utf-8") != said:
            raise UsageError(f"{self._output}: was begun with other sources: {path.read_text('utf-8')}")

    def _open(self, source: str) -> None:
        spark, ports, limits, num_buckets, layouts, tls_keylog, rules = self._options
        self._members[source] = Stream(
            Path(self._directory, source) if source.endswith("/") else self._directory,
            self._output,
            spark=spark,
            source=source,
            ports=ports,
            limits=limits,
            num_buckets=num_buckets,
            layouts=layouts,
            tls_keylog=tls_keylog,
            rules=rules,
        )
        if source:
            self._check_patterns(Path(self._output) / STATE / _PATTERNS)

    def _find(self) -> set[str]:
        """The sources that there are. Raises UsageError for a capture that none or several have."""
        folder = Path(self._directory)
        found = {pattern for pattern in self._patterns if not pattern.endswith("/")}
        for pattern in self._patterns:
            if pattern.endswith("/"):
                found |= {f"{path.name}/" for path in folder.glob(pattern) if path.is_dir()}
        with suppress(CaptureError):  # none is there yet
            for name in find_captures([str(folder)]).captures:
                inside = str(Path(name).relative_to(folder))
                whose = sorted(source for source in found if fnmatchcase(inside, source))
                if len(whose) != 1:
                    what = f"{whose[0]} and {whose[1]} match it" if whose else "no --source matches it"
                    raise UsageError(f"{name}: {what}; each capture has to be of one")
        return found


def follow(
    stream: Streams, *, interval: float, once: bool = False, told: Callable[[], None] = lambda: None
) -> None:
    """Batch after batch until interrupted; with `once` until nothing is new."""
    while True:
        if stream.advance():
            told()
        elif once:
            return
        else:
            time.sleep(interval)
