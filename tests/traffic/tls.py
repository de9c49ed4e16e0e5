"""Scripted connections inside TLS: the same bytes at the same times, encrypted by Python's ssl module.

keys = KeyLog(tmp_path)
encrypted = keys.encrypt(scene, ssl.TLSVersion.TLSv1_3)      # a Scene; keys.path is its key log
"""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.traffic.tcp import MICROSECOND, MILLISECOND, SYN, Call, Scene, Script, Span

VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


def missing() -> str | None:
    """Why nothing can be encrypted and decrypted here, or None."""
    if shutil.which("openssl") is None:
        return "openssl not on the PATH"
    return None if importlib.util.find_spec("cryptography") else "the library cryptography is not installed"


@dataclass
class _Wire:
    """One side's TLS engine between what it reads and what it writes."""

    incoming: ssl.MemoryBIO = field(default_factory=ssl.MemoryBIO)
    outgoing: ssl.MemoryBIO = field(default_factory=ssl.MemoryBIO)

    def start(self, context: ssl.SSLContext, *, server: bool, session: ssl.SSLSession | None = None) -> None:
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=server, session=session)

    def shake(self) -> bool:
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def drain(self) -> bytes:
        """Reads everything that has come: tickets and key updates are taken in then."""
        read = bytearray()
        try:
            while part := self.tls.read(1 << 16):
                read += part
        except ssl.SSLWantReadError:
            pass
        return bytes(read)

    def update_key(self) -> None:
        """TLS 1.3 KeyUpdate, which Python does not offer: asked of OpenSSL itself (SSL_key_update)."""
        import _ssl

        # PyObject_HEAD, the socket, then SSL*: CPython's PySSLSocket.
        sslobj = self.tls._sslobj  # type: ignore[attr-defined]
        ssl_at = ctypes.c_void_p.from_address(
            id(sslobj) + object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p)
        )
        update = ctypes.CDLL(_ssl.__file__).SSL_key_update
        update.argtypes = [ctypes.c_void_p, ctypes.c_int]
        if update(ssl_at, 1) != 1:
            raise RuntimeError("OpenSSL refused the key update")


class KeyLog:
    """A certificate, contexts of client and server, and the key log they write to."""

    def __init__(self, folder: Path, *, ciphers: str | None = None, groups: str = "prime256v1") -> None:
        self.path = folder / "keys.log"
        self._pem = folder / "broker.pem"
        command = "openssl req -x509 -newkey ec -nodes -subj /CN=broker -days 2"
        more = ["-pkeyopt", f"ec_paramgen_curve:{groups}", "-keyout", self._pem, "-out", folder / "crt.pem"]
        subprocess.run([*command.split(), *more], check=True, capture_output=True)
        with self._pem.open("ab") as file:
            file.write((folder / "crt.pem").read_bytes())
        self._ciphers = ciphers
        self._clients: dict[ssl.TLSVersion, ssl.SSLContext] = {}
        self._servers: dict[ssl.TLSVersion, ssl.SSLContext] = {}

    def encrypt(
        self,
        scene: Scene,
        version: ssl.TLSVersion,
        *,
        resume: bool = False,
        update_after: Sequence[int] = (),
        close_notify: bool = True,
        logged: Callable[[int], bool] = lambda number: True,
    ) -> Scene:
        """The scene with every connection inside TLS, its handshake 1 ms after the connection began.

        ``resume``: from the second connection on, the session of the one before is resumed. ``update_after``:
        numbers of writes of a connection after which the writer changes its key. ``logged``: which
        connections' secrets are in the key log.
        """
        out = Scene()
        session = None
        for script in scene.scripts:
            talk = _Encrypted(script, update_after=update_after, close_notify=close_notify)
            client, server = self._contexts(version)
            client.keylog_filename = str(
                self.path if logged(script.number) else self.path.with_suffix(".other")
            )
            out.scripts.append(talk.run(client, server, session if resume else None))
            out.scripts[-1].calls = [talk.sealed(call) for call in script.calls]
            session = talk.session
        return out

    def _contexts(self, version: ssl.TLSVersion) -> tuple[ssl.SSLContext, ssl.SSLContext]:
        if version not in self._clients:
            client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            client.check_hostname = False
            client.verify_mode = ssl.CERT_NONE
            server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            server.load_cert_chain(self._pem)
            for context in (client, server):
                context.minimum_version = context.maximum_version = version
                if self._ciphers:
                    context.set_ciphers(self._ciphers)
            self._clients[version], self._servers[version] = client, server
        return self._clients[version], self._servers[version]


