"""The port of the metrics against those who only hold it, and against pages of other names."""

import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPConnection

import pytest

from kwsniff.live import metrics_port as metrics
from kwsniff.live.metrics import Metrics
from kwsniff.live.metrics_port import MOST_CONNECTIONS, MetricsServer


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    with MetricsServer(Metrics(), "127.0.0.1", 0) as server:
        host, _, port = server.address.partition(":")
        yield host, int(port)


def _status(address: tuple[str, int], host: str) -> int:
    connection = HTTPConnection(*address, timeout=20)
    connection.request("GET", "/metrics", headers={"Host": host})
    return connection.getresponse().status


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200), ("localhost:9308", 200), ("127.0.0.1:9308", 200), ("[::1]:9308", 200),
        ("127.9.9.9", 200), ("evil.example", 421), ("evil.example:9308", 421),
        ("localhost.evil.example", 421), ("10.0.0.1", 421), ("", 421),
    ],
)  # fmt: skip
def test_a_port_of_this_machine_answers_to_its_own_names(
    address: tuple[str, int], host: str, status: int
) -> None:
    assert _status(address, host) == status


def test_a_port_of_all_machines_answers_to_any_name() -> None:
    with MetricsServer(Metrics(), "0.0.0.0", 0) as server:  # noqa: S104
        port = int(server.address.rpartition(":")[2])
        assert _status(("127.0.0.1", port), "broker-1.example:9308") == 200


def test_those_who_only_hold_connections_cannot_have_many(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the bound they are hung up at once; when those go, others are answered again."""
    monkeypatch.setattr(metrics, "_LONGEST_S", 60.0)
    with ExitStack() as stack:
        holders = [
            stack.enter_context(socket.create_connection(address, 20)) for _ in range(MOST_CONNECTIONS)
        ]
        for holder in holders:
            holder.sendall(b"GET /metrics HTTP/1.0\r\n")  # and no more
        late = stack.enter_context(socket.create_connection(address, 20))
        assert late.recv(100) == b""
    for _ in range(200):
        try:
            found = urllib.request.urlopen(f"http://{address[0]}:{address[1]}/metrics", timeout=20)
        except OSError:
            time.sleep(0.05)
        else:
            assert found.status == 200
            return
    pytest.fail("no answer after everybody hung up")


def test_who_dribbles_is_hung_up(address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then is no silence; the whole has its time as well."""
    monkeypatch.setattr(metrics, "_LONGEST_S", 0.3)
    with socket.create_connection(address, 20) as slow:
        slow.sendall(b"GET /metrics HTTP/1.0\r\nX: ")
        assert slow.recv(100) == b""


def test_who_does_not_read_is_hung_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than the system's buffers hold waits for a reader that never comes, and is given up."""

    class Large(Metrics):
        def text(self, *, openmetrics: bool = False) -> str:
            return "x" * (32 << 20)

    monkeypatch.setattr(metrics, "_LONGEST_S", 0.5)
    with MetricsServer(Large(), "127.0.0.1", 0) as server:
        port = int(server.address.rpartition(":")[2])
        with ExitStack() as stack:
            for _ in range(3):
                slow = stack.enter_context(socket.create_connection(("127.0.0.1", port), 20))
                slow.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            for _ in range(600):
                if not any("process_request_thread" in thread.name for thread in threading.enumerate()):
                    break
                time.sleep(0.05)
            else:
                pytest.fail("threads wait for who does not read")
            monkeypatch.setattr(metrics, "_LONGEST_S", 60)  # who reads may be slow on a busy machine
            assert _status(("127.0.0.1", port), "localhost") == 200


@pytest.mark.parametrize("head", [b"GET /" + b"x" * 200_000, b"GET / HTTP/1.0\r\n" + b"A: b\r\n" * 5000])
def test_a_request_has_a_longest_line_and_most_headers(address: tuple[str, int], head: bytes) -> None:
    """What is longer is refused (RFC 9110 15.5.15, RFC 6585 5) without being kept."""
    with socket.create_connection(address, 20) as one:
        with suppress(OSError):
            one.sendall(head + b"\r\n\r\n")
        with suppress(ConnectionResetError):
            told = one.recv(100)
            assert not told or told.split()[1] in (b"414", b"431")
    assert _status(address, "localhost") == 200


def test_a_scraper_that_hangs_up_leaves_nothing_on_the_screen(
    address: tuple[str, int], capfd: pytest.CaptureFixture[str]
) -> None:
    for sent in (
        b"",
        b"GET",
        b"GET /metrics HTTP/1.0\r\n\r\n",
        b"\xff\x00\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
    ):
        with socket.create_connection(address, 20) as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset
            one.sendall(sent)
    assert _status(address, "localhost") == 200
    assert capfd.readouterr() == ("", "")
