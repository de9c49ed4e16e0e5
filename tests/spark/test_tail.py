"""What is new in a directory of rotated files: each byte once, in the order of the packets."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import pytest

from kwsniff.errors import CaptureError
from kwsniff.spark.tail import Piece, Progress, read
from tests.traffic.files import Frame, frames, pcap
from tests.traffic.scenes import two_clients

ROWS = frames(two_clients().packets())
EACH = len(pcap(ROWS[:1])) - 24
MANY = 1 << 40


def rows(first: int, last: int) -> list[Frame]:
    return ROWS[first:last]


def bytes_of(pieces: list[Piece]) -> bytes:
    return b"".join(bytes(data) for piece in pieces for data in read(piece))


def shown(pieces: list[Piece]) -> list[tuple[str, int, int | None, bool, bool]]:
    return [(Path(each.path).name, each.begin, each.end, each.opens, each.closes) for each in pieces]


def test_each_byte_comes_once_whatever_a_batch_may_have(tmp_path: Path) -> None:
    """A file is over once a later one exists and all of it was read."""
    data = [pcap(rows(0, 6)), pcap(rows(6, 9))]
    for name, each in zip("ab", data, strict=True):
        (tmp_path / f"{name}.pcap").write_bytes(each)
    progress, pieces = Progress(), []
    while found := progress.next_pieces(str(tmp_path), 100):
        assert sum((each.end or 0) - each.begin for each in found) <= 100
        pieces += found
    assert bytes_of(pieces) == b"".join(data)
    for name, each in zip("ab", data, strict=True):
        of = [piece for piece in pieces if piece.name.endswith(f"{name}.pcap")]
        assert [piece.begin for piece in of] == [0, *(piece.end for piece in of[:-1])]
        assert [piece.opens for piece in of] == [True] + [False] * (len(of) - 1)
        assert [piece.closes for piece in of] == [False] * (len(of) - 1) + [name == "a"]
        assert of[-1].end == len(each)
    last = progress.end(str(tmp_path))
    assert shown(last) == [("b.pcap", len(data[1]), len(data[1]), False, True)]


def test_files_are_read_in_the_order_of_their_first_packets(tmp_path: Path) -> None:
    for name, first in (("b", 0), ("a", 3), ("c", 6)):
        (tmp_path / f"{name}.pcap").write_bytes(pcap(rows(first, first + 3)))
    pieces = Progress().next_pieces(str(tmp_path), MANY)
    assert [Path(each.name).name for each in pieces] == ["b.pcap", "a.pcap", "c.pcap"]
    assert [each.closes for each in pieces] == [True, True, False]


def test_what_a_file_gets_later_is_read_from_there(tmp_path: Path) -> None:
    path, progress = tmp_path / "a.pcap", Progress()
    sizes = []
    for number in (2, 5):
        path.write_bytes(pcap(rows(0, number)))
        sizes.append(path.stat().st_size)
        (piece,) = progress.next_pieces(str(tmp_path), MANY)
        assert (piece.opens, piece.closes) == (number == 2, False)
        assert bytes_of([piece]) == path.read_bytes()[piece.begin :]
    assert [*pairwise(sizes)] == [(piece.begin, piece.end)]
    assert progress.next_pieces(str(tmp_path), MANY) == []


def test_a_piece_is_no_longer_than_it_was_when_it_was_found(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(rows(0, 2)))
    before = path.read_bytes()
    pieces = Progress().next_pieces(str(tmp_path), MANY)
    path.write_bytes(pcap(rows(0, 5)))
    assert bytes_of(pieces) == before


def test_a_file_that_was_compressed_meanwhile_goes_on_where_it_was(tmp_path: Path) -> None:
    path, progress = tmp_path / "a.pcap", Progress()
    path.write_bytes(pcap(rows(0, 2)))
    known = bytes_of(progress.next_pieces(str(tmp_path), MANY))
    whole = pcap(rows(0, 6))
    path.unlink()
    (tmp_path / "a.pcap.gz").write_bytes(gzip.compress(whole))
    (tmp_path / "b.pcap").write_bytes(pcap(rows(6, 8)))
    pieces = progress.next_pieces(str(tmp_path), MANY)
    assert [Path(each.path).name for each in pieces] == ["a.pcap.gz", "b.pcap"]
    assert known + bytes_of(pieces[:1]) == whole


def test_a_name_that_is_used_again_is_another_file(tmp_path: Path) -> None:
    """As `tcpdump -W` does."""
    progress = Progress()
    for name, first in (("a", 0), ("b", 2)):
        (tmp_path / f"{name}.pcap").write_bytes(pcap(rows(first, first + 2)))
    progress.next_pieces(str(tmp_path), MANY)
    (tmp_path / "a.pcap").write_bytes(pcap(rows(4, 6)))
    pieces = progress.next_pieces(str(tmp_path), MANY)
    assert shown(pieces)[-1][:2] == ("a.pcap", 0)
    assert bytes_of(pieces).endswith(pcap(rows(4, 6))[24:])


def test_a_complete_file_that_grows_is_refused_and_one_that_does_not_is_fine(tmp_path: Path) -> None:
    progress = Progress()
    for name, first in (("a", 0), ("b", 2)):
        (tmp_path / f"{name}.pcap").write_bytes(pcap(rows(first, first + 2)))
    progress.next_pieces(str(tmp_path), MANY)
    assert progress.next_pieces(str(tmp_path), MANY) == []
    with (tmp_path / "a.pcap").open("ab") as file:
        file.write(pcap(rows(2, 3))[24:])
    with pytest.raises(CaptureError, match="grew after"):
        progress.next_pieces(str(tmp_path), MANY)