class _Encrypted:
    """One connection's script, written again with records in the place of what it says."""

    def __init__(self, script: Script, *, update_after: Sequence[int], close_notify: bool) -> None:
        self._plain = script
        self._update_after = set(update_after)
        self._close_notify = close_notify
        self._said: dict[bool, list[tuple[int, Span]]] = {True: [], False: []}
        self.session: ssl.SSLSession | None = None
        self._out = script.emptied()

    def run(self, client: ssl.SSLContext, server: ssl.SSLContext, session: ssl.SSLSession | None) -> Script:
        self._wires = {True: _Wire(), False: _Wire()}
        self._wires[True].start(client, server=False, session=session)
        self._wires[False].start(server, server=True)
        shaken = False
        number = 0
        for at, side, flags, data in self._events():
            if not shaken and not (flags & SYN or (not data and at < MILLISECOND)):
                self._shake(self._plain._controls[0][0] + MILLISECOND if self._plain._controls else 0)
                shaken = True
            if data:
                self._write(side, data, at)
                if number in self._update_after:
                    self._wires[side].update_key()
                number += 1
            else:
                if flags & 1 and self._close_notify:
                    self._notify(side, at)
                self._out._control(at, side, flags)
        self.session = self._wires[True].tls.session
        return self._out

    def sealed(self, call: Call) -> Call:
        """The call, where it is in the streams of records."""
        response = self._records(call.response, False) if call.response else None
        return replace(call, request=self._records(call.request, True), response=response)

    def _records(self, span: Span, side: bool) -> Span:
        found, start = [], 0
        for size, records in self._said[side]:
            if start < span.end and start + size > span.start:
                found.append(records)
            start += size
        return Span(found[0].start, found[-1].end)

    def _events(self) -> Iterator[tuple[int, bool, int, bytes]]:
        """(time, direction, flags, data) in the order of the script."""
        events = [(at, order, side, flags, b"") for at, order, side, flags in self._plain._controls]
        for side, written in self._plain._sides.items():
            events += [(at, order, side, 0, data) for at, order, data in written.writes]
        for at, _, side, flags, data in sorted(events, key=lambda event: event[:2]):
            yield at, side, flags, data

    def _shake(self, at: int) -> None:
        done = {True: False, False: False}
        side = True
        while not all(done.values()):
            done[side] = self._wires[side].shake()
            at += 50 * MICROSECOND
            self._send(side, at)
            side = not side
        for side in (False, True):  # tickets
            self._wires[not side].drain()
            self._send(side, at + 50 * MICROSECOND)
            self._wires[not side].drain()

    def _write(self, side: bool, data: bytes, at: int) -> None:
        self._wires[side].tls.write(data)
        span = self._send(side, at)
        if span:
            self._said[side].append((len(data), span))
        if self._wires[not side].drain() != data:
            raise AssertionError("what was encrypted must come out again")

    def _notify(self, side: bool, at: int) -> None:
        with suppress(ssl.SSLError):  # the other side's close_notify is not waited for
            self._wires[side].tls.unwrap()
        self._send(side, at)

    def _send(self, side: bool, at: int) -> Span | None:
        data = self._wires[side].outgoing.read()
        self._wires[not side].incoming.write(data)
        return self._out.write(data, at, from_client=side) if data else None
