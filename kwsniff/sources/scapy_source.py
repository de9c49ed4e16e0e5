"""A scapy socket as a live source, for machines with neither dumpcap nor tcpdump.

Every packet passes through the interpreter, so this handles about ten thousand packets per second; beyond
that the kernel drops and counts packets.
"""

import os
import select
import socket
import struct
import threading
import time
from typing import Any, Final

import scapy.arch  # sets up the sockets of this system
import scapy.layers.l2  # noqa: F401  (names the link types)
from scapy.config import conf
from scapy.error import Scapy_Exception

from kwsniff.errors import CaptureError
from kwsniff.sources.live_source import LiveSource
from kwsniff.sources.rights import not_permitted

_SOL_PACKET, _PACKET_STATISTICS, _PACKET_IGNORE_OUTGOING = 263, 6, 23
_SO_RCVBUFFORCE = 33
_FILE: Final = struct.Struct("<IHHiIII")  # pcap with nanoseconds
_RECORD: Final = struct.Struct("<IIII")
_NANOSECONDS = 0xA1B23C4D
_GLANCE_S = 0.2


class Sniffer(LiveSource):
    """Packets of a scapy socket; a thread writes them as pcap into a pipe."""

    def __init__(self, interface: str, expression: str, snaplen: int, buffer_mb: int) -> None:
        self.tool = "scapy"
        self.interface = interface
        self._snaplen = snaplen
        self._socket = _open_socket(interface, expression, buffer_mb)
        self._read_end, self._write_end = os.pipe()
        self._stopping = threading.Event()
        self._captured = self._dropped = 0
        self._ending: str | None = None
        self._thread = threading.Thread(target=self._pass_on, name="kwsniff-sniffer", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int | None:
        """See LiveSource."""
        return self._dropped

    @property
    def captured(self) -> int | None:
        """See LiveSource."""
        return self._captured

    @property
    def ending(self) -> str | None:
        """See LiveSource."""
        return self._ending

    def fileno(self) -> int:
        """See LiveSource."""
        return self._read_end

    def request_drops(self) -> None:
        """See LiveSource."""

    def stop(self) -> None:
        """See LiveSource."""
        self._stopping.set()

    def close(self) -> None:
        """See LiveSource."""
        self.stop()
        if self._read_end >= 0:
            os.close(self._read_end)
            self._read_end = -1
        self._thread.join()

    def _pass_on(self) -> None:
        try:
            with open(self._write_end, "wb", buffering=1 << 16) as out:  # noqa: PTH123
                layer = conf.l2types.layer2num.get(self._socket.LL, 1)
                out.write(_FILE.pack(_NANOSECONDS, 2, 4, 0, 0, self._snaplen, layer))
                while not self._stopping.is_set():
                    out.flush()
                    if select.select([self._socket], [], [], _GLANCE_S)[0]:
                        self._pass_waiting(out)
                    self._count_drops()
                self._pass_rest(out)
        except BrokenPipeError:  # the reader has closed the pipe
            pass
        except OSError as error:
            self._ending = f"the interface {self.interface} vanished or was shut down ({error.strerror})"
        finally:
            self._socket.close()

    def _pass_waiting(self, out: Any) -> None:
        """Writes the available packets, without a check of clock and stop flag for each."""
        for _ in range(256):
            _, data, seconds = self._socket.recv_raw(self._snaplen)
            if data:
                now = time.time_ns() if seconds is None else int(seconds * 1_000_000) * 1000
                out.write(_RECORD.pack(now // 10**9, now % 10**9, len(data), len(data)) + data)
                self._captured += 1
            if not select.select([self._socket], [], [], 0)[0]:
                return

    def _pass_rest(self, out: Any) -> None:
        """Packets that had arrived before the stop; a busy interface always has some."""
        until = time.monotonic() + _GLANCE_S
        while time.monotonic() < until and select.select([self._socket], [], [], 0)[0]:
            self._pass_waiting(out)

    def _count_drops(self) -> None:
        """Reading the kernel's counter resets it."""
        raw = self._socket.ins.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        self._dropped += struct.unpack("=II", raw)[1]


def _open_socket(interface: str, expression: str, buffer_mb: int) -> Any:
    try:
        opened = conf.L2listen(iface=interface, filter=expression)
    except PermissionError as error:
        raise CaptureError(not_permitted(interface, None)) from error
    except Scapy_Exception as error:
        raise CaptureError(f"scapy rejects the filter {expression!r}: {error}") from error
    except OSError as error:
        raise CaptureError(f"scapy cannot capture on {interface}: {error.strerror or error}") from error
    try:
        opened.ins.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, buffer_mb << 20)
    except OSError:
        opened.ins.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_mb << 20)
    if interface == "lo":  # where every packet appears as sent and received
        opened.ins.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    return opened
