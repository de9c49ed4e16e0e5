"""The live view: keys, pages, and the whole in a real terminal."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import kwsniff
from kwsniff.cli.live.header import footer, header
from kwsniff.cli.live.keys import parse_keys
from kwsniff.cli.live.model import ORDERS, PAGES, ViewState
from kwsniff.cli.live.pages import HELP, page
from kwsniff.live.session import Progress
from kwsniff.live.window import Window
from tests.record.mock import MockCluster

from .running import PATIENCE_S, ROOT, needs_capture, ports_of, talk
from .test_window import batches, many_clients

pytestmark = pytest.mark.sample_tests(7)


def pressed(*keys: str, **before: object) -> ViewState:
    state = ViewState(**before)  # type: ignore[arg-type]
    for key in keys:
        state.press(key)
    return state


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"q", ["q"]),
        (b"\x1b[A\x1b[B", ["up", "down"]),
        (b"\x1bOA", ["up"]),
        (b"\x1b", ["escape"]),
        (b"\x1b[15~x", ["x"]),
        (b"/ab\r", ["/", "a", "b", "enter"]),
        ("ö€".encode(), ["ö", "€"]),
        (b"\t \x7f", ["tab", "space", "backspace"]),
        (b"\x00\x01\xff", []),
        (b"\x1b[", []),
    ],
)
def test_keys_of_a_terminal(data: bytes, keys: list[str]) -> None:
    assert parse_keys(data) == keys


def test_pages_are_reached_by_number_and_by_tab() -> None:
    assert [pressed(str(number)).page for number in range(len(PAGES))] == list(PAGES)
    state = ViewState()
    for name in (*PAGES[1:], PAGES[0]):
        state.press("tab")
        assert state.page == name
    assert pressed("backtab").page == PAGES[-1]
    assert pressed("9").page == "overview"


def test_the_order_goes_round_both_ways() -> None:
    state = ViewState()
    seen = []
    for _ in ORDERS:
        seen.append(state.order)
        state.press("s")
    assert seen == list(ORDERS)
    assert pressed("S").order == ORDERS[-1]


def test_a_filter_is_typed_kept_and_cleared() -> None:
    typing = pressed("/", "q", "s", "backspace", "p")
    assert (typing.filter, typing.typing, typing.quit, typing.paused) == ("qp", True, False, False)
    typing.press("enter")
    assert (typing.filter, typing.typing) == ("qp", False)
    typing.press("escape")
    assert typing.filter == ""
    assert pressed("/", "a", "escape").filter == ""


@pytest.mark.parametrize(
    ("name", "drill"), [("apis", "api"), ("topics", "topic"), ("clients", "client"), ("brokers", "broker")]
)
def test_enter_drills_in_and_escape_comes_back(name: str, drill: str) -> None:
    state = pressed(str(PAGES.index(name)))
    state.rows = ["a", "b", "c"]
    for key in ("down", "down", "down", "up", "enter"):
        state.press(key)
    assert state.drill == (drill, "b")
    state.press("escape")
    assert (state.drill, state.page) == (None, name)
    state.press("escape")
    assert state.page == "overview"


def test_pausing_help_and_the_end() -> None:
    assert pressed("p").paused
    assert not pressed("p", "space").paused
    assert pressed("?").help
    assert not pressed("?", "x").help
    assert pressed("q").quit


PROGRESS = Progress(10, 1000, 3, 2_000_000_000, 4, None)


def shown(window: Window, state: ViewState, height: int = 40, width: int = 160) -> str:
    out = StringIO()
    console = Console(file=out, width=width, height=height, force_terminal=False)
    console.print(header(window, PROGRESS, "eth0", state, width))
    console.print(page(window, state, height, width))
    console.print(footer(state, width))
    return out.getvalue()


@pytest.fixture(params=["first_steps", "group_classic"])
def window(request: pytest.FixtureRequest) -> Window:
    window = Window(10.0)
    (path,) = (ROOT / "captures" / request.param).glob("capture.pcap*")
    for step in batches(kwsniff.analyze(path), 10):
        window.add(step)
    return window


@pytest.mark.sample(16)
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("height", "width"), [(36, 120), (19, 80), (15, 60)])
def test_names_are_whole_in_every_size(window: Window, name: str, height: int, width: int) -> None:
    """Of what is there, the first column is whole, whatever else has no room."""
    state = ViewState(page=name)
    text = shown(window, state, height, width)
    assert max(map(len, text.splitlines())) <= width
    assert len(text.splitlines()) <= height + 3 + 2
    dimensions = {"overview": ("apis", "topics", "clients")}.get(name, (name,))
    for dimension in dimensions:
        if dimension in ("apis", "topics", "clients", "brokers"):
            busiest = max(window.figures(dimension).items(), key=lambda item: item[1].calls)[0]
            assert f"{busiest} " in text
            assert "calls/s" in text
            assert "p95" in text
    if name == "errors":
        assert all(error in text for error, _, _ in window.error_counts())
        told = window.failures().as_dict()["errors_by_client"]
        assert f"{told[0]['client_id']} " in text
        assert "share" in text
    if name == "calls":
        assert all(call["client_id"] in text for call in window.last_calls(3) if call["client_id"])
    assert "q quit" in text


@pytest.mark.sample(20)
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("height", "width"), [(40, 160), (24, 80), (8, 40), (2, 20)])
def test_every_page_fits_its_lines(window: Window, name: str, height: int, width: int) -> None:
    out = StringIO()
    console = Console(file=out, width=width, height=height, force_terminal=False)
    console.print(page(window, ViewState(page=name), height, width))
    least = {"overview": 20}.get(name, 4)
    assert len(out.getvalue().splitlines()) <= max(height, least)


def test_the_overview_shows_rates_errors_and_what_waits(window: Window) -> None:
    text = shown(window, ViewState(), height=60)
    assert "calls/s" in text
    assert "waiting 3 (oldest 2 s)" in text
    assert "dropped 4" in text
    for dimension in ("apis", "clients", "brokers"):
        busiest = max(window.figures(dimension).items(), key=lambda item: item[1].calls)[0]
        assert busiest in text
    for (error, _, _), _ in window.error_counts().most_common(3):
        assert error in text
    assert f"{window.calls:,} calls" in text


def test_a_filter_leaves_out_the_rest(window: Window) -> None:
    text = shown(window, ViewState(page="apis", filter="METAdata"))
    assert "Metadata" in text
    assert "ApiVersions" not in text
    assert "filter: METAdata" in text


def test_drilling_in_shows_the_last_calls_of_one(window: Window) -> None:
    state = ViewState(page="clients")
    shown(window, state)
    state.press("enter")
    assert state.drill is not None
    text = shown(window, state)
    assert f"last calls of client {state.drill[1]}" in text
    assert "ApiVersions" in text
    others = set(window.figures("clients")) - {state.drill[1]}
    assert all(f" {other} " not in text for other in others)


def test_help_names_every_key(window: Window) -> None:
    text = shown(window, ViewState(help=True))
    assert all(keys in text for keys, _ in HELP)


def test_texts_of_the_wire_cannot_steer_the_terminal() -> None:
    import pyarrow as pa

    batch = many_clients(1)
    at = batch.schema.get_field_index("client_id")
    evil = pa.array(["evil\x1b]0;owned\x07[red]\n"]).dictionary_encode().cast(batch.schema.field(at).type)
    window = Window(10.0)
    window.add({"api_calls": batch.set_column(at, batch.schema.field(at), evil)})
    for name in PAGES:
        text = shown(window, ViewState(page=name, drill=None))
        assert "\x1b" not in text
        assert "\x07" not in text
    assert "evil\\x1b]0;owned\\x07[red]\\n" in shown(window, ViewState(page="clients"))


class Terminal:
    """A tmux session of its own server, with one command in it."""

    def __init__(self, folder: Path, command: list[str], size: tuple[int, int] = (150, 45)) -> None:
        self._tmux = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        line = f"trap : INT; {shlex.join(command)}; echo ended with $?; exec cat"
        self._run("new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), "sh", "-c", line)

    def _run(self, *arguments: str) -> str:
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        for name in ("TMUX", "COLUMNS", "LINES"):  # the size is the window's, not what a runner of tests says
            environment.pop(name, None)
        done = subprocess.run(
            [*self._tmux, *arguments], capture_output=True, text=True, check=True, cwd=ROOT, env=environment
        )
        return done.stdout

    def text(self) -> str:
        return self._run("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        self._run("send-keys", *keys)

    def shows(self, *wanted: str, without: str | None = None) -> str:
        """Waits until the screen has all of these texts, and not the other one."""
        until = time.monotonic() + PATIENCE_S
        while True:
            text = self.text()
            if all(part in text for part in wanted) and (without is None or without not in text):
                return text
            assert time.monotonic() < until, f"{wanted} never appeared in\n{text}"
            time.sleep(0.1)

    def close(self) -> None:
        self._run("kill-server")


@pytest.fixture
def terminal(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Terminal, MockCluster]]:
    needs_capture()
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    with MockCluster(relay="refusing") as cluster:
        command = [sys.executable, "-m", "kwsniff.cli.main", "live", "-i", "lo", "--port", ports_of(cluster)]
        size = getattr(request, "param", (150, 45))
        screen = Terminal(tmp_path, [*command, "--interval", "300ms"], size)
        yield screen, cluster
        screen.close()


@pytest.mark.live
@pytest.mark.slow
def test_the_view_in_a_real_terminal(terminal: tuple[Terminal, MockCluster]) -> None:
    screen, cluster = terminal
    screen.shows("kwsniff live  lo through ", "0.0 calls/s", "[overview]")
    client = threading.Thread(target=talk, args=("rebalance", cluster))
    client.start()
    screen.shows("shop-producer", "billing-1", "orders", "UNSUPPORTED_VERSION")
    screen.press("1")
    screen.shows("[apis]", "Metadata", without="orders")
    screen.press("/", "M", "e", "t", "a", "Enter")
    screen.shows("filter: Meta", "Metadata", without="ApiVersions")
    screen.press("Escape")
    screen.press("3")
    screen.shows("[clients]", "shop-producer")
    screen.press("p")
    screen.shows("PAUSED")
    screen.press("Enter")
    screen.shows("last calls of client ", "ApiVersions")
    screen.press("p")
    screen.shows("last calls of client ", without="PAUSED")
    screen.press("s")
    screen.shows("sort: calls")
    client.join()
    screen.press("q")
    total = cluster.requests().total()
    screen.shows(
        "ended with 0", f"kwsniff: {total} calls in ", "dropped by the kernel: 0, dropped by kwsniff: 0"
    )


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.parametrize("terminal", [(80, 24), (120, 40), (60, 20)], indirect=True, ids=str)
def test_names_and_keys_are_seen_in_terminals_of_any_size(terminal: tuple[Terminal, MockCluster]) -> None:
    screen, cluster = terminal
    screen.shows("kwsniff live  lo", "[overview]")
    client = threading.Thread(target=talk, args=("rebalance", cluster))
    client.start()
    # Of the APIs a small terminal has room for a few: those with trouble come first.
    seen = screen.shows("kwsniff live  lo", "calls/s", "ApiVersions", "shop-producer", "billing-1", "orders")
    assert "…" not in seen, seen
    screen.press("p")
    screen.shows("kwsniff live  PAUSED  lo")
    for key, wanted in (
        ("1", ("[apis]", "Metadata", "p95")),
        ("2", ("[topics]", "orders", "p95")),
        ("3", ("[clients]", "shop-producer", "billing-1", "p95")),
        ("4", ("[brokers]", "127.0.0.1:", "p95")),
        ("5", ("[errors]", "error", "count")),
        ("6", ("[rebalances]", "group", "took")),
        ("8", ("[calls]", "billing-1", "latency")),
    ):
        screen.press(key)
        seen = screen.shows(*wanted, "kwsniff live  PAUSED  lo", "? help  q quit")
        assert "…" not in seen, seen
    screen.press("?")
    assert "…" not in screen.shows("q or Ctrl-C", "end")
    client.join()


@pytest.mark.live
@pytest.mark.slow
def test_ctrl_c_gives_the_terminal_back(terminal: tuple[Terminal, MockCluster]) -> None:
    screen, _ = terminal
    screen.shows("[overview]")
    screen.press("C-c")
    screen.shows("ended with 0", without="[overview]")
    screen.press("echoed again", "Enter")
    screen.shows("echoed again\nechoed again")
