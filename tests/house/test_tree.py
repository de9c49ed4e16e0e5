"""What any file of the project must hold to: sizes, names, no word of the machine it was written on."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from .tree import CORE, ROOT, relative, tracked_files

PYTHON_LINES = 400
FUNCTION_LINES = 50
COMPILED_LINES = 400

# One state machine each; taking them apart would cost calls in the hot path or hide the order of things.
LONG_COMPILED = {
    "analyzer.pyx": 766,
    "engine.pyx": 600,
    "facts.pyx": 470,
    "kafka_connection.pxd": 415,
    "packets.pyx": 520,
    "rows.pyx": 445,
    "state.pyx": 465,
    "streams.pyx": 596,
    "columns.pyx": 450,
}

# Compiled functions that are longer than FUNCTION_LINES, and how long they may be.
LONG_FUNCTIONS = {
    "analyzer.close_capture": 59,  # what a capture was, one fact per line
    "engine.run_program": 301,  # the decoder's loop: one branch per operation, and locals kept in registers
    "partitions.write_partition": 55,  # one line per column
    "streams.take_payload": 60,  # in order, early, late, far away: the cases of one comparison
    "streams.take_segment": 101,  # the order of these steps is the rule
    "transport.write_connection": 67,  # one line per column
}

NETWORKS = ("clocks", "incidents")  # folders of captures; see captures/README.md
FIELD = "field"  # captures in one folder, with one list of what is true of them
_NO_ROOMS = {"util", "utils", "helper", "helpers", "manager", "managers", "common", "misc"}

# Put together here so that this file does not name them.
_MACHINE = re.compile(
    "|".join(
        [
            r"(?<![\w.])/" + "work/",
            "/t" + r"mp/kw\b",
            r"\." + "library",
            r"(?<![\w.])/(home|root|Users)/",
            r"\bpyenv\b",
        ]
    )
)


def _text(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        return None


def _python() -> list[Path]:
    return [path for path in tracked_files() if path.suffix == ".py"]


def test_no_file_names_the_machine_it_was_written_on() -> None:
    found = []
    for path in tracked_files():
        text = _text(path)
        for match in _MACHINE.finditer(text or ""):
            line = (text or "")[: match.start()].count("\n") + 1
            found.append(f"{relative(path)}:{line}: {match[0]}")
    assert found == []


def test_modules_stay_small() -> None:
    long = [path for path in _python() if len(path.read_text("utf-8").splitlines()) > PYTHON_LINES]
    long += [
        path
        for path in CORE.rglob("*.p[yx][xd]")
        if len(path.read_text("utf-8").splitlines()) > LONG_COMPILED.get(path.name, COMPILED_LINES)
    ]
    assert [relative(path) for path in long] == []


def test_functions_stay_small() -> None:
    long = []
    for path in (ROOT / "kwsniff").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.end_lineno:
                size = node.end_lineno - node.lineno + 1
                if size > FUNCTION_LINES:
                    long.append(f"{relative(path)}:{node.lineno} {node.name}: {size} lines")
    assert long == []


_COMPILED_FUNCTION = re.compile(r"^( *)(?:cdef|cpdef|def) [^=\n]*\(", re.MULTILINE)


def compiled_functions(text: str) -> Iterator[tuple[str, int]]:
    """Name and lines of each function of a Cython file, its signature and docstring among them."""
    lines = text.splitlines()
    for match in _COMPILED_FUNCTION.finditer(text):
        first = text.count("\n", 0, match.start())
        indent = len(match[1])
        size = 0
        for line in lines[first:]:
            is_inside = (
                not line.strip() or len(line) - len(line.lstrip()) > indent or line.strip().startswith(")")
            )
            if size and not is_inside:
                break
            size += 1
        while not lines[first + size - 1].strip() or lines[first + size - 1].strip().startswith("#"):
            size -= 1
        yield match[0].split("(")[0].split()[-1].lstrip("*"), size


def test_lengths_of_compiled_functions_are_measured() -> None:
    text = "cdef int one(int a,\n             int b) noexcept nogil:\n    return 1\n\n\n"
    text += "# -- next --\n\ndef two(\n    a\n):\n    pass\n"
    assert list(compiled_functions(text)) == [("one", 3), ("two", 4)]


def test_compiled_functions_stay_small() -> None:
    long = {
        f"{path.stem}.{name}": size
        for path in CORE.rglob("*.p[yx][xd]")
        for name, size in compiled_functions(path.read_text("utf-8"))
        if size > FUNCTION_LINES
    }
    assert {name: size for name, size in long.items() if size > LONG_FUNCTIONS.get(name, 0)} == {}
    assert set(LONG_FUNCTIONS) <= set(long), "these are short by now"


def test_no_module_is_a_drawer_for_anything() -> None:
    assert [relative(path) for path in _python() if set(path.with_suffix("").parts) & _NO_ROOMS] == []


def test_every_module_says_what_it_is_for() -> None:
    modules = sorted((ROOT / "kwsniff").rglob("*.py"))
    assert modules
    silent = [path for path in modules if not ast.get_docstring(ast.parse(path.read_text("utf-8")))]
    assert [relative(path) for path in silent] == []


@pytest.mark.parametrize(
    "folder",
    sorted(
        path
        for path in (ROOT / "captures").iterdir()
        if path.is_dir() and path.name not in (*NETWORKS, FIELD)
    ),
    ids=lambda path: path.name,
)
def test_a_capture_says_what_it_is(folder: Path) -> None:
    about = tomllib.loads((folder / "about.toml").read_text("utf-8"))
    assert {"purpose", "shows", "file", "recorded", "command", "client", "broker", "requests"} <= set(about)
    assert (folder / about["file"]).is_file()
    others = ("witness", "measured", "records", "handovers", "proxied", "keylog")
    beside = [about[key] for key in others if key in about]
    wanted = {"about.toml", about["file"], *beside}
    assert {path.name for path in folder.iterdir()} == wanted
    assert f"| `{folder.name}` |" in (ROOT / "captures" / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    "folder",
    sorted(path for kind in NETWORKS for path in (ROOT / "captures" / kind).iterdir()),
    ids=lambda path: path.name,
)
def test_a_capture_of_two_places_says_what_it_is(folder: Path) -> None:
    about = tomllib.loads((folder / "about.toml").read_text("utf-8"))
    assert {"purpose", "did", "recorded", "command", "clients", "broker"} <= set(about)
    witness = {about["witness"]} if "witness" in about else set()  # none where others talked to the brokers
    wanted = {"about.toml", *witness, *about["files"].values()}
    assert {path.name for path in folder.iterdir()} == wanted
    assert f"| `{folder.name}` |" in (ROOT / "captures" / "README.md").read_text("utf-8")


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page in (path for path in tracked_files() if path.suffix == ".md"):
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8")):
            there = target.startswith("http") or (page.parent / target).exists()
            broken += [] if there else [f"{relative(page)}: {target}"]
    assert broken == []
