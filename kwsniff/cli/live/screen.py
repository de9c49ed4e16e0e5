"""The live view: pages that are redrawn every interval and after each key."""

import time
from contextlib import ExitStack
from typing import Self

from rich.console import Console, Group
from rich.live import Live

from kwsniff.cli.live.header import footer, header, wrong
from kwsniff.cli.live.keys import Keys
from kwsniff.cli.live.model import ViewState
from kwsniff.cli.live.pages import page
from kwsniff.live.batches import Batches
from kwsniff.live.session import Progress, Session
from kwsniff.live.window import Window
from kwsniff.texts import in_bytes
from kwsniff.zones import UTC_ZONE, Zone


class Screen:
    """Uses the terminal's alternate screen; the old content returns at the end."""

    def __init__(self, window: Window, session: Session, interval: float, zone: Zone = UTC_ZONE) -> None:
        self.interval = interval
        self.state = ViewState(zone=zone)
        self._window = window
        self._held: tuple[Window, Progress] | None = None
        self._session = session
        source = session.source
        self._about = source.interface + ("" if source.capture else f" through {source.tool}")
        self._started = time.monotonic()
        self._progress = session.progress()
        self._console = Console()
        self._keys = Keys()
        self._due = 0.0
        self._late_brokers: set[str] = set()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._live = self._stack.enter_context(
            Live(console=self._console, screen=True, auto_refresh=False, redirect_stderr=False)
        )
        self._stack.enter_context(self._keys)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def pause(self, session: Session, seconds: float) -> bool:
        """Waits, redraws after a key; returns whether the capture has ended."""
        if not self._keys.are_there:
            return session.wait(seconds)
        if session.wait(0):
            return True
        for key in self._keys.wait(seconds):
            self.state.press(key)
            self._due = 0.0
        if self._due == 0.0:
            self._draw()
        return self.state.quit or session.wait(0)

    def show(self, batches: Batches, progress: Progress, *, last: bool) -> None:
        """Redraws when it is due, and immediately when responses of another broker become overdue."""
        self._progress = progress
        self._window.names = self._session.late_topics()
        late = {*self._window.overdue.by_dimension["brokers"]}
        new, self._late_brokers = late - self._late_brokers, late
        if (new or time.monotonic() >= self._due) and not last:
            self._draw()

    def _draw(self) -> None:
        if self.state.paused and self._held is None:
            self._held = self._window.frozen(), self._progress
        elif not self.state.paused:
            self._held = None
        window, progress = self._held or (self._window, self._progress)
        uptime = time.strftime("%H:%M:%S", time.gmtime(time.monotonic() - self._started))
        about = f"{self._about}  {uptime}  {in_bytes(progress.capture_bytes)}"
        width, height = self._console.size
        bottom = footer(self.state, width)
        room = height - 4 - bottom.plain.count("\n") - len(wrong(window, width, self.state.zone))
        body = page(window, self.state, room, width)
        top = header(window, progress, about, self.state, width)
        self._live.update(Group(top, body, bottom), refresh=True)
        self._due = time.monotonic() + self.interval
