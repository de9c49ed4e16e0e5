"""Plaintext of TLS connections, by tshark: it gets captures and secrets, and says what packets completed.

The core reads the captures as always and puts the plaintext in the place of the TLS records. tshark is told
where the secrets are; what it decrypts comes back through a pipe and is never written to a file.
"""

import os
import re
import shutil
import struct
import subprocess
import tempfile
import threading
from binascii import unhexlify
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Final, Literal, Self, cast

from kwsniff.errors import CaptureError, UsageError
from kwsniff.sources.joined import joinable, joined
from kwsniff.sources.keylog import check_keylog, holds_secrets

Pieces = Callable[[], bytes]
"""Gives plaintext as Analyzer.decrypt() wants it, b"" at the end."""

KeyLog = str | os.PathLike[str] | Literal[False] | None
"""A file of secrets; None for those inside captures alone; False to decrypt nothing."""

_BATCH_BYTES: Final = 1 << 20
_APPLICATION_DATA: Final = b"23"
# Records of this length may hold nothing: their length is all nonce, tag, MAC and padding.
_EMPTY_RECORDS: Final = frozenset((8, 9, 16, 17, 24, 32, 48, 64, 80))
_LEAST_OVERHEAD: Final = 8
_HARMLESS: Final = ("cut short", "damaged or corrupt")
_LONG_HEX: Final = re.compile(r"[0-9A-Fa-f]{16,}")
_NOTHING_OPENED: Final = b"\t\n"
_PIECE: Final = struct.Struct("=QII")
_RECORD: Final = struct.Struct("=III")
_RECORD_HEADER: Final = 5

_INSTALL: Final = "install it (Debian, Ubuntu: apt-get install tshark) and put it on the PATH"

_OPTIONS: Final = (
    # Every port may carry TLS. What is inside must stay data: these would claim some of it by its looks.
    "-d tcp.port==1-65535,tls",
    "-d tls.port==1-65535,data",
    *(
        f"--disable-protocol {name}"
        for name in ("http", "http2", "rdpmt", "mq", "5gli", "fix", "credssp", "aim")
    ),
    "-o tls.desegment_ssl_records:TRUE",
    "-o tls.desegment_ssl_application_data:FALSE",
    "-o tcp.desegment_tcp_streams:TRUE",
    "-o tcp.reassemble_out_of_order:TRUE",
    "-o tcp.analyze_sequence_numbers:TRUE",
    "-o tcp.check_checksum:FALSE",
    "-o ip.check_checksum:FALSE",
    "-o ip.defragment:TRUE",
    "-Y tls.record",
    "-T fields",
    "-e frame.number",
    "-e tls.record.content_type",
    "-e tls.record.length",
    "-e data.data",
)


