"""Key logs as damaged text."""

import random

from kwsniff.sources.keylog import LABELS, Sessions
from tests.hostile import mutate


def damaged_lines(seed: int, executions: int, hold: object) -> None:
    """Key logs, damaged as text: what is taken of them is what whole lines say."""
    dice = random.Random(seed)
    labels = [*LABELS, b"EXPORTER_SECRET", b"client_random", b"RSA Session-ID:"]
    for number in range(executions):
        lines = [
            b"%s %s %s"
            % (dice.choice(labels), dice.randbytes(32).hex().encode(), dice.randbytes(48).hex().encode())
            for _ in range(dice.randrange(8))
        ]
        text = bytes(mutate.damaged_bytes(dice, dice.choice((b"\n", b"\r\n")).join([*lines, b"# end"])))
        sessions = Sessions(4)
        if sessions.add_lines(text) > len(text.splitlines()) or len(sessions) > 4:
            raise AssertionError(f"more sessions than lines: execution {number}")
