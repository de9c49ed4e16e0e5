"""State of the live view, and how keys change it. Independent of the screen."""

from dataclasses import dataclass, field
from typing import Final

from kwsniff.zones import UTC_ZONE, Zone

PAGES: Final = (
    "overview",
    "apis",
    "topics",
    "clients",
    "brokers",
    "errors",
    "rebalances",
    "connections",
    "calls",
)
"""Keys o and 1 to 8, or Tab, select them."""
ORDERS: Final = ("trouble", "calls", "errors", "p50", "p95", "p99", "name")
_DRILLED: Final = {"apis": "api", "topics": "topic", "clients": "client", "brokers": "broker"}


@dataclass(slots=True)
class ViewState:
    """Changed by `press`. `rows`: keys of the rows shown, set by the screen."""

    page: str = "overview"
    order: str = "trouble"
    filter: str = ""
    typing: bool = False
    """True while the user types the filter: keys are text."""
    paused: bool = False
    help: bool = False
    quit: bool = False
    selected: int = 0
    drill: tuple[str, str] | None = None
    """(api, topic, client or broker; its name): the page shows its last calls."""
    rows: list[str] = field(default_factory=list)
    zone: Zone = UTC_ZONE
    """The zone of times on the screen."""

    def press(self, key: str) -> None:
        """One key."""
        if self.typing:
            self._type(key)
        elif self.help:
            self.help = False
        elif key in ("o", "0"):
            self._go("overview")
        elif key.isdecimal() and 0 < int(key) < len(PAGES):
            self._go(PAGES[int(key)])
        elif key in ("tab", "backtab", "right", "left"):
            step = 1 if key in ("tab", "right") else -1
            self._go(PAGES[(PAGES.index(self.page) + step) % len(PAGES)])
        else:
            self._command(key)

    def _command(self, key: str) -> None:
        if key == "q":
            self.quit = True
        elif key in ("p", "space"):
            self.paused = not self.paused
        elif key in ("s", "S"):
            step = 1 if key == "s" else -1
            self.order = ORDERS[(ORDERS.index(self.order) + step) % len(ORDERS)]
        elif key == "/":
            self.typing = True
        elif key in ("?", "h"):
            self.help = True
        elif key in ("up", "k"):
            self.selected = max(self.selected - 1, 0)
        elif key in ("down", "j"):
            self.selected = min(self.selected + 1, max(len(self.rows) - 1, 0))
        elif key == "enter":
            self._drill_in()
        elif key in ("escape", "backspace"):
            self._go_back()

    def _type(self, key: str) -> None:
        if key == "enter":
            self.typing = False
        elif key == "escape":
            self.typing, self.filter = False, ""
        elif key == "backspace":
            self.filter = self.filter[:-1]
        elif len(key) == 1:
            self.filter += key
        elif key == "space":
            self.filter += " "
        self.selected = 0

    def _go(self, page: str) -> None:
        self.page, self.drill, self.selected = page, None, 0

    def _drill_in(self) -> None:
        if self.drill is None and self.page in _DRILLED and self.selected < len(self.rows):
            self.drill = (_DRILLED[self.page], self.rows[self.selected])

    def _go_back(self) -> None:
        if self.drill:
            self.drill = None
        elif self.filter:
            self.filter = ""
        else:
            self._go("overview")
