"""Scripted connections inside TLS, as `openssl s_client` and `openssl s_server` make it, through a relay.

peers = Peers(tmp_path)
encrypted = peers.encrypt(scene, Talk(["-tls1_3"], after={3: [(True, KEY_UPDATE)]}))  # peers.path: key log

Both programs take what they send, and commands, from their standard input, and print what they receive; what
passes between them becomes the connection's bytes, at the times of the script.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.traffic.tcp import FIN, MICROSECOND, MILLISECOND, SYN, Scene, Script

PATIENCE_S = 20.0
QUIET_S = 0.02
LOOPBACK = "127.0.0.1"

KEY_UPDATE = b"K\n"
"""Of both programs: a key update that asks for the other side's."""
RENEGOTIATE = {True: b"R\n", False: b"r\n"}
CERTIFICATE_ASKED = b"R\n"
"""Of the server: a renegotiation in which the client shows its certificate."""


def missing() -> str | None:
    """Why these peers cannot talk here, or None."""
    return None if shutil.which("openssl") else "openssl not on the PATH"


@dataclass
class Talk:
    """Options of both programs, and the commands that follow the script's writes, by number."""

    client: Sequence[str] = ()
    server: Sequence[str] = ()
    after: Mapping[int, Sequence[tuple[bool, bytes]]] = field(default_factory=dict)
    resume: bool = False
    """From the second connection on, the session of the one before is resumed."""
    logged: Callable[[int], bool] = lambda number: True
    """Which connections' secrets are in the key log."""


