"""A rule that would take more memory than there is for it is named; what other rules find stands."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from kwsniff.findings import evaluate
from kwsniff.findings.database import lacks_memory, open_database
from kwsniff.findings.finding_rows import find_in_files
from kwsniff.findings.rule import Rule
from kwsniff.tables.stored_files import files_of_tables
from tests.house.tree import ROOT


class OutOfMemoryException(Exception):
    pass


def test_a_rule_that_lacks_memory_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kwsniff.analyze(ROOT / "captures" / "incidents" / "unknown_topic" / "broker.pcap", output=tmp_path)
    files = files_of_tables(tmp_path)
    before = find_in_files(files)
    assert "unknown_topic" in [each.finding for each in before]
    ask = evaluate._rows

    def lacking(database: Any, rule: Rule) -> Sequence[dict[str, Any]]:
        if rule.name == "unknown_topic":
            raise OutOfMemoryException
        return ask(database, rule)

    monkeypatch.setattr(evaluate, "_rows", lacking)
    after = find_in_files(files)
    (told,) = (each for each in after if each.finding == "findings_incomplete")
    assert (told.value, "unknown_topic" in told.text) == (1, True)
    others = {each.finding for each in before} - {"unknown_topic"}
    assert {each.finding for each in after} == others | {"findings_incomplete"}


_SPILLS = (
    "select count(*) from (select i from range(20_000_000) r(i) group by i, hash(i) having count(*) > 1)"
)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", place], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("mounting takes the rights of root")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_query_whose_temporary_files_have_no_room_lacks_memory(small_disk: Path) -> None:
    with open_database(bare=True) as database:
        database.execute(f"set memory_limit = '150MB'; set threads = 1; set temp_directory = '{small_disk}'")
        # DuckDB takes what room there was at first: somebody else may have filled it by now.
        database.execute("set max_temp_directory_size = '10GB'")
        with pytest.raises(Exception, match="No space left") as refused:
            database.execute(_SPILLS).fetchall()
        assert lacks_memory(refused.value)
        assert database.execute("select 7").fetchall() == [(7,)]  # the next rule is asked as ever
    with open_database(bare=True) as database, pytest.raises(Exception, match="syntax") as wrong:
        database.execute("selec")
    assert not lacks_memory(wrong.value)
