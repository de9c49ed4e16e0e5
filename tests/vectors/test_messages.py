"""Every message of the golden vectors, equal in full, through the public function."""

import json

import pytest

import kwsniff

from .golden import RENAMED, TREES, in_order, read, renamed, tags


@pytest.mark.parametrize("tree", TREES)
def test_every_message_equals_what_kafka_says(tree: str):
    count = 0
    layouts = set()
    for vector in read(f"messages-{tree}"):
        key, version, direction = vector["api_key"], vector["version"], vector["direction"]
        message = kwsniff.decode(
            bytes.fromhex(vector["hex"]), direction=direction, api_key=key, api_version=version
        )
        names = RENAMED.get((key, direction), {}) if tree == "3.9.2" else {}
        got = json.loads(message.json())
        place = f"{vector['api']} v{version} {direction} {vector['kind']} {vector['hex'][:80]}"
        assert got["error"] is None, place
        assert (got["api_key"], got["api_version"]) == (key, version), place
        assert got["header"] == renamed(vector["header"], {}), place
        assert got["body"] == renamed(vector["json"], names), place
        unknown = tags(vector.get("header_unknown_tags", []), {}, "header:")
        unknown += tags(vector.get("unknown_tags", []), names)
        assert in_order(got["unknown_tags"]) == in_order(unknown), place
        count += 1
        layouts.add((key, version, direction))
    assert (count, len(layouts)) == {"3.9.2": (3542, 646), "4.5.0-SNAPSHOT": (3458, 618)}[tree]


@pytest.mark.parametrize("release", ["3.6.2", "3.7.1"])
def test_early_access_messages_are_read_with_their_own_layout(release: str):
    fitting = 0
    for vector in read(f"early-access-{release}"):
        message = kwsniff.decode(
            bytes.fromhex(vector["hex"]),
            direction=vector["direction"],
            api_key=vector["api_key"],
            api_version=vector["version"],
        )
        assert message.error is None, vector["hex"]
        if message.as_dict()["body"] == renamed(vector["json"], {}):
            fitting += 1
        else:
            # The same bytes fit the newest layout too; which one was meant cannot be told.
            assert message.program is not None
            assert message.program.releases == "", vector["hex"]
    assert fitting >= 10
