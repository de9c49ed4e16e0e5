"""What tasks and streams write down comes back as it was, and cannot be more than values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

from kwsniff.core.capture.file_splits import Scan
from kwsniff.errors import CaptureError
from kwsniff.spark.parts import Part
from kwsniff.spark.scan import Routed, Walked
from kwsniff.spark.serialization import dump, load
from kwsniff.spark.shuffle import PacketFile, Stretch

KWSNIFF = Path(__file__).parents[2] / "kwsniff"
SCAN = Scan(24, 90, 100, 2, {"packets_tcp": 2}, 0, 1, None, None, 9, None, 7, b"\x00\xff", False, (0, b""))
FILE = PacketFile("/x", 1, 2)


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -(2**63), 2**64, 1.5, "", "caf\u00e9 \udcff", b"", bytes(range(256)),
        [], [1, [2, "x"]], (), (1, (2, None)), {}, {"a": 1}, {1: "b", ("g", "k"): {"dict": [1]}},
        {"tuple": [1]}, set(), {1, 2}, frozenset({"a"}), Part("groups", "groups/x", 3, 99, frozenset({"id"})),
        SCAN, Routed(FILE, [Walked(0, SCAN, [Stretch(1, 2, 3, 4, True)], 5)], 6),
    ],
    ids=repr,
)  # fmt: skip
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    found = load(dump(value))
    assert found == value
    assert type(found) is type(value)


def test_an_error_comes_back_as_one() -> None:
    found = load(dump(CaptureError("x: is empty")))
    assert (type(found), str(found)) == (CaptureError, "x: is empty")


@pytest.mark.parametrize("value", [object(), Path("x"), ValueError("x"), print, range(3), [Path("x")]])
def test_what_is_no_value_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="is not a plain value"):
        dump(value)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\x80\x04N.", b"{", b"\xff", b'{"Path": ["x"]}', b'{"Part": ["groups"]}', b'{"bytes": "!"}',
        b'{"bytes": 1}', b'{"dict": 1}', b'{"dict": [[[], 1]]}', b"{}", b'{"a": 1, "b": 2}', b'{"tuple": 1}',
        b'{"os.system": ["true"]}', b"[" * 100_000,
    ],
    ids=lambda data: repr(data[:20]),
)  # fmt: skip
def test_bytes_that_are_no_value_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        load(data)


def test_nothing_in_kwsniff_unpickles() -> None:
    """Whoever can write a file that is unpickled can run anything."""
    words = re.compile(r"\b(?:c?pickle|cloudpickle|dill|marshal|shelve|joblib)\b|\beval\(|\bexec\(")
    found = [
        f"{path}: {line.strip()}"
        for path in KWSNIFF.rglob("*.py*")
        if path.suffix in (".py", ".pyx", ".pxd", ".pyi")
        for line in path.read_text("utf-8").splitlines()
        if words.search(line)
    ]
    assert found == []
