"""The compiled rooms keep the rules that make hostile bytes harmless, and every one of them is built."""

import importlib
import re
import runpy
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest

from .tree import CORE, ROOT

SOURCES = sorted(CORE.rglob("*.pyx"))
COMPILED = sorted([*SOURCES, *CORE.rglob("*.pxd")])

# The files that may do arithmetic on pointers to captured bytes; their first lines say by which rules.
POINTER_ARITHMETIC = {"bytes/cursor.pxd", "bytes/span.pxd", "bytes/buffer.pxd"}

# Places elsewhere that reach into a buffer of their own by offsets they made. May only become fewer.
_INTO_OWN_MEMORY = {"columns/columns.pyx": 5, "wire/topic_ids.pyx": 3}

# What compiled code may import at run time, beside the standard library.
_PYTHON_IMPORTS = {"kwsniff.core", "kwsniff.errors", "kwsniff.limits"}
_CIMPORTS = {"libc", "libcpp", "cpython", "cython", "kwsniff.core"}

_DECLARED = re.compile(r"\buint8_t\s*\*+\s*(\w+)")
_STRINGS_AND_COMMENTS = re.compile(r'"""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"|#[^\n]*')


def _code(path: Path) -> str:
    return _STRINGS_AND_COMMENTS.sub('""', path.read_text("utf-8"))


def _name(path: Path) -> str:
    return path.relative_to(CORE).as_posix()


def pointer_arithmetic(code: str) -> list[str]:
    """Lines that add to, subtract from or step something declared as a pointer to bytes.

    That is: a name declared `uint8_t*` in this file, or a field `at` or `data` (of Octets and Buffer).
    """
    names = "|".join(sorted(set(_DECLARED.findall(code)))) or "(?!)"
    step = re.compile(rf"((?<![\w.])({names})|\.(at|data))\s*[+-]|&\s*[\w.]*\.(at|data)\[")
    return [line.strip() for line in code.splitlines() if step.search(line)]


def test_the_search_for_pointer_arithmetic_finds_it() -> None:
    code = "cdef f(const uint8_t* p, Octets data):\n    p += 1\n    x = data.at + 4\n    y = data.num + 1\n"
    assert pointer_arithmetic(code) == ["p += 1", "x = data.at + 4"]
    assert pointer_arithmetic(_code(CORE / "bytes/cursor.pxd"))


@pytest.mark.parametrize("path", [p for p in COMPILED if _name(p) not in POINTER_ARITHMETIC], ids=_name)
def test_pointers_to_captured_bytes_move_in_three_files_only(path: Path) -> None:
    found = pointer_arithmetic(_code(path))
    assert len(found) <= _INTO_OWN_MEMORY.get(_name(path), 0), found


@pytest.mark.parametrize("name", sorted(POINTER_ARITHMETIC))
def test_files_that_move_pointers_open_with_their_rules(name: str) -> None:
    head = (CORE / name).read_text("utf-8").split("\n\n")[0]
    assert "Rule" in head
    assert all(line.startswith("#") for line in head.splitlines())


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_a_compiled_module_opens_with_its_directives_and_its_rules(path: Path) -> None:
    first, second, *_ = text = path.read_text("utf-8").splitlines()
    assert first.startswith("# cython: language_level=3, ")
    assert "autotestdict=False" in first
    assert second.startswith('"""')
    if "noexcept nogil" in "\n".join(text):
        assert "boundscheck=False" in first
        assert "wraparound=False" in first
        docstring = path.read_text("utf-8").split('"""')[1]
        assert re.search(r"^(Rules|Rule 1)|^  1\. ", docstring, re.MULTILINE), "its docstring names no rules"


@pytest.mark.parametrize("path", sorted(CORE.rglob("*.pxd")), ids=_name)
def test_a_declaration_file_opens_with_its_directive_and_what_it_declares(path: Path) -> None:
    first, *others = path.read_text("utf-8").splitlines()
    assert first == "# cython: language_level=3"
    said = next(line for line in others if not line.startswith("# cython: "))
    assert re.match(r'# \w|"""\w', said), said


@pytest.mark.parametrize("path", COMPILED, ids=_name)
def test_what_runs_without_the_interpreter_raises_nothing(path: Path) -> None:
    signatures = re.findall(
        r"^(?:cdef|ctypedef) [^\n=]*\([^:=]*?\)[^\n:]*\bnogil\b", _code(path), re.MULTILINE
    )
    assert [signature for signature in signatures if "noexcept nogil" not in signature] == []


@pytest.mark.parametrize("path", COMPILED, ids=_name)
def test_compiled_rooms_know_only_each_other(path: Path) -> None:
    code = _code(path)
    cimported = set(re.findall(r"^\s*from ([\w.]+) cimport", code, re.MULTILINE))
    cimported |= set(re.findall(r"^\s*cimport ([\w.]+)", code, re.MULTILINE))
    assert {name for name in cimported if not _allowed(name, _CIMPORTS)} == set()
    imported = set(re.findall(r"^\s*(?:from|import) (kwsniff[\w.]*)(?: import|$)", code, re.MULTILINE))
    assert {name for name in imported if not _allowed(name, _PYTHON_IMPORTS)} == set()
    heavy = r"^\s*(?:from|import) (pyarrow|numpy|pandas|rich|scapy|pyshark|pyspark)\b"
    assert re.findall(heavy, code, re.MULTILINE) == []


def _allowed(name: str, rooms: set[str]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


def _setup() -> dict[str, Any]:
    """What setup.py finds, without building anything."""
    return runpy.run_path(str(ROOT / "setup.py"))


def test_every_compiled_module_is_built() -> None:
    assert sorted(ROOT / path for path in _setup()["SOURCES"]) == SOURCES
    for path in SOURCES:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        built = importlib.import_module(name).__file__
        assert built is not None
        assert built.endswith(tuple(EXTENSION_SUFFIXES)), name


def test_every_package_is_shipped() -> None:
    rooms = {
        path.parent.relative_to(ROOT).as_posix().replace("/", ".")
        for path in (ROOT / "kwsniff").rglob("*.p[yx]*")
        if path.suffix in (".py", ".pyx", ".pxd")
    }
    elsewhere = {
        "kwsniff.dissectors",
        "kwsniff.dissectors.kafka",
        "kwsniff.dissectors.vendors",
        "pyspark_kafka_capture",
    }
    assert set(_setup()["PACKAGES"]) == rooms | elsewhere


def test_what_python_imports_of_the_core_has_a_stub() -> None:
    wanted = set()
    for path in [*(ROOT / "kwsniff").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        text = path.read_text("utf-8")
        for room, names in re.findall(r"^\s*from kwsniff\.core([\w.]*) import ([\w, ]+)", text, re.MULTILINE):
            folder = CORE.joinpath(*room.split(".")[1:])
            wanted |= {folder / name for name in names.split(", ")} if folder.is_dir() else {folder}
    assert len(wanted) > 5
    assert [
        path for path in sorted(wanted) if not any(path.with_suffix(end).exists() for end in (".pyi", ".py"))
    ] == []
