"""TLS records without names: what an observer may know of a handshake is kept, everything else is zeros.

Kept are the headers of records and of handshake messages, alerts, versions, cipher suites, randoms, and the
lengths of certificates; the server name is replaced. Encrypted bytes are zeros.

Source: RFC 8446 4 and 5; RFC 5246 7; RFC 6066 3.
"""

import struct
from typing import Final

from kwsniff.anonymize.names import Names

HEADER: Final = 5
MOST_RECORD: Final = (1 << 14) + 2048
_CHANGE_CIPHER, ALERT, HANDSHAKE, _DATA, _LAST_TYPE = 20, 21, 22, 23, 24
_CLIENT_HELLO, _SERVER_HELLO, _CERTIFICATE = 1, 2, 11
_SERVER_NAME: Final = 0
_KEPT_EXTENSIONS: Final = (10, 11, 13, 22, 23, 28, 43, 45)
"""Groups, point formats, signature algorithms, modes and versions."""


def is_record(data: bytes) -> bool:
    """Whether bytes can begin a record."""
    return (
        len(data) >= HEADER
        and _CHANGE_CIPHER <= data[0] <= _LAST_TYPE
        and data[1] == 3
        and data[2] <= 4
        and int.from_bytes(data[3:5], "big") <= MOST_RECORD
    )


class Records:
    """The records of one direction, one after the other."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._encrypted = False
        self._left = 0
        """Bytes of a handshake message that continues in the next record."""

    def replace(self, data: bytes) -> bytes:
        """A record, or its beginning, with its header."""
        kind, body = data[0], data[HEADER:]
        if kind == _CHANGE_CIPHER:
            self._encrypted = True
            return data[: HEADER + 1] + bytes(len(body) - len(body[:1]))
        if kind == ALERT and len(body) == 2:
            return data
        if kind == HANDSHAKE and not self._encrypted:
            return data[:HEADER] + self._handshake(body)
        return data[:HEADER] + bytes(len(body))

    def _handshake(self, body: bytes) -> bytes:
        new = bytearray(len(body))
        at = min(self._left, len(body))
        self._left -= at
        while at + 4 <= len(body):
            kind, size = body[at], int.from_bytes(body[at + 1 : at + 4], "big")
            if kind > 25 or size > 1 << 17:  # encrypted
                break
            message = body[at + 4 : at + 4 + size]
            new[at : at + 4] = body[at : at + 4]
            new[at + 4 : at + 4 + len(message)] = self._message(kind, message)
            self._left = size - len(message)
            at += 4 + len(message)
        return bytes(new)

    def _message(self, kind: int, data: bytes) -> bytes:
        if kind in (_CLIENT_HELLO, _SERVER_HELLO):
            return bytes(self._hello(data, asks=kind == _CLIENT_HELLO))
        if kind == _CERTIFICATE:  # of TLS 1.2: the lengths of the list and of its first one
            return data[:6] + bytes(len(data) - len(data[:6]))
        return bytes(len(data))

    def _hello(self, data: bytes, *, asks: bool) -> bytearray:
        new = bytearray(len(data))
        try:
            at = 35 + data[34]  # version, random, session id
            if asks:
                at += 2 + int.from_bytes(data[at : at + 2], "big")
                at += 1 + data[at]
            else:
                at += 3
            at += 2  # length of the extensions
            new[:at] = data[:at]
            while at + 4 <= len(data):
                kind, size = struct.unpack_from(">HH", data, at)
                body = data[at + 4 : at + 4 + size]
                new[at : at + 4] = data[at : at + 4]
                new[at + 4 : at + 4 + len(body)] = self._extension(kind, body)
                at += 4 + len(body)
        except IndexError:  # cut
            return bytearray(len(data))
        return new

    def _extension(self, kind: int, body: bytes) -> bytes:
        if kind in _KEPT_EXTENSIONS:
            return body
        if kind == _SERVER_NAME and len(body) > 5:
            size = int.from_bytes(body[3:5], "big")
            name = self._names.name(body[5 : 5 + size])
            if body[2] == 0 and len(name) == size and len(body) == 5 + size:
                return body[:5] + name
        return bytes(len(body))
