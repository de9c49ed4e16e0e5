"""Damaged bodies: the verdict of Kafka's own reader, and the same body where it accepts them."""

import pytest

from kwsniff.core.wire.engine import STATUSES, run
from kwsniff.layout.catalog import load_catalog
from kwsniff.layout.program import Program, compile_schema
from kwsniff.view.json_values import document, unknown_tags
from kwsniff.view.tree import fold

from .golden import RENAMED, TREES, in_order, read, renamed, tags

# ReadShareGroupStateSummary v0 gained a field in 4.1 without a new version number: the older layout
# is an alternate.
_ALTERNATE = {("3.9.2", 87, 0, "response")}


@pytest.mark.parametrize("tree", TREES)
def test_every_damaged_body_gets_the_verdict_of_kafka(tree: str):
    catalog = load_catalog()
    programs: dict[tuple[int, int, str], Program] = {}
    verdicts = {"ok": 0, "left over": 0, "error": 0}
    for vector in read(f"mutations-{tree}"):
        key = (vector["api_key"], vector["version"], vector["direction"])
        if key not in programs:
            layout = catalog.layout(vector["api_key"])
            assert layout is not None
            old = (tree, *key) in _ALTERNATE
            message = next(m for m in layout.messages if m.section == key[2] and bool(m.releases) is old)
            programs[key] = compile_schema(message, vector["version"])
        program = programs[key]
        data = bytes.fromhex(vector["body_hex"])
        cells, number, offset, _ = run(program.code, data)
        status = STATUSES[number]
        place = f"{key} {vector['op']} {vector['body_hex'][:80]}"
        if not vector["ok"]:
            verdicts["error"] += 1
            assert status not in ("ok", "bytes_left_over"), place
            continue
        assert status == ("bytes_left_over" if vector["remaining"] else "ok"), place
        assert len(data) - offset == vector["remaining"], place
        verdicts["left over" if vector["remaining"] else "ok"] += 1
        tree_ = fold(program, cells, data)
        names = RENAMED.get((key[0], key[2]), {}) if tree == "3.9.2" else {}
        assert tree_.body is not None
        assert document(tree_.body) == renamed(vector["json"], names), place
        expected = tags(vector.get("unknown_tags", []), names)
        assert in_order(unknown_tags(tree_, data)) == in_order(expected), place
    assert sum(verdicts.values()) == 3208
    assert min(verdicts.values()) > 100
