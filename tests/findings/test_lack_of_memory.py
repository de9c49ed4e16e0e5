"""A rule that would take more memory than there is for it is named; what other rules find stands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from kwsniff.findings import evaluate
from kwsniff.findings.rule import Rule
from kwsniff.findings.table import find_in_files
from kwsniff.findings.tables import files_of_tables
from tests.house.tree import ROOT


class OutOfMemoryException(Exception):
    pass


class IOException(Exception):
    pass


@pytest.mark.parametrize(
    "error",
    [OutOfMemoryException(), IOException('Could not write file "/tmp/x.tmp": No space left on device')],
)
def test_a_rule_that_lacks_memory_is_named(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kwsniff.analyze(ROOT / "captures" / "incidents" / "unknown_topic" / "broker.pcap", output=tmp_path)
    files = files_of_tables(tmp_path)
    before = find_in_files(files)
    assert "unknown_topic" in [each.finding for each in before]
    ask = evaluate._rows

    def lacking(database: Any, rule: Rule) -> Sequence[dict[str, Any]]:
        if rule.name == "unknown_topic":
            raise error
        return ask(database, rule)

    monkeypatch.setattr(evaluate, "_rows", lacking)
    after = find_in_files(files)
    (told,) = (each for each in after if each.finding == "findings_incomplete")
    assert (told.value, "unknown_topic" in told.text) == (1, True)
    others = {each.finding for each in before} - {"unknown_topic"}
    assert {each.finding for each in after} == others | {"findings_incomplete"}
