"""Analyzers that follow the connections of captures side by side, each those of its own bucket.

Every one is fed the same bytes by a thread of its own, without the interpreter's lock: walking over packets
of others costs little. What they gave up to a place in the captures is a turn; its rows are passed on
together.

    captures -> block, block, block ...  -> analyzer 0 --\\
                                         -> analyzer 1 ---> turn -> rows of one order
                                         -> analyzer 2 --/
"""

from array import array
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final, NamedTuple

from kwsniff.analysis.parallelism import OneAnalyzerNeeded
from kwsniff.core.analyzer import Analyzer
from kwsniff.core.declared import COLUMNS
from kwsniff.sources.tls import Secrets
from kwsniff.tables.build import ColumnData
from kwsniff.tables.merged_rows import Names
from kwsniff.tables.write import ROW_GROUP_ROWS

BLOCK_BYTES: Final = 2 << 20
"""Bytes that all analyzers are given at a time."""
_BLOCKS: Final = 3
_MOST: Final = 0.75
"""Of a bound that all connections share: what the analyzers may keep together."""

Taken = dict[str, tuple[Sequence[ColumnData], bytes]]
"""Table -> what `drain_in_order` gave."""


class Given(NamedTuple):
    """What an analyzer gave for a turn."""

    parts: list[Taken]
    shares: tuple[float, ...]
    topics: Mapping[str, tuple[str, int]]
    """As Analyzer.topics, where there are new ones."""


class WatchedSecrets(Secrets):
    """Secrets of an analyzer among others: of none, until a capture brings some."""

    came = False

    def add_keylog(self, text: bytes) -> None:
        """A key log that a capture contains."""
        self.came = True
        super().add_keylog(text)


