"""Targets for what is written: texts of findings, and folders that dead writers left."""

import json
import random
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from kwsniff.errors import OutputError
from kwsniff.tables import journal
from kwsniff.tables.folder import recover
from kwsniff.texts import clean, json_text
from tests.hostile import mutate

Hold = Callable[[bytes], Any]
"""Puts an input where reading beyond its end is noticed; gives what is read instead of it."""


class Broken(AssertionError):
    """The core broke a promise; says which, and the execution's number."""


STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""C0, C1, signs of direction, ends of lines, halves of characters: none may reach a terminal."""
_ODD = (
    "\x1b[2J",
    "\x9b",
    "\u202e",
    "\u2028",
    "\ufeff",
    "\ud800",
    "\r\n",
    "\x00",
    "<script>",
    "';--",
    "é",
    "\U0001f600",
)


def findings_text(seed: int, executions: int, hold: Hold) -> None:
    """What findings say: texts from the wire in their words, their SQL, their commands and their JSON."""
    dice = random.Random(seed)
    for number in range(executions):
        text = "".join(
            dice.choice((*_ODD, "a", " ", '"', chr(dice.randrange(0x300)))) for _ in range(dice.randrange(40))
        )
        said = clean(text)
        if STEERING.search(said):
            raise Broken(f"{said!r}: execution {number}")
        row = {text: [text, dice.choice((1, None, float("nan"), float("-inf"), 1 << 70))]}
        written = json_text(row, indent=dice.choice((None, 2)))
        if STEERING.search(written.replace("\n", "")) or "\n" in json_text(row):
            raise Broken(f"{written!r}: execution {number}")
        ((name, (value, _)),) = json.loads(written, parse_constant=_no_constant).items()
        if (name, value) != (text, text):
            raise Broken(f"{text!r} became {value!r}: execution {number}")


def journals(seed: int, executions: int, hold: Hold) -> None:
    """The folder protocol: journals of dead writers, true or damaged. Nothing beside the folder moves, and
    names that both runs have are never gone."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as made:
        for number in range(executions):
            base = Path(made) / str(number)
            folder = base / "out"
            staging = folder / f".kwsniff-{dice.getrandbits(128):032x}"
            for part in (journal.NEW, journal.OLD):
                (staging / part).mkdir(parents=True)
            (base / "beside").write_text("beside")
            names = ["a.parquet", "b.parquet", "c/d.parquet"]
            for name in names[:2]:
                (folder / name).write_text("old")
                (staging / journal.NEW / name).write_text("new")
            plan = journal.Journal.plan(folder, names[:2], [])
            text = json.dumps({"put": plan.put, "remove": plan.remove, "fresh": plan.fresh})
            if dice.random() < 0.7:
                text = text.replace(
                    dice.choice(names[:2]), dice.choice(("../beside", "/etc", "c/../..", "", ".", "x"))
                )
            if dice.random() < 0.3:
                text = mutate.damaged_bytes(dice, text.encode()).decode("latin-1")
            (staging / dice.choice(("journal.json", "undo.json"))).write_text(text)
            with suppress(OutputError):
                recover(folder)
            if (base / "beside").read_text() != "beside" or {path.name for path in base.iterdir()} != {
                "beside",
                "out",
            }:
                raise Broken(f"{text!r} moved what lies beside: execution {number}")
            if not all((folder / name).read_text() in ("old", "new") for name in names[:2]):
                raise Broken(f"{text!r} took a file: execution {number}")
            shutil.rmtree(base)


def _no_constant(word: str) -> None:
    raise Broken(f"{word} is not JSON")
