"""The same capture given twice is said to be that; what only looks like it is not."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import kwsniff
from kwsniff.cli.main import run
from tests.traffic.files import frames, pcap
from tests.traffic.scenes import two_clients


def _notes(*captures: Path) -> list[list[str]]:
    return [row["notes"] for row in kwsniff.analyze([*captures]).captures.to_pylist()]


def _shares(first: Path, packets: int) -> str:
    return (
        f"holds packets of {first}, with the same times ({packets} of {packets} that were compared); "
        "what both show counts once"
    )


def test_a_copy_is_said_to_be_one_and_blames_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, copy, packed = (tmp_path / name for name in ("shop.pcap", "copy.pcap", "packed.pcap.gz"))
    for path in (first, copy):
        path.write_bytes(pcap(frames(two_clients().packets())))
    packed.write_bytes(gzip.compress(first.read_bytes()))
    said = f"a copy of {first}, byte for byte: what it holds counts once"
    assert _notes(first, copy, packed) == [[], [said], [said]]
    assert run(["analyze", str(first), str(copy)]) == 0
    assert f"  note: {said}" in capsys.readouterr().out.splitlines()


def test_captures_that_only_look_alike_are_no_copies(tmp_path: Path) -> None:
    """As many packets at the same times, of which one says something else; and a file that goes on."""
    packets = frames(two_clients().packets())
    whole = pcap(packets)
    places = [tmp_path / f"{name}.pcap" for name in ("one", "other", "later")]
    # The last byte is the other's alone, as of a packet that another interface saw changed.
    for place, octets in zip(
        places, (whole, whole[:-1] + bytes([whole[-1] ^ 1]), pcap(packets[5:])), strict=True
    ):
        place.write_bytes(octets)
    notes = _notes(*places)
    assert notes[0] == []
    for said, shared in zip(notes[1:], (24, 24), strict=True):
        assert said == [_shares(places[0], shared)]


def test_files_that_are_cut_off_are_no_copies(tmp_path: Path) -> None:
    whole = pcap(frames(two_clients().packets()))
    cut = [tmp_path / "cut.pcap", tmp_path / "again.pcap"]
    for path in cut:
        path.write_bytes(whole[:-3])
    assert _notes(*cut) == [[], [_shares(cut[0], 24)]]
