"""Which files an output replaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwsniff.cli.outputs import PAGE, refuse_loss
from kwsniff.errors import UsageError
from tests.house.tree import ROOT

CAPTURE = ROOT / "captures" / "first_steps" / "capture.pcap"


def refused(path: Path, endings: tuple[str, ...], *, read: tuple[str, ...] = (), force: bool = False) -> str:
    try:
        refuse_loss(str(path), endings, read=read, force=force)
    except UsageError as error:
        return str(error).removeprefix(f"{path} ")
    return ""


def test_new_and_empty_files_and_earlier_pages_are_written(tmp_path: Path) -> None:
    assert refused(tmp_path / "new.txt", PAGE) == ""
    (tmp_path / "empty.txt").touch()
    assert refused(tmp_path / "empty.txt", PAGE) == ""
    (tmp_path / "page.HTML").write_text("<html>")
    assert refused(tmp_path / "page.HTML", PAGE) == ""


def test_files_of_other_kinds_stay_but_with_force(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    assert refused(path, PAGE).startswith("exists already and does not end with .html or .htm")
    assert refused(path, PAGE, force=True) == ""


@pytest.mark.parametrize("force", [False, True])
def test_a_capture_that_is_read_is_never_replaced(force: bool, tmp_path: Path) -> None:
    path = tmp_path / "c.pcapng"
    path.write_bytes(CAPTURE.read_bytes())
    (tmp_path / "other.pcapng").symlink_to(path)
    for name in (path, tmp_path / "other.pcapng"):
        assert refused(path, (".pcapng",), read=(str(name),), force=force).startswith("is an input capture")
    assert "in the input directory" in refused(path, (".pcapng",), read=(str(tmp_path),), force=force)


def test_captures_stay_and_slices_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "c.pcapng"
    path.write_bytes(CAPTURE.read_bytes())
    assert refused(path, (".pcapng",)).startswith("is a capture")
    assert refused(path, (".pcapng",), force=True) == ""
    # Section header with an option that says who wrote it (shb_userappl, 4), as slices have it.
    option = b"\x04\x00\x0d\x00kwsniff slice\0\0\0" + bytes(4)
    length = (28 + len(option)).to_bytes(4, "little")
    section = (
        b"\x0a\x0d\x0d\x0a" + length + b"\x4d\x3c\x2b\x1a\x01\x00\x00\x00" + b"\xff" * 8 + option + length
    )
    path.write_bytes(section)
    assert refused(path, (".pcapng",)) == ""
    assert refused(path, PAGE).startswith("is a slice of a capture")
