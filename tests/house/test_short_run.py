"""A short run leaves out what is marked and nothing else, and every room keeps tests in it."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from .tree import ROOT, relative, tracked_files

_MODULE = """
import pytest
from tests import short_run

@pytest.mark.slow
def test_slow():
    pass

def test_quick():
    pass

@pytest.mark.sample(3)
@pytest.mark.parametrize("number", range(100))
def test_case(number):
    pass

@pytest.mark.parametrize("number", range(50))
def test_unmarked(number):
    pass

def test_some(request):
    chosen = short_run.some(request.config, range(1000), 5)
    print("chosen", *chosen)
"""
_SAMPLED = """
import pytest

pytestmark = pytest.mark.sample_tests(2)

def test_1():
    pass

def test_2():
    pass

@pytest.mark.parametrize("number", range(2))
def test_3(number):
    pass

@pytest.mark.slow
def test_4():
    pass

def test_5():
    pass
"""
_CONFTEST = """
from tests import short_run

def pytest_addoption(parser):
    short_run.add_option(parser)

def pytest_report_header(config):
    return short_run.describe(config)

def pytest_collection_modifyitems(config, items):
    short_run.leave_out(config, items)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "test_one.py").write_text(_MODULE, "utf-8")
    (tmp_path / "conftest.py").write_text(_CONFTEST, "utf-8")
    return tmp_path


@pytest.fixture
def sampled(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_two.py").write_text(_SAMPLED, "utf-8")
    (tmp_path / "conftest.py").write_text(_CONFTEST, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n", "utf-8")
    return tmp_path


def ran(checkout: Path, *arguments: str) -> tuple[set[str], list[int]]:
    """Which tests passed, and what `some` chose."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-vs", *arguments],
        cwd=checkout,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("whole run" if "--whole" in arguments else "short run") in done.stdout
    chosen = re.search(r"chosen((?: \d+)+)", done.stdout)
    return set(re.findall(r"::(test_\S+)", done.stdout)), [
        int(n) for n in chosen[1].split()
    ] if chosen else []


@pytest.mark.slow
def test_a_short_run_has_no_slow_test_and_the_cases_that_its_seed_chooses(checkout: Path) -> None:
    names, chosen = ran(checkout, "--randomly-seed=7")
    assert Counter(name.partition("[")[0] for name in names) == {
        "test_quick": 1, "test_some": 1, "test_case": 3, "test_unmarked": 2,
    }  # fmt: skip
    assert len(chosen) == 5
    assert ran(checkout, "--randomly-seed=7") == (names, chosen)
    others, other = ran(checkout, "--randomly-seed=8")
    assert others != names
    assert other != chosen


def test_a_whole_run_has_every_test_and_every_case(checkout: Path) -> None:
    names, chosen = ran(checkout, "--whole")
    assert len(names) == 3 + 100 + 50
    assert chosen == list(range(1000))


@pytest.mark.slow
def test_a_test_that_is_named_runs(checkout: Path) -> None:
    assert ran(checkout, "test_one.py::test_slow")[0] == {"test_slow"}
    assert ran(checkout, f"{checkout / 'test_one.py'}::test_case[99]")[0] == {"test_case[99]"}


@pytest.mark.slow
def test_a_module_has_as_many_tests_as_it_says_where_all_folders_run(sampled: Path) -> None:
    quick = {"test_1", "test_2", "test_3", "test_5"}
    seen = set()
    for seed in range(3):
        names, _ = ran(sampled, f"--randomly-seed={seed}")
        tests = {name.partition("[")[0] for name in names}
        assert len(tests) == 2
        assert ("test_3[0]" in names) == ("test_3[1]" in names)  # with all its cases
        seen |= tests
    assert seen == quick
    assert ran(sampled, "--randomly-seed=7") == ran(sampled, "--randomly-seed=7", "-n", "1")
    of_folder, _ = ran(sampled, "tests/test_two.py")
    assert {name.partition("[")[0] for name in of_folder} == quick
    assert len(ran(sampled, "--whole")[0]) == 6


def test_every_room_keeps_half_of_its_tests_in_a_short_run() -> None:
    slow: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for path in tracked_files():
        if not re.fullmatch(r"tests/.*/test_\w+\.py", relative(path)):
            continue
        room = relative(path.parent)
        module = ast.parse(path.read_text("utf-8"))
        marks = "".join(ast.unparse(node) for node in module.body if _is_mark(node))
        is_slow, most = "mark.slow" in marks, re.search(r"sample_tests\((\d+)\)", marks)
        listed = [
            is_slow or any("mark.slow" in ast.unparse(mark) for mark in node.decorator_list)
            for node in module.body
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        ]
        quick = listed.count(False)
        tests[room] += len(listed)
        slow[room] += len(listed) - (min(quick, int(most[1])) if most else quick)
    assert len(tests) > 20
    assert {room: (slow[room], count) for room, count in tests.items() if slow[room] > count / 2} == {}


def _is_mark(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"


def test_contributing_names_the_tests_of_every_folder() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    section = text.partition("## Which tests to run")[2].partition("\n## ")[0]
    rows = re.findall(r"^- (.+?): (.+)$", section, re.MULTILINE)
    run = {f"tests/{name}" for _, tests in rows for name in re.findall(r"tests/(\w+)", tests)}
    assert [folder for folder in run if not (ROOT / folder).is_dir()] == []
    changed = {name.rpartition("/")[2] for what, _ in rows for name in re.findall(r"`([\w/]+)`", what)}
    folders = {
        path.parent.name
        for path in tracked_files()
        if re.fullmatch(r"(kwsniff/(core/)?\w+/[\w.]+|dissectors/[\w.]+)", relative(path))
    }
    assert folders - {"core"} <= changed
