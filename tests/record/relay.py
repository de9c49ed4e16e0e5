"""A relay in front of a mock broker that answers ApiVersions as real brokers do.

librdkafka's mock knows ApiVersions 0 to 2 and refuses newer ones with a body that is neither version 0 nor
the version asked for. librdkafka reads no further than the error code; other clients give up. Real brokers
either know the version or answer error 35 with a body of version 0 (KIP-511). The relay does the one or the
other. It also keeps back the answers that the mock gives to Produce requests with acks 0, as no real broker
answers these, and passes everything else on as it is.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

from tests.traffic.wire import Encoder

PRODUCE, API_VERSIONS, FLEXIBLE_SINCE = 0, 18, 3
UNSUPPORTED_VERSION = 35


def _read(source: socket.socket, wanted: int) -> bytes:
    data = b""
    while len(data) < wanted:
        part = source.recv(wanted - len(data))
        if not part:
            raise ConnectionError("the other side closed")
        data += part
    return data


def _read_frame(source: socket.socket) -> bytes:
    return _read(source, struct.unpack(">i", _read(source, 4))[0])


def _sized(message: bytes) -> bytes:
    return struct.pack(">i", len(message)) + message


def refusal(correlation_id: int) -> bytes:
    """Error 35 and the versions of ApiVersions itself, in the layout of version 0."""
    body = (
        Encoder(False).i32(correlation_id).i16(UNSUPPORTED_VERSION).count(1).i16(API_VERSIONS).i16(0).i16(2)
    )
    return bytes(body.data)


def modernised(answer: bytes) -> bytes:
    """A version 0 answer of the mock as version 3 or 4."""
    out = Encoder(True).i32(struct.unpack_from(">i", answer)[0]).i16(struct.unpack_from(">h", answer, 4)[0])
    rows = list(struct.iter_unpack(">hhh", answer[10:]))
    out.array(
        rows, lambda row: out.i16(row[0]).i16(row[1]).i16(4 if row[0] == API_VERSIONS else row[2]).tags()
    )
    return bytes(out.i32(0).tags().data)


def wants_no_answer(frame: bytes) -> bool:
    """Whether this is a Produce request (3 to 8) with acks 0."""
    key, version, _, name = struct.unpack_from(">hhih", frame)
    if key != PRODUCE or not 3 <= version <= 8:
        return False
    at = 10 + max(name, 0)
    at += 2 + max(struct.unpack_from(">h", frame, at)[0], 0)
    return bool(struct.unpack_from(">h", frame, at)[0] == 0)


class Relay:
    """Listens on a port of `host` and forwards whole frames to `port` on loopback."""

    def __init__(self, port: int, *, modern: bool, host: str = "127.0.0.1") -> None:
        self._target = port
        self._modern = modern
        self.refused = 0  # requests the broker never saw
        self._listener = socket.create_server((host, 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets = [self._listener]
        self._threads: list[threading.Thread] = []
        self._run(self._accept)

    def _run(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def close(self) -> None:
        """Ends every connection and waits for the threads."""
        for end in self._sockets:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(timeout=5)
        for end in self._sockets:
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            broker = socket.create_connection(("127.0.0.1", self._target))
            self._sockets += [client, broker]
            for end in (client, broker):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            asked: set[int] = set()  # correlation ids whose answers are to be changed
            unasked: set[int] = set()  # and those whose answers are to be kept back
            self._run(self._requests, client, broker, asked, unasked)
            self._run(self._responses, client, broker, asked, unasked)

    def _requests(
        self, client: socket.socket, broker: socket.socket, asked: set[int], unasked: set[int]
    ) -> None:
        try:
            while True:
                frame = _read_frame(client)
                key, version, correlation_id = struct.unpack_from(">hhi", frame)
                if wants_no_answer(frame):
                    unasked.add(correlation_id)
                if key == API_VERSIONS and version >= FLEXIBLE_SINCE:
                    if not self._modern:
                        self.refused += 1
                        client.sendall(_sized(refusal(correlation_id)))
                        continue
                    asked.add(correlation_id)
                    name = struct.unpack_from(">h", frame, 8)[0]
                    header = frame[: 10 + max(name, 0)]
                    frame = header[:2] + struct.pack(">h", 0) + header[4:]
                broker.sendall(_sized(frame))
        except OSError:
            _shut(broker)

    def _responses(
        self, client: socket.socket, broker: socket.socket, asked: set[int], unasked: set[int]
    ) -> None:
        try:
            while True:
                frame = _read_frame(broker)
                correlation_id = struct.unpack_from(">i", frame)[0]
                if correlation_id in unasked:
                    unasked.remove(correlation_id)
                    continue
                if correlation_id in asked:
                    asked.remove(correlation_id)
                    frame = modernised(frame)
                client.sendall(_sized(frame))
        except OSError:
            _shut(client)


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_WR)
