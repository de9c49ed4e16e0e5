"""Schemas and early access against bytes Kafka's own classes wrote (the APIs' messages: tests/vectors)."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kwsniff.core.wire.engine import run
from kwsniff.layout.catalog import load_catalog
from kwsniff.layout.program import Program

# Random unknown tags of the old tree meet tags that were defined later.
_TAGS_DEFINED_LATER = {
    ("ConsumerGroupCurrentMemberAssignmentValue", 0),
    ("OffsetCommitValue", 4),
    ("RemoteLogSegmentMetadataRecord", 0),
}


def _lines(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def _fits(program: Program, data: str) -> bool:
    return run(program.code, bytes.fromhex(data))[1] == 0


def test_schemas_fit_what_kafka_wrote(shared: Path) -> None:
    catalog = load_catalog()
    count = 0
    for tree in ("3.9.2", "4.5.0-SNAPSHOT"):
        for line in _lines(shared / "vectors" / tree / "data"):
            name, version = line["name"], int(line["version"])
            program = catalog.schema(name, version)
            assert program is not None, line
            programs = (program, *catalog.schema_alternates(name, version))
            if line["kind"] == "tags" and (name, version) in _TAGS_DEFINED_LATER:
                continue
            assert any(_fits(candidate, line["hex"]) for candidate in programs), (tree, line)
            count += 1
    assert count > 1200


def test_early_access_fits_an_alternate(shared: Path) -> None:
    catalog = load_catalog()
    helped = 0
    for release in ("3.6.2", "3.7.1"):
        for line in _lines(shared / "vectors" / "early-access" / release):
            key, version, direction = line["api_key"], line["version"], int(line["direction"] == "response")
            program = catalog.program(key, version, direction)
            assert program is not None
            if not _fits(program, line["hex"]):
                alternates = catalog.alternates(key, version, direction)
                assert any(_fits(alternate, line["hex"]) for alternate in alternates), line
                helped += 1
    assert helped > 0
