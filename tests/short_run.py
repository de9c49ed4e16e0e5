"""What a short run leaves out: tests marked `slow`, and all but a few cases of the others.

A test marked `sample(n)` keeps n cases, another one MOST_CASES; tests of the house keep all. A module marked
`sample_tests(n)` keeps n of its tests in a run of all folders. `--whole` leaves out nothing. The seed that
pytest-randomly prints chooses: `--randomly-seed=N` runs the same again. A test that the command line names
(`FILE::TEST`) always runs.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest

Case = TypeVar("Case")
MOST_CASES = 2
_WITH_ALL_CASES = "tests/house/"


def add_option(parser: pytest.Parser) -> None:
    """`--whole`."""
    parser.addoption("--whole", action="store_true", help="run slow tests and every case, too")


def describe(config: pytest.Config) -> str:
    """A line for the head of the run."""
    if config.getoption("whole"):
        return "whole run: slow tests and every case, too"
    return "short run: no slow tests, and a sample of the cases of others; --whole runs all"


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes what a short run does not run out of `items`."""
    if config.getoption("whole"):
        return
    out = {item.nodeid for item in items if item.get_closest_marker("slow")}
    if _is_of_all_folders(config):
        out |= _beyond_modules([item for item in items if item.nodeid not in out], _seed(config))
    out |= _beyond_samples(items, _seed(config))
    named = _named_tests(config)
    out = {nodeid for nodeid in out if not nodeid.startswith(named)}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in out])
    items[:] = [item for item in items if item.nodeid not in out]


def some(config: pytest.Config, cases: Sequence[Case], size: int) -> list[Case]:
    """All cases in a whole run, else `size` of them in their order, chosen by the seed."""
    if config.getoption("whole") or len(cases) <= size:
        return list(cases)
    chosen = random.Random(_seed(config)).sample(range(len(cases)), size)
    return [cases[number] for number in sorted(chosen)]


def _beyond_samples(items: Iterable[pytest.Item], seed: int) -> set[str]:
    cases: dict[str, list[str]] = defaultdict(list)
    sizes: dict[str, int] = {}
    for item in items:
        mark = item.get_closest_marker("sample")
        if mark or not item.nodeid.startswith(_WITH_ALL_CASES):
            test = item.nodeid.partition("[")[0]
            cases[test].append(item.nodeid)
            (sizes[test],) = mark.args if mark else (MOST_CASES,)
    out: set[str] = set()
    for test, nodeids in cases.items():
        # A case has the same rank in every test: tests that share cases share what is made for them.
        ranked = sorted(nodeids, key=lambda nodeid: _rank(nodeid.partition("[")[2], seed))
        out |= set(ranked[sizes[test] :])
    return out


def _beyond_modules(items: Iterable[pytest.Item], seed: int) -> set[str]:
    tests: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    sizes: dict[str, int] = {}
    for item in items:
        if mark := item.get_closest_marker("sample_tests"):
            test = item.nodeid.partition("[")[0]
            module = test.partition("::")[0]
            tests[module][test].append(item.nodeid)
            (sizes[module],) = mark.args
    return {
        nodeid
        for module, cases in tests.items()
        for test in sorted(cases, key=lambda test: _rank(test, seed))[sizes[module] :]
        for nodeid in cases[test]
    }


def _is_of_all_folders(config: pytest.Config) -> bool:
    whole = {config.rootpath, *(config.rootpath / path for path in config.getini("testpaths"))}
    return any((config.invocation_params.dir / argument).resolve() in whole for argument in config.args)


def _rank(case: str, seed: int) -> float:
    return random.Random(f"{seed} {case}").random()


def _seed(config: pytest.Config) -> int:
    return int(config.getoption("randomly_seed", 0))  # 0: without pytest-randomly


def _named_tests(config: pytest.Config) -> tuple[str, ...]:
    named = []
    for argument in config.args:
        path, colons, test = argument.partition("::")
        if colons:
            file = (config.invocation_params.dir / path).resolve()
            if file.is_relative_to(config.rootpath):
                named.append(f"{file.relative_to(config.rootpath).as_posix()}::{test}")
    return tuple(named)
