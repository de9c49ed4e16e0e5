"""Live sources: dumpcap and tcpdump as child processes.

    dumpcap   pcapng; delivers packets within 250 ms; reports drops at its end; before that, kwsniff
              reads its socket if permitted (kernel_drops.py)
    tcpdump   pcap;   delivers packets within a second; reports drops on request

While the pipe is full, packets stay in the kernel's buffer (-B); the kernel drops and counts those that do
not
fit. Each child has its own process group, so that Ctrl-C reaches only kwsniff, which lets the child finish;
the child always ends with kwsniff.
"""

import ctypes
import fcntl
import os
import re
import signal
import subprocess
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Final

from kwsniff.errors import CaptureError
from kwsniff.sources.kernel_drops import KernelDrops
from kwsniff.sources.live_source import LiveSource
from kwsniff.sources.rights import not_permitted, not_shed

_PIPE_BYTES = 1 << 20  # the maximum for unprivileged users
_PATIENCE_S: Final = 10.0
_HANDED_OVER_S: Final = {"dumpcap": 0.3, "tcpdump": 1.1}
"""The kernel delivers packets to the tools in blocks, every 250 ms or every second, or when one is full. A
stopped
tool loses the packets in the last block, so it is stopped only after that block must have arrived."""
_REQUEST_S: Final = {"dumpcap": 0.2, "tcpdump": 1.0}
_PR_SET_PDEATHSIG = 1
_SIGNALS: Final = {each.value: each.name for each in signal.Signals}

_READY = {"dumpcap": "File: ", "tcpdump": "listening on "}
_CAPTURED = re.compile(r"^(?:\w+: )?(\d+) packets? captured|^Packets captured: (\d+)")
_DROPPED = re.compile(r"(\d+) packets? dropped by kernel|received/dropped on interface .*?: \d+/(\d+) \(")
_VANISHED = re.compile(r"no longer attached|interface disappeared|went down|network is down", re.IGNORECASE)
_REFUSED = re.compile(r"permission|not permitted|operation not allowed", re.IGNORECASE)
_NOT_SHED = re.compile(r"couldn't change to ", re.IGNORECASE)
_NO_DEVICE = re.compile(r"no such device|no device named", re.IGNORECASE)
_BAD_FILTER = re.compile(r"filter (?:expression|\")|can't parse|syntax error|illegal token", re.IGNORECASE)
_WHY_BAD = re.compile(r"\((.*)\)\.?$|tcpdump: (.*)$")


class NotPermitted(CaptureError):
    """This user may not capture with this tool."""


