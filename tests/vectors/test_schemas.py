"""Every schema vector, equal in full."""

from collections import Counter

import pytest

from kwsniff.view.bare_bodies import decode_schema

from .golden import TREES, in_order, read, renamed, tags


@pytest.mark.parametrize("tree", TREES)
def test_every_schema_equals_what_kafka_says(tree: str):
    results: Counter[str] = Counter()
    for vector in read(f"schemas-{tree}"):
        name, version = vector["name"], vector["version"]
        got = decode_schema(bytes.fromhex(vector["hex"]), name, version)
        unknown = vector.get("unknown_tags", [])
        place = f"{name} v{version} {vector['kind']} {vector['hex'][:80]}"
        assert got["error"] is None, place
        assert got["body"] == renamed(vector["json"], {}), place
        assert in_order(got["unknown_tags"]) == in_order(tags(unknown, {})), place
        results["equal"] += 1
    assert results == {"3.9.2": {"equal": 546}, "4.5.0-SNAPSHOT": {"equal": 724}}[tree]
