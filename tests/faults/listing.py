"""The list of faults, read from `lists/*.toml`, and where their texts stand."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

LISTS = Path(__file__).parent / "lists"
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Fault:
    """`before` stands once in `file`. It is an expression, or whole lines; `after` takes its place. `rooms`
    are the tests that should notice, as pytest takes them."""

    number: int
    file: str
    before: str
    after: str
    changes: str
    rooms: tuple[str, ...]


def load_faults(folder: Path = LISTS) -> tuple[Fault, ...]:
    """Every fault, by its number. ValueError: a number is used twice, or a fault changes nothing."""
    found: dict[int, Fault] = {}
    for path in sorted(folder.glob("*.toml")):
        for entry in tomllib.loads(path.read_text("utf-8"))["file"]:
            for item in entry["faults"]:
                rooms = tuple(item.get("rooms", entry["rooms"]))
                fault = Fault(
                    item["number"], entry["path"], item["before"], item["after"], item["changes"], rooms
                )
                if fault.number in found or fault.number <= 0:
                    raise ValueError(f"{path.name}: the number {fault.number} is not free")
                if fault.before == fault.after:
                    raise ValueError(f"{path.name}: fault {fault.number} changes nothing")
                found[fault.number] = fault
    return tuple(found[number] for number in sorted(found))


def find_stale(faults: Iterable[Fault], root: Path = ROOT) -> list[str]:
    """Faults whose text is gone, stands more than once, or whose tests are gone, one line each."""
    texts: dict[str, str | None] = {}
    stale = []
    for fault in faults:
        if fault.file not in texts:
            path = root / fault.file
            texts[fault.file] = path.read_text("utf-8") if path.is_file() else None
        text = texts[fault.file]
        if text is None:
            stale.append(f"{fault.number}: {fault.file} is gone")
        elif text.count(fault.before) != 1:
            stale.append(f"{fault.number}: {fault.file} has {text.count(fault.before)} times: {fault.before}")
        if not fault.rooms:
            stale.append(f"{fault.number}: no tests are named")
        stale += [
            f"{fault.number}: no tests in {room}"
            for room in fault.rooms
            if not (root / room.partition("::")[0]).exists()
        ]
    return stale


def faults_of_files(faults: Iterable[Fault]) -> Mapping[str, list[Fault]]:
    """The faults of each file."""
    files: dict[str, list[Fault]] = {}
    for fault in faults:
        files.setdefault(fault.file, []).append(fault)
    return files
