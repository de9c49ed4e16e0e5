"""Bytes beside the fields that begin in them: by hand from a Heartbeat."""

from __future__ import annotations

from kwsniff.view.decode import decode
from kwsniff.view.text import hexdump


def test_lines_have_offsets_bytes_characters_and_the_fields_that_begin_there() -> None:
    """Heartbeat 0: header of 8 bytes and client id, group id, generation, member id.

    The text of the client id begins at byte 10 and ends at byte 18, in the next line.
    """
    data = bytes.fromhex("000c000000000007") + b"\0\x08a b~\x1fdef" + b"\0\2g\x7f" + b"\0\0\0\5" + b"\0\1m"
    lines = hexdump(decode(data)).splitlines()
    assert lines[0].startswith(
        "00000000  00 0c 00 00 00 00 00 07  00 08 61 20 62 7e 1f 64  |..........a b~.d|"
    )
    assert lines[1].startswith(
        "00000010  65 66 00 02 67 7f 00 00  00 05 00 01 6d           |ef..g.......m   |"
    )
    first, second = (line.split("|")[-1].split() for line in lines)
    assert "correlation_id=7" in first
    assert any(each.startswith("client_id=") for each in first)
    assert not any(each.startswith("client_id=") for each in second)
    assert any(each.startswith("group_id=") for each in second)
    assert "generation_id=5" in second
    assert len(lines) == 2
