"""Bytes of streams outside decoded messages: rests of frames, TLS, the beginnings of other protocols.

    size | key, version, correlation id | ...      of a request that is not whole
    size | correlation id | ...                    of a response that no request explains
    content type, version, size | ...              TLS records, see tls.py
    first bytes of protocols.txt                   as far as a pattern names them
    PROXY header                                   with its addresses replaced
    a length that no message has                   negative or too large, as it was, in other bytes

All other bytes stay zero.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from kwsniff.anonymize import tls
from kwsniff.anonymize.capture import End, Streams
from kwsniff.anonymize.names import Names
from kwsniff.layout.catalog import Catalog
from kwsniff.layout.protocols import load_protocols
from kwsniff.limits import Limits

_PREFIX: Final = 4
_REQUEST_HEAD, _RESPONSE_HEAD = 12, 8
_FIRST_BYTES: Final = 64
_PROXY_LINE: Final = b"PROXY "
_PROXY_WORDS: Final = (b"PROXY", b"TCP4", b"TCP6", b"UNKNOWN")
_PROXY_BINARY: Final = b"\r\n\r\n\0\r\nQUIT\n"
_MOST_LINE: Final = 107
_MOST_FRAMES: Final = 100_000


class Unread:
    """Writes what no message explains, after all messages."""

    def __init__(self, streams: Streams, names: Names, catalog: Catalog, limits: Limits) -> None:
        self._streams = streams
        self._names = names
        self._catalog = catalog
        self._most_frame = limits.frame_bytes
        self._spans: defaultdict[int, array[int]] = defaultdict(lambda: array("q"))
        """Stream -> begins and ends of its messages, in turn."""
        self._asking: set[int] = set()
        """Streams of clients."""
        self._patterns = [
            beginning for protocol in load_protocols().values() for beginning in protocol.beginnings
        ]

    def add_written(self, stream: int, begin: int, end: int, *, asks: bool) -> None:
        """A message that was written."""
        self._spans[stream].extend((begin, end))
        if asks:
            self._asking.add(stream)

    def write(self, streams: Iterable[tuple[int, tuple[End, End]]]) -> None:
        """Writes the rest of all streams."""
        numbers = {ends: number for number, ends in streams}
        for (source, target), stream in numbers.items():
            other = numbers.get((target, source))
            spans = self._spans.get(stream, array("q"))
            start = self._streams.start(stream)
            if start is None:
                continue
            starts = set(spans[::2])
            is_kafka = bool(spans) or bool(other is not None and self._spans.get(other))
            if start not in starts:
                after = self._beginning(stream, start)
                if is_kafka and self._begins_frame(stream, after):
                    self._frames(stream, after, starts)
            for end in spans[1::2]:
                if end not in starts:
                    self._frames(stream, end, starts)

    def _beginning(self, stream: int, start: int) -> int:
        """The first bytes of a stream; returns where Kafka's may begin."""
        data = self._streams.read_bytes(stream, start, _FIRST_BYTES)
        if tls.is_record(data):
            self._records(stream, start)
            return start
        if data.startswith(_PROXY_LINE):
            line, found, _ = self._streams.read_bytes(stream, start, _MOST_LINE).partition(b"\r\n")
            if found:
                other = b" ".join(self._proxy_word(word) for word in line.split(b" "))
                self._streams.write_at(stream, start, line + found, other + found)
                return start + len(line) + 2
        if data.startswith(_PROXY_BINARY) and len(data) >= 16:
            return self._proxy_header(stream, start)
        new = bytearray(len(data))
        for each in self._patterns:
            size = len(each.data)
            if size <= len(data) and all(
                not mask or byte == given
                for byte, given, mask in zip(data, each.data, each.mask, strict=False)
            ):
                for at, mask in enumerate(each.mask):
                    new[at] = data[at] if mask else new[at]
        if any(new):
            self._streams.write_at(stream, start, data, bytes(new))
        return start

    def _proxy_word(self, word: bytes) -> bytes:
        """A word of version 1: ports and families stay."""
        return word if word in _PROXY_WORDS or word.isdigit() else self._names.name(word)

    def _proxy_header(self, stream: int, start: int) -> int:
        head = self._streams.read_bytes(stream, start, 16)
        size = int.from_bytes(head[14:16], "big")
        data = self._streams.read_bytes(stream, start, 16 + min(size, 36))
        new = bytearray(data[:16] + bytes(len(data) - 16))
        width = {1: 4, 2: 16}.get(head[13] >> 4, 0)
        if width and len(data) >= 16 + 2 * width + 4:
            for at in (16, 16 + width):
                new[at : at + width] = self._names.addresses.ip(data[at : at + width])
            new[16 + 2 * width : 20 + 2 * width] = data[16 + 2 * width : 20 + 2 * width]
        self._streams.write_at(stream, start, data, bytes(new))
        return start + 16 + size

    def _records(self, stream: int, at: int) -> None:
        records = tls.Records(self._names)
        while True:
            head = self._streams.read_bytes(stream, at, tls.HEADER)
            if not tls.is_record(head):
                return
            size = tls.HEADER + int.from_bytes(head[3:5], "big")
            data = self._streams.read_bytes(stream, at, size)
            self._streams.write_at(stream, at, data, records.replace(data))
            at += size

    def _frames(self, stream: int, at: int, starts: set[int]) -> None:
        """Heads of frames, from where a message ended to where the next one begins. A head counts when its
        length leads to another one, to a message or to the end: what looks like a length may be a name."""
        head, begin = b"", at
        for _ in range(_MOST_FRAMES):
            data = self._streams.read_bytes(stream, at, _REQUEST_HEAD)
            size = int.from_bytes(data[:_PREFIX], "big")
            is_end = at in starts or len(data) < _PREFIX
            if not is_end and not 4 <= size <= self._most_frame:
                if not head:
                    self._streams.write_at(stream, at, data[:_PREFIX], _impossible(size))
                return
            self._streams.write_at(stream, begin, head, head)
            if is_end:
                return
            head, begin = data[: self._head(data, asks=stream in self._asking)], at
            at += _PREFIX + size

    def _begins_frame(self, stream: int, at: int) -> bool:
        """Whether a length is here: behind a message it is one even where it is impossible."""
        size = int.from_bytes(self._streams.read_bytes(stream, at, _PREFIX), "big")
        return 4 <= size <= self._most_frame

    def _head(self, data: bytes, *, asks: bool) -> int:
        """How many bytes of a frame are numbers of its header."""
        if not asks:
            return min(_RESPONSE_HEAD, len(data))
        key = int.from_bytes(data[4:6], "big")
        version = int.from_bytes(data[6:8], "big")
        api = self._catalog.apis.get(key)
        is_known = api is not None and len(data) >= _REQUEST_HEAD and version <= api.max_version
        return _REQUEST_HEAD if is_known else _PREFIX


def _impossible(size: int) -> bytes:
    """A length that no message has: 0, the largest one, or a negative one."""
    if size >> 31:
        return b"\xff\xff\xff\xff"
    return b"\x7f\xff\xff\xff" if size > _PREFIX else bytes(_PREFIX)
