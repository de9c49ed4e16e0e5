"""The port of the metrics against those who only hold it, and against pages of other names."""

import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
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
