"""The numbers of programs and tapes are written down in C and in Python: they must be the same."""

import re
from pathlib import Path

import kwsniff.core
from kwsniff.core.wire import engine, records
from kwsniff.layout.program import Flag, Kind

CORE = Path(next(iter(kwsniff.core.__path__)))


def numbers(file: str, prefix: str) -> dict[str, int]:
    found = re.findall(rf"^    {prefix}(\w+) = (\d+)", (CORE / file).read_text("utf-8"), re.MULTILINE)
    return {name.lower(): int(number) for name, number in found}


def test_kinds():
    assert numbers("wire/tape.pxd", "KIND_") == {kind.name.lower(): kind.value for kind in Kind}


def test_flags():
    assert numbers("wire/tape.pxd", "FLAG_") == {str(flag.name).lower(): flag.value for flag in Flag}


def test_engine_statuses():
    assert numbers("wire/tape.pxd", "ENGINE_") == {
        name: number for number, name in enumerate(engine.STATUSES)
    }


def test_walk_statuses():
    expected = {"ok": 0, "end": 1, "cut": 2, "size_too_small": 3, "unknown_format": 4}
    assert numbers("wire/records.pxd", "BATCH_") == expected
    assert records.STATUSES == ("ok", "end", "cut", "record_size_too_small", "unknown_record_format")
