"""Numbers far ahead that their sender never came to."""

from __future__ import annotations

import pytest

from tests.core.hand import ACK, FIN, Talk, ask, assert_answered, connection_of, tables_of


@pytest.mark.parametrize("flags", [FIN | ACK, ACK])
@pytest.mark.parametrize("ahead", [70_000, 2**28])
@pytest.mark.parametrize("from_client", [True, False])
def test_a_number_that_its_sender_never_came_to_ends_nothing(
    from_client: bool, ahead: int, flags: int
) -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.send(from_client, flags=flags, seq=talk.next[from_client] + ahead)
    ask(talk, 2)
    talk.send(True, flags=FIN | ACK)
    talk.send(False, flags=FIN | ACK)
    talk.send(True)
    tables = tables_of(talk.packets)
    assert_answered(tables, 1, 2)
    (row,) = tables["anomalies"]
    assert (row["name"], row["frame"]) == ("segment_out_of_window", 6)
    row = connection_of(tables)
    assert (row["end"], row["closed_by"], row["close_frame"]) == ("fin", "client", 9)
    assert (row["client_missing_bytes"], row["broker_missing_bytes"]) == (0, 0)


def test_a_fin_behind_many_lost_bytes_ends_the_stream() -> None:
    talk = Talk().open()
    ask(talk, 1)
    talk.next[False] += 200_000
    talk.send(False, flags=FIN | ACK)
    talk.send(True, flags=FIN | ACK)
    talk.send(False)
    row = connection_of(tables_of(talk.packets))
    assert (row["end"], row["closed_by"], row["broker_missing_bytes"]) == ("fin", "broker", 200_000)