class _Program:
    """A running program, what it is told and what it says."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.said = bytearray()
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    def _read(self, stream: IO[bytes]) -> None:
        while part := stream.read1(1 << 16):  # type: ignore[attr-defined]
            self.said += part

    def tell(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def is_over(self) -> bool:
        return self._process.poll() is not None

    def end(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


class _Relay:
    """Passes the bytes of one connection on, and notes them: (from the client, bytes)."""

    def __init__(self, server_port: int) -> None:
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port = self._listener.getsockname()[1]
        self._server_port = server_port
        self._lock = threading.Lock()
        self._noted: list[tuple[bool, bytes]] = []
        self._ends: list[socket.socket] = []
        self.latest = time.monotonic()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        server = socket.create_connection((LOOPBACK, self._server_port))
        self._ends = [client, server]
        for one, other, from_client in ((client, server, True), (server, client, False)):
            threading.Thread(target=self._pass, args=(one, other, from_client), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket, from_client: bool) -> None:
        try:
            while data := one.recv(1 << 16):
                with self._lock:
                    self._noted.append((from_client, data))
                    self.latest = time.monotonic()
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def take(self) -> list[tuple[bool, bytes]]:
        with self._lock:
            noted, self._noted = self._noted, []
        return noted

    def close(self) -> None:
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)  # who waits for bytes keeps a closed socket open
        for end in [*self._ends, self._listener]:
            end.close()


class Peers:
    """Certificates of a broker and a client, and the key log that the client writes."""

    def __init__(
        self, folder: Path, *, key: Sequence[str] = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256")
    ) -> None:
        self.path = folder / "keys.log"
        self._folder = folder
        self._pems = {name: self._certificate(name, key) for name in ("broker", "client")}

    def _certificate(self, name: str, key: Sequence[str]) -> Path:
        pem = self._folder / f"{name}.pem"
        parts = [self._folder / f"{name}.key", self._folder / f"{name}.crt"]
        command = ["openssl", "req", "-x509", "-nodes", "-subj", f"/CN={name}", "-days", "2", "-newkey", *key]
        command += ["-keyout", str(parts[0]), "-out", str(parts[1])]
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)
        pem.write_bytes(b"".join(part.read_bytes() for part in parts))
        return pem

    @property
    def certificate(self) -> list[str]:
        """Options of a client that shows its certificate."""
        return ["-cert", str(self._pems["client"])]

    def encrypt(self, scene: Scene, talk: Talk) -> Scene:
        """The scene with every connection inside TLS, its handshake 1 ms after the connection began."""
        out = Scene()
        with socket.create_server((LOOPBACK, 0)) as free:
            port = free.getsockname()[1]
        server = _Program(
            [
                "openssl",
                "s_server",
                "-accept",
                f"{LOOPBACK}:{port}",
                "-cert",
                str(self._pems["broker"]),
                *talk.server,
            ]
        )
        try:
            wait(lambda: b"ACCEPT" in server.said)
            for script in scene.scripts:
                out.scripts.append(self._connection(script, talk, server, port))
        finally:
            server.end()
        return out

    def _connection(self, script: Script, talk: Talk, server: _Program, port: int) -> Script:
        relay = _Relay(port)
        resumed = talk.resume and script.number > 0
        session = str(self._folder / "session.pem")
        path = self.path if talk.logged(script.number) else self.path.with_suffix(".other")
        command = ["openssl", "s_client", "-connect", f"{LOOPBACK}:{relay.port}", "-keylogfile", str(path)]
        if resumed:
            command += ["-sess_in", session]
        server.said.clear()
        client = _Program([*command, "-sess_out", session, *talk.client])
        try:
            return _Written(script, talk, {True: client, False: server}, relay).run()
        finally:
            client.end()
            relay.close()


class _Written:
    """One connection's script, written again with what passed the relay in the place of what it says."""

    def __init__(self, script: Script, talk: Talk, ends: Mapping[bool, _Program], relay: _Relay) -> None:
        self._plain, self._talk, self._ends, self._relay = script, talk, ends, relay
        self._out = script.emptied()

    def run(self) -> Script:
        events = [(at, order, side, flags, b"") for at, order, side, flags in self._plain._controls]
        for side, written in self._plain._sides.items():
            events += [(at, order, side, 0, data) for at, order, data in written.writes]
        number, shaken = 0, False
        for at, _, side, flags, data in sorted(events, key=lambda event: event[:2]):
            if not shaken and not (flags & SYN or (not data and at < MILLISECOND)):
                self._shake((self._plain._controls[0][0] if self._plain._controls else 0) + MILLISECOND)
                shaken = True
            if data:
                self._write(side, data, at, number)
            number += bool(data)
            if flags & FIN and side:
                self._ends[True].tell(b"Q\n")
                wait(self._ends[True].is_over)
                self._settle(at - MILLISECOND)
            if not data:
                self._out._control(at, side, flags)
        return self._out

    def _shake(self, at: int) -> None:
        wait(
            lambda: (
                b"Verify return code" in self._ends[True].said
                or b"Verify return code" in self._ends[False].said
            )
        )
        self._settle(at, 50 * MICROSECOND)

    def _write(self, side: bool, data: bytes, at: int, number: int) -> None:
        end = self._ends[not side]
        before = len(end.said)
        self._ends[side].tell(data)
        wait(lambda: end.said.find(data, before) >= 0)
        self._settle(at)
        for who, command in self._talk.after.get(number, ()):
            self._ends[who].tell(command)
            time.sleep(0.1)
            self._settle(at + MILLISECOND // 2)

    def _settle(self, at: int, step: int = MICROSECOND) -> None:
        """What has passed until nothing comes any more; every flight `step` after the one before."""
        wait(self._is_quiet)
        latest = None
        for side, data in self._relay.take():
            at += step if latest is not None and side is not latest else 0
            latest = side
            self._out.write(data, at, from_client=side)

    def _is_quiet(self) -> bool:
        return time.monotonic() - self._relay.latest > QUIET_S


def wait(until: Callable[[], bool]) -> None:
    """Raises TimeoutError when it does not come true."""
    end = time.monotonic() + PATIENCE_S
    while not until():
        if time.monotonic() > end:
            raise TimeoutError("the peers do not do what they are told")
        time.sleep(0.001)
