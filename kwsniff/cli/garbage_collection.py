"""Python's garbage collector: loading a verb makes hundreds of thousands of long-lived objects.

The collector would walk through them 250 times, a tenth of the start time.
"""

import gc
from typing import Final

_USUAL: Final = gc.get_threshold()
_WHILE_LOADING: Final = 50_000


def look_less_often() -> None:
    """For short-running verbs."""
    gc.set_threshold(_WHILE_LOADING)


def look_as_usual() -> None:
    """For long-running verbs, once everything is loaded."""
    gc.freeze()
    gc.set_threshold(*_USUAL)