class Recorder(LiveSource):
    """A capture tool. Raises CaptureError if it fails to start."""

    def __init__(
        self,
        tool: str,
        program: str,
        interfaces: Sequence[str],
        *,
        expression: str,
        snaplen: int,
        buffer_mb: int,
    ) -> None:
        self.tool = tool
        self.interface = ", ".join(interfaces)
        self._program = program
        self._expression = expression
        self._said: deque[str] = deque(maxlen=50)
        self._captured: int | None = None
        self._dropped: int | None = None
        self._stopped = False
        self._ready = threading.Event()
        self._begun = False
        self._requested = 0.0
        self._last_turn: threading.Timer | None = None
        command = _command(program, interfaces, expression, snaplen, buffer_mb)
        started: Future[subprocess.Popen[bytes]] = Future()
        # The kernel ends the child with the thread that started it, so this thread lives as long as the
        # child.
        self._listener = threading.Thread(
            target=self._run, args=(command, started), name="kwsniff-recorder", daemon=True
        )
        self._listener.start()
        self._process = started.result()
        self._drops: KernelDrops | None = None
        self._await_ready()
        if tool == "dumpcap":
            self._drops = KernelDrops(self._process.pid)

    @property
    def dropped(self) -> int | None:
        """See LiveSource."""
        if self._drops is None or not (self._drops.is_known or self._drops.dropped):
            return self._dropped
        return self._drops.dropped + (self._dropped or 0)

    @property
    def tells_drops(self) -> bool:
        """Whether it reports drops while it runs."""
        return self.tool == "tcpdump" or (self._drops is not None and self._drops.is_known)

    @property
    def captured(self) -> int | None:
        """See LiveSource."""
        return self._captured

    @property
    def ending(self) -> str | None:
        """See LiveSource."""
        if self._stopped or self._process.poll() is None:
            return None
        said = " ".join(self._said)
        if _VANISHED.search(said) or _NO_DEVICE.search(said):
            return f"the interface {self.interface} vanished or was shut down"
        if self._process.returncode < 0:
            name = _SIGNALS.get(-self._process.returncode, "a signal")
            return f"{self.tool} was killed ({name}); kwsniff read all packets before that"
        return f"{self.tool} ended: {self._last_words()}"

    @property
    def delay_ns(self) -> int:
        """See LiveSource. dumpcap's buffers are read every 250 ms, tcpdump's every second."""
        return 500_000_000 if self.tool == "dumpcap" else 1_300_000_000

    def fileno(self) -> int:
        """See LiveSource."""
        if self._process.stdout is None:
            raise CaptureError(f"{self.tool} was started without a pipe")
        return self._process.stdout.fileno()

    def request_drops(self) -> None:
        """See LiveSource."""
        now = time.monotonic()
        if now - self._requested < _REQUEST_S[self.tool]:
            return
        if self._drops is not None:
            self._requested = now
            self._drops.count()
        if self.tool == "tcpdump" and self._process.poll() is None:
            self._requested = now
            self._process.send_signal(signal.SIGUSR1)

    def stop(self) -> None:
        """See LiveSource."""
        if not self._stopped and self._process.poll() is None:
            self._stopped = True
            self._last_turn = threading.Timer(_HANDED_OVER_S[self.tool], self._end)
            self._last_turn.daemon = True
            self._last_turn.start()

    def _end(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)  # SIGINT may be ignored, as in a shell's background

    def close(self) -> None:
        """See LiveSource."""
        if self._drops is not None:
            self._drops.close()
        if self._process.stdout:
            self._process.stdout.close()  # so that it can no longer write
        if self._last_turn is not None:
            self._last_turn.cancel()
            self._end()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join(_PATIENCE_S)
        if self._process.stderr:
            self._process.stderr.close()

    def _run(self, command: Sequence[str], started: "Future[subprocess.Popen[bytes]]") -> None:
        """Starts the tool and reads its messages until it ends."""
        try:
            process = _start(command)
        except BaseException as error:  # the waiting caller raises it
            started.set_exception(error)
            return
        started.set_result(process)
        for raw in process.stderr or ():
            line = raw.decode(errors="replace").strip()
            if line:
                self._said.append(line)
            if line.removeprefix(f"{self.tool}: ").startswith(_READY[self.tool]):
                self._begun = True
                self._ready.set()
            elif found := _CAPTURED.search(line):
                self._captured = int(found[1] or found[2])
            if found := _DROPPED.search(line):
                before = 0 if self.tool == "tcpdump" else self._dropped or 0  # a line for each interface
                self._dropped = before + int(found[1] or found[2])
        self._ready.set()

    def _await_ready(self) -> None:
        """Returns when the tool captures. Its error messages are complete when its standard error ends."""
        spoke = self._ready.wait(_PATIENCE_S)
        if self._begun:
            return
        if not spoke:
            self._process.kill()
        self.close()
        said = " ".join(self._said)
        if _NOT_SHED.search(said):
            raise NotPermitted(not_shed(self._program))
        if _REFUSED.search(said):
            raise NotPermitted(not_permitted(self.interface, self._program))
        if _NO_DEVICE.search(said):
            raise CaptureError(f"the interface {self.interface} vanished")
        if _BAD_FILTER.search(said):
            raise CaptureError(
                f"libpcap rejects the filter {self._expression!r}"
                f"{self._why_bad()}; for example: -f 'tcp port 9092 and host 10.0.0.1'"
            )
        why = self._last_words() if spoke else f"no reaction within {_PATIENCE_S:.0f} s"
        raise CaptureError(f"{self.tool} cannot capture on {self.interface}: {why}")

    def _why_bad(self) -> str:
        for line in self._said:
            if _BAD_FILTER.search(line) and (found := _WHY_BAD.search(line)):
                why: str = found[1] or found[2]
                return f" ({why.split(': ', 1)[-1]})"
        return ""

    def _last_words(self) -> str:
        lines = [line for line in self._said if line.startswith(f"{self.tool}: ")] or list(self._said)
        if not lines:
            return f"no message (exit status {self._process.returncode})"
        return lines[-1].removeprefix(f"{self.tool}: ")


def _command(
    program: str, interfaces: Sequence[str], expression: str, snaplen: int, buffer_mb: int
) -> list[str]:
    if Path(program).name == "dumpcap":
        # Before the first -i, options apply to all interfaces.
        start = [program, "-s", str(snaplen), "-B", str(buffer_mb), "-f", expression]
        return [*start, *(word for name in interfaces for word in ("-i", name)), "-w", "-", "-q"]
    start = [program, "-i", interfaces[0], "-s", str(snaplen)]
    exact = ["-n", "-U", "-B", str(buffer_mb << 10), "--time-stamp-precision=nano"]
    # A text that begins with - would otherwise be read as an option: -w FILE, or -z COMMAND.
    return [*start, "-w", "-", *exact, "--", expression]


def _start(command: Sequence[str]) -> "subprocess.Popen[bytes]":
    with warnings.catch_warnings():
        # Python 3.12 warns of any code between fork and exec; this is a single system call.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C"},
            process_group=0,
            preexec_fn=_ending_with_us(),  # noqa: PLW1509
        )
    if process.stdout:
        with suppress(OSError):  # this user's pipe buffers are at their limit
            fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return process


def _ending_with_us() -> Callable[[], None] | None:
    """Called in the child before exec: the kernel will stop it when kwsniff is killed. Otherwise a tool
    without packets would never notice that its pipe has no reader."""
    try:
        prctl = ctypes.PyDLL(None).prctl  # holds the GIL: nothing else runs in the child
    except (OSError, AttributeError):
        return None
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
