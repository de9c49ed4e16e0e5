"""One writer at a time into a store that has neither locks nor renames.

Every run writes its own claim there, a small file that it rewrites every few seconds, and then checks
for others. A run that finds another live claim withdraws: two simultaneous runs both withdraw and retry, so
that at most one ever finds only its own claim. A claim that stays unchanged for longer than the rewrite
interval allows belongs to a dead run and is removed. Clocks and process ids are not compared.
The store must list files right after they are written: S3, Cloud Storage, Azure and HDFS do.
"""

import json
import random
import threading
import time
from contextlib import suppress
from typing import Final, Self

from kwsniff.errors import OutputError
from kwsniff.spark.storage import Place

FOLDER: Final = "_kwsniff.claims"
BEAT_S: Final = 3.0
PATIENCE_S: Final = 20.0
_LOOK_S: Final = 1.0
_AGAIN_S: Final = 0.1
_TRIES: Final = 5
_ASKS, _WRITES = "asks", "writes"


class Claim:
    """A context with exclusive write access among kwsniff's runs. Raises OutputError if another run writes
    there."""

    def __init__(self, place: Place, run: str) -> None:
        self._place = place
        self._path = f"{FOLDER}/{run}.json"
        self._state = _ASKS
        self._beats = 0
        self._dead: set[str] = set()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._beat, name="kwsniff-claim", daemon=True)

    def __enter__(self) -> Self:
        try:
            for _ in range(_TRIES):
                if self._ask():
                    return self
                self._place.remove([self._path])
                time.sleep(random.uniform(0.2, BEAT_S))  # noqa: S311 - two simultaneous writers retry at different times
        except BaseException:
            self.close()
            raise
        raise self._explain_taken()

    def __exit__(self, *_: object) -> None:
        self.close()

    def check(self) -> None:
        """Raises OutputError where another run held this one for dead, and took its place."""
        others = {path for path, text in self._others().items() if _state(text) == _WRITES}
        if self._place.size(self._path) is None or others - self._dead:
            raise OutputError(
                f"{self._place.root}: another kwsniff took over, since this one was silent for too long; "
                "nothing was changed there"
            )

    def close(self) -> None:
        """Withdraws it."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._place.remove([self._path])

    def _ask(self) -> bool:
        """Whether there is no other claim."""
        self._write()
        if not self._thread.is_alive():
            self._thread.start()
        others = self._others()
        seen = dict(others)
        until = time.monotonic() + PATIENCE_S
        while others and time.monotonic() < until:
            if any(_state(text) == _WRITES and seen[path] != text for path, text in others.items()):
                raise self._explain_taken()
            if any(seen.get(path) != text for path, text in others.items()):
                return False
            time.sleep(_LOOK_S)
            others = self._others()
        self._dead |= set(others)
        self._place.remove(others)
        self._state = _WRITES
        self._write()
        return not self._others()

    def _others(self) -> dict[str, str]:
        # The own one is not read: it may be written at this moment.
        found = {path: self._read(path) for path in self._place.files(FOLDER) if path != self._path}
        return {path: text for path, text in found.items() if text is not None}

    def _read(self, path: str) -> str | None:
        """What a claim says. Some stores fail while its writer puts a new one in its place."""
        for _ in range(_TRIES):
            with suppress(OSError, ValueError):  # pyarrow has either for what changes while it is read
                return self._place.read_text(path)
            time.sleep(_AGAIN_S)
        return self._place.read_text(path)

    def _beat(self) -> None:
        while not self._over.wait(BEAT_S):
            try:
                if self._state == _ASKS or self._place.size(self._path) is not None:
                    self._write()  # one that another removed stays away
            except OSError:  # the next one may go through
                continue

    def _write(self) -> None:
        with self._lock:
            self._beats += 1
            self._place.write_text(self._path, json.dumps({"state": self._state, "beat": self._beats}))

    def _explain_taken(self) -> OutputError:
        return OutputError(
            f"{self._place.root}: another kwsniff is writing there; "
            "wait for it or choose another folder with -o"
        )


def _state(text: str) -> str:
    try:
        return str(json.loads(text)["state"])
    except (ValueError, KeyError, TypeError):
        return _ASKS
