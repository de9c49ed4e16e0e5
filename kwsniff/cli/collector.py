"""Python's collector of cycles: loading a verb makes hundreds of thousands of objects, which stay.

The collector would walk through them 250 times, a tenth of what starting takes.
"""

import gc
from typing import Final

_USUAL: Final = gc.get_threshold()
_WHILE_LOADING: Final = 50_000


def look_less_often() -> None:
    """For verbs that are soon done."""
    gc.set_threshold(_WHILE_LOADING)


def look_as_usual() -> None:
    """For those that go on for long, once all is loaded."""
    gc.freeze()
    gc.set_threshold(*_USUAL)
