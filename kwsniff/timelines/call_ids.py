"""The ids of a few calls of a row, within a limit."""

from typing import Final

MOST_CALL_IDS: Final = 20


def note_call(call_ids: list[int], call_id: int) -> None:
    """The first calls, and the last one."""
    if len(call_ids) < MOST_CALL_IDS:
        call_ids.append(call_id)
    else:
        call_ids[-1] = call_id