class SideBySide:
    """The interface of one analyzer, for the reader of captures.

    `take_turn` gets what the analyzers gave since it was last called, those of each one behind the other,
    what was learned of topics, and whether it is the last; the thread that feeds calls it. Everything here
    may raise what an analyzer or `take_turn` raised, and OneAnalyzerNeeded.
    """

    def __init__(
        self,
        analyzers: Sequence[Analyzer],
        tables: Sequence[str],
        take_turn: Callable[[list[Taken], Names, bool], None],
        enough: int,
    ) -> None:
        """`enough`: bytes of rows that wait at most."""
        self._analyzers = analyzers
        self._tables = tables
        self._take_turn = take_turn
        self._enough = enough
        self._threads = [ThreadPoolExecutor(1, f"kwsniff-analyzer-{n}") for n in range(len(analyzers))]
        self._blocks = deque((bytearray(BLOCK_BYTES), list[Future[None]]()) for _ in range(_BLOCKS))
        self._filled = 0
        self._ends = array("q")
        self._secrets: list[WatchedSecrets] = []
        self._full: list[list[Taken]] = [[] for _ in analyzers]
        self._num_topics = [0] * len(analyzers)
        self.topics: dict[str, tuple[str, int]] = {}
        """Topic ids, their names and the packets that named them, as far as turns have come."""
        for number, analyzer in enumerate(analyzers):
            analyzer.when_full = partial(self._take_full, number)

    def __enter__(self) -> "SideBySide":
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.shutdown(wait=False, cancel_futures=True)
        for thread in self._threads:
            thread.shutdown(wait=True)
        for analyzer in self._analyzers:
            analyzer.when_full = None  # it leads back to the analyzer

    def open_tls(self, _: Secrets) -> None:
        """Looks for secrets in captures: one analyzer alone opens what they are for."""
        self._secrets = [WatchedSecrets() for _ in self._analyzers]
        for analyzer, secrets in zip(self._analyzers, self._secrets, strict=True):
            analyzer.open_tls(secrets)

    def bound(self, since: int | None, until: int | None) -> None:
        """As Analyzer.bound."""
        for analyzer in self._analyzers:
            analyzer.bound(since, until)

    def open_capture(self, name: str, *, place: int = 0) -> None:
        """As Analyzer.open_capture."""
        self._all(lambda analyzer: analyzer.open_capture(name, place=place))

    @property
    def samples(self) -> tuple[int, bytes]:
        """As Analyzer.samples: every analyzer sees all packets."""
        return self._analyzers[0].samples

    def feed(self, data: memoryview) -> None:
        """Takes the next bytes, which are its own afterwards."""
        if len(data) > BLOCK_BYTES - self._filled:
            self._hand_out()
        for begin in range(0, len(data), BLOCK_BYTES):
            piece = data[begin : begin + BLOCK_BYTES]
            self._blocks[0][0][self._filled : self._filled + len(piece)] = piece
            self._filled += len(piece)
            if begin + BLOCK_BYTES < len(data):
                self._hand_out()
        self._ends.append(self._filled)

    @property
    def tls_opened(self) -> int:
        """As Analyzer.tls_opened."""
        return 0

    @property
    def stopped(self) -> bool:
        """Whether nothing more of this capture can be read, as far as is known."""
        return self._analyzers[0].stopped

    def close_capture(self) -> dict[str, Any]:
        """As Analyzer.close_capture."""
        self._hand_out()
        for _, feeding in self._blocks:  # else errors in the last of them would be lost
            _settle(feeding)
        told: dict[str, Any] = self._all(lambda analyzer: analyzer.close_capture())[0]
        return told

    def finish(self) -> None:
        """As Analyzer.finish; all rows are taken then."""
        self._all(lambda analyzer: analyzer.finish())
        self._end_turn(last=True)

    def accounting(self, capture: int) -> dict[str, int]:
        """As Analyzer.accounting."""
        told = [analyzer.accounting(capture) for analyzer in self._analyzers]
        return {name: sum(each[name] for each in told) for name in told[0]}

    def _all(self, work: Callable[[Analyzer], Any]) -> list[Any]:
        """Has something done by every analyzer, and waits for it."""
        doing = [
            thread.submit(work, analyzer)
            for thread, analyzer in zip(self._threads, self._analyzers, strict=True)
        ]
        return [each.result() for each in doing]

    def _hand_out(self) -> None:
        """Gives the block that was filled to all analyzers."""
        block, feeding = self._blocks[0]
        if self._filled:
            data, ends = memoryview(block)[: self._filled], self._ends.tobytes()
            feeding += [
                thread.submit(analyzer.feed, data, ends)
                for thread, analyzer in zip(self._threads, self._analyzers, strict=True)
            ]
        self._blocks.rotate(-1)
        self._filled = 0
        self._ends = array("q")
        _settle(self._blocks[0][1])
        self._check()
        if self._is_much():
            self._end_turn()

    def _is_much(self) -> bool:
        """Whether rows are to be taken."""
        if any(self._full) or sum(each.filled for each in self._analyzers) >= self._enough:
            return True
        return any(sum(each.rows(table) for each in self._analyzers) >= ROW_GROUP_ROWS for table in COLUMNS)

    def _take_full(self, number: int) -> None:
        """An analyzer has no more room for rows."""
        self._full[number].append(self._take_part(number))

    def _take_part(self, number: int) -> Taken:
        return {table: self._analyzers[number].drain_in_order(table) for table in self._tables}

    def _take(self, number: int) -> Given:
        analyzer = self._analyzers[number]
        before, self._full[number] = self._full[number], []
        new = analyzer.num_topics != self._num_topics[number]
        self._num_topics[number] = analyzer.num_topics
        topics = analyzer.topics() if new else {}
        return Given([*before, self._take_part(number)], analyzer.drain_shares(), topics)

    def _end_turn(self, *, last: bool = False) -> None:
        """The analyzers are at most one turn ahead of the thread that takes their rows."""
        taking = [thread.submit(self._take, number) for number, thread in enumerate(self._threads)]
        given = [each.result() for each in taking]
        self._check()
        if any(sum(shares) > _MOST for shares in zip(*(each.shares for each in given), strict=True)):
            raise OneAnalyzerNeeded
        for each in given:
            self._learn(each.topics)
        self._take_turn([part for each in given for part in each.parts], self.topics, last)

    def _learn(self, topics: Mapping[str, tuple[str, int]]) -> None:
        for topic_id, (name, packet) in topics.items():
            known, first = self.topics.get(topic_id, (name, packet))
            if known != name:
                raise OneAnalyzerNeeded
            self.topics[topic_id] = name, min(first, packet)

    def _check(self) -> None:
        if any(each.alone for each in self._analyzers) or any(each.came for each in self._secrets):
            raise OneAnalyzerNeeded


def _settle(feeding: list[Future[None]]) -> None:
    """Waits for the blocks in progress."""
    for each in feeding:
        each.result()
    feeding.clear()
