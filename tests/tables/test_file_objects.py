"""File objects in the place of paths."""

import gzip
import io
from pathlib import Path
from typing import IO

import pytest

import kwsniff

CAPTURE = Path(__file__).parents[2] / "captures" / "first_steps" / "capture.pcap"
DATA = CAPTURE.read_bytes()


def numbers(given: object) -> list[int]:
    return kwsniff.analyze(given).api_calls["call_id"].to_pylist()  # type: ignore[arg-type]


WANTED = numbers(CAPTURE)


class OnlyRead(io.RawIOBase):
    """As of a network: it cannot go back, and gives less than it is asked for."""

    def __init__(self, data: bytes) -> None:
        self._left = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        return self._left.read(min(size, 1000) if size >= 0 else -1)


@pytest.mark.parametrize(
    "file", [io.BytesIO(DATA), OnlyRead(DATA), io.BytesIO(gzip.compress(DATA))], ids=["bytes", "raw", "gzip"]
)
def test_a_file_object_is_a_capture(file: IO[bytes]) -> None:
    assert numbers(file) == WANTED


def test_an_open_file_keeps_its_name_and_stays_open() -> None:
    with CAPTURE.open("rb") as file:
        analysis = kwsniff.analyze(file)
        assert not file.closed
    assert analysis.captures["capture"].to_pylist() == [str(CAPTURE)]
    assert analysis.api_calls["capture"].unique().to_pylist() == [str(CAPTURE)]


def test_it_is_read_from_where_it_stands() -> None:
    file = io.BytesIO(b"header" + DATA)
    file.seek(6)
    assert numbers(file) == WANTED


def test_objects_and_paths_are_read_as_one(tmp_path: Path) -> None:
    # The first 60 packets, of 24 bytes and then 16 in front of each, and the rest of them.
    at = 24
    for _ in range(60):
        at += 16 + int.from_bytes(DATA[at + 8 : at + 12], "little")
    later = tmp_path / "later.pcap"
    later.write_bytes(DATA[:24] + DATA[at:])
    assert numbers([later, io.BytesIO(DATA[:at])]) == WANTED


def test_batches_come_of_file_objects_too() -> None:
    assert sum(batch.num_rows for batch in kwsniff.calls(io.BytesIO(DATA))) == len(WANTED)


def test_one_given_twice_is_read_once() -> None:
    file = io.BytesIO(DATA)
    analysis = kwsniff.analyze([file, file])
    assert analysis.api_calls.num_rows == len(WANTED)
    assert analysis.summary["unread"] == [
        {"capture": "file object 1", "reason": "is given twice; kwsniff reads it once"}
    ]


@pytest.mark.parametrize(
    ("file", "error", "why"),
    [
        (
            io.StringIO("text"),
            kwsniff.UsageError,
            "file object 1 is open in text mode; open it with mode 'rb'",
        ),
        (io.BytesIO(), kwsniff.CaptureError, "file object 1: is empty"),
        (io.BytesIO(b"no capture"), kwsniff.CaptureError, "file object 1: is not a capture"),
        (io.BytesIO(DATA[:10]), kwsniff.CaptureError, "file object 1: ends before its first packet"),
    ],
)
def test_what_is_no_capture_is_told_by_its_place(
    file: IO[bytes], error: type[kwsniff.KwsniffError], why: str
) -> None:
    with pytest.raises(error, match=why):
        kwsniff.analyze(file)


def test_a_closed_file_is_told() -> None:
    file = io.BytesIO(DATA)
    file.close()
    with pytest.raises(kwsniff.CaptureError, match=r"cannot read: .*closed"):
        kwsniff.analyze(file)
