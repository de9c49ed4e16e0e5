"""Calls that a folder of tables knows, with their messages: only packets of their time are read."""

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from kwsniff.analysis.call_lookup import Place, Span, known_calls
from kwsniff.filter.expression import Filter, among
from kwsniff.filter.filtered_calls import FilteredCalls
from kwsniff.limits import Limits
from kwsniff.sources.order import find_in_order
from kwsniff.sources.times import TimeRange
from kwsniff.sources.tls import KeyLog
from kwsniff.view.reader import CallReader
from kwsniff.view.selection import Call

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class StoredCalls:
    """As CallReader, for captures whose tables are at hand.

    Packets that name topics are read, then those of the calls; and all of them, once more, for calls that the
    packets of their own time do not show as the tables have them.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        paths: Sequence[str],
        filter_: Filter,
        *,
        ports: Sequence[int] = (),
        tls_keylog: KeyLog = None,
        limits: Limits | None = None,
    ) -> None:
        """Raises UsageError where the folder holds no tables of these captures."""
        found = find_in_order(paths)
        self.captures = found.captures
        self.unread = found.unread
        self.notes: list[str] = []
        self.topics: dict[str, str] = {}
        """Topic id -> name, as far as messages have named it."""
        self._known = known_calls(folder, self.captures, filter_, follows=bool(tls_keylog))
        self._ports, self._keylog, self._limits = ports, tls_keylog, limits
        self._filter = filter_

    def calls(self) -> Iterator[Call]:
        """The chosen ones, in the order in which they were over."""
        if self._known.calls is None:
            reader = self._reader(self._filter, None)
            yield from reader.calls()
            self.notes = reader.notes
            return
        left = {each.call_id for each in self._known.calls}
        if self._known.span is not None:
            for span in self._known.naming:
                self._read_names(span)
            yield from self._within(self._known.span, left)
        if left:
            reader = self._reader(among("call_id", left), None)
            for call in reader.calls():
                yield call
                if call.id is not None:
                    left.discard(call.id)
                if not left:
                    return
            self.notes = reader.notes

    def _within(self, span: Span, left: set[int]) -> Iterator[Call]:
        """Those whose packets show by themselves what the tables have; they get the tables' numbers."""
        wanted = among("correlation_id", {place.correlation_id for place in self._known.places})
        for call in self._reader(wanted, span).calls():
            request = call.request
            stored = request and self._known.places.get(
                Place(
                    request["capture"],
                    request["first_frame"],
                    request["client_port"],
                    request["correlation_id"],
                )
            )
            if stored and stored.call_id in left and call.status == stored.status:
                left.discard(stored.call_id)
                call.id = stored.call_id
                for packet in call.packets:
                    packet |= {"call_id": stored.call_id, "connection_id": stored.connection_id}
                yield call
                if not left:
                    return

    def _read_names(self, span: Span) -> None:
        """What messages of a time tell of topics."""
        for _ in self._reader(None, span).calls():
            pass

    def _reader(self, filter_: Filter | None, span: Span | None) -> CallReader:
        ports = {*self._ports, *(self._known.ports if span else ())}
        times = TimeRange(_moment(span.since), _moment(span.until)) if span else None
        reader = CallReader(
            self.captures,
            ports=sorted(ports),
            tls_keylog=self._keylog,
            limits=self._limits,
            times=times,
            selection=FilteredCalls(filter_) if filter_ else None,
        )
        reader.topics = self.topics
        return reader


def _moment(nanoseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=nanoseconds // 1_000)