class Decryption:
    """What decrypts captures, in the order of their analysis: with a key log, or secrets inside them.

    Without either it does nothing, nor with False for a key log. ``notes`` is whole after its ``with`` block.
    Raises UsageError for a key log that is none, without tshark, and for captures that can be read only once.
    """

    def __init__(self, captures: Sequence[str], keylog: KeyLog) -> None:
        self.notes: list[str] = []
        self._keylog = None if keylog is None or keylog is False else check_keylog(keylog)
        self._runs: dict[str, list[str]] = {}
        self._running: _Tshark | None = None
        self._opened = False
        asked = keylog is not None
        secretive = [] if asked else [name for name in captures if holds_secrets(name)]
        if not self._keylog and not secretive:
            return
        self._program = shutil.which("tshark")
        if self._program is None and self._keylog:
            raise UsageError(f"a TLS key log needs tshark, which is not on the PATH; {_INSTALL}")
        unreadable = [name for name in captures if not Path(name).is_file()]
        if unreadable and self._keylog:
            raise UsageError(
                f"{unreadable[0]}: tshark has to read it as well as kwsniff; write it to a file first"
            )
        if self._program is None:
            self.notes += map(needs_tshark, secretive)
        elif not unreadable:
            self._runs = {run[0]: run for run in joinable(captures)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        if self._keylog and not self._opened:
            self.notes.append(
                "the key log opened no TLS connection: its secrets must be of these, "
                "and the captures must hold their handshakes"
            )

    def begin(self, capture: str) -> Pieces | None:
        """Where plaintext comes from when this capture is next; None: nowhere, or as before."""
        run = self._runs.pop(capture, None)
        if run is None or self._program is None:
            return None
        self._stop()
        self._running = _Tshark(self._program, self._keylog, run)
        return self._running.pieces

    def _stop(self) -> None:
        if self._running:
            self._running.stop()
            self._opened = self._opened or self._running.opened
            self._running = None


def needs_tshark(capture: str) -> str:
    """The note on a capture that holds secrets, where there is no tshark."""
    return f"{capture}: holds TLS secrets, which need tshark; {_INSTALL}"


class _Tshark:
    """One tshark over a run of captures, fed by a thread, read by `pieces`."""

    def __init__(self, program: str, keylog: str | None, captures: Sequence[str]) -> None:
        self.opened = False
        self._captures = captures
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - stop() closes it
        # Preferences of this user could make tshark read other things into the packets.
        self._settings = tempfile.TemporaryDirectory(prefix="kwsniff-")
        command = [program, "-n", "-r", "-", *(word for option in _OPTIONS for word in option.split())]
        if keylog:
            command += ["-o", f"tls.keylog_file:{keylog}"]
        self._process = subprocess.Popen(  # noqa: S603 - found on the PATH, with options of ours
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            env={**os.environ, "LC_ALL": "C", "WIRESHARK_CONFIG_DIR": self._settings.name},
        )
        self._input = cast("IO[bytes]", self._process.stdin)
        self._output = cast("IO[bytes]", self._process.stdout)
        self._feeder = threading.Thread(target=self._feed, name="kwsniff-tshark", daemon=True)
        self._feeder.start()

    def pieces(self) -> bytes:
        """The next pieces; raises CaptureError when tshark could not do its work."""
        if lines := self._output.readlines(_BATCH_BYTES):
            self.opened = self.opened or not all(line.endswith(_NOTHING_OPENED) for line in lines)
            return b"".join(map(_piece, lines))
        self._check()
        return b""

    def stop(self) -> None:
        """Ends it, whether it is through or not."""
        self._process.kill()
        self._process.wait()
        self._output.close()
        self._feeder.join()
        self._complaints.close()
        self._settings.cleanup()

    def _feed(self) -> None:
        try:
            with self._input as pipe:
                for data in joined(self._captures):
                    pipe.write(data)
        except (OSError, CaptureError):
            # tshark is gone, or the capture: whoever reads the other end of either says why.
            return

    def _check(self) -> None:
        status = self._process.wait()
        self._complaints.seek(0)
        text = self._complaints.read().decode("utf-8", "replace")
        lines = [
            line for line in text.splitlines() if line.strip() and not line.startswith("Running as user")
        ]
        if status == 0 or any(word in text for word in _HARMLESS):
            return
        why = _LONG_HEX.sub("...", lines[0].strip()) if lines else f"exit status {status}"
        raise CaptureError(f"tshark could not decrypt the capture ({why}); version 4.0 or later is needed")


def _piece(line: bytes) -> bytes:
    """A line of tshark's, which stands for a frame, as a piece for Analyzer.decrypt()."""
    frame, kinds, lengths, data = line.rstrip(b"\n").split(b"\t")
    texts = data.split(b",") if data else []
    sizes = [int(length) for length in lengths.split(b",")] if lengths else []
    opened = [len(text) >> 1 for text in texts]
    records = []
    for kind, size in zip(kinds.split(b","), sizes, strict=False):
        plain = lost = 0
        if kind == _APPLICATION_DATA:
            if opened and size - opened[0] >= _LEAST_OVERHEAD:
                plain = opened.pop(0)
            elif size not in _EMPTY_RECORDS:
                lost = size - _LEAST_OVERHEAD
        records.append(_RECORD.pack(size + _RECORD_HEADER, plain, lost))
    plaintext = unhexlify(b"".join(texts))
    return b"".join((_PIECE.pack(int(frame), len(records), len(plaintext)), *records, plaintext))
