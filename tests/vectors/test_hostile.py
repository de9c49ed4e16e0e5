"""Damaged messages of every layout: nothing raises or reads past the end, the tape is what it promises."""

import json
import random
import struct

import kwsniff
from kwsniff.core.wire import engine
from kwsniff.layout.catalog import load_catalog
from kwsniff.layout.program import Kind
from kwsniff.view.tree import shape_of
from tests.core.guard import flush_against_guard_page

from .golden import read

_BYTES = (0, 1, 2, 0x7F, 0x80, 0x81, 0xFE, 0xFF)
_INSIDE = {Kind.STRING, Kind.BYTES, Kind.UUID}


def damaged(random_: random.Random, whole: bytes) -> bytes:
    data = bytearray(whole)
    if random_.random() < 0.3:
        del data[random_.randrange(len(data)) :]
    for _ in range(random_.randrange(4)):
        if data:
            at = random_.randrange(len(data))
            match random_.randrange(3):
                case 0:
                    data[at] = random_.choice(_BYTES)
                case 1:
                    data[at:at] = bytes(random_.choices(_BYTES, k=random_.randrange(1, 6)))
                case _:
                    del data[at : at + random_.randrange(1, 6)]
    return bytes(data)


def test_damaged_messages_flush_against_a_guard_page():
    random_ = random.Random(20)
    catalog = load_catalog()
    for vector in read("messages-4.5.0-SNAPSHOT"):
        program = catalog.program(vector["api_key"], vector["version"], vector["direction"] == "response")
        assert program is not None
        kinds = shape_of(program).kinds
        for _ in range(2):
            data = damaged(random_, bytes.fromhex(vector["hex"]))
            with flush_against_guard_page(data) as guarded:
                result = engine.run(program.code, guarded)
            assert result == engine.run(program.code, data)
            tape, status, offset, node = result
            assert status < len(engine.STATUSES)
            assert engine.STATUSES[status] not in ("bad_program", "depth_limit", "cells_limit")
            assert offset <= len(data)
            assert node < len(kinds)
            last = 0
            for op, start, value in struct.iter_unpack("<IIq", tape):
                # Offsets never go back, and whatever has a length lies inside the message.
                assert last <= start <= len(data)
                last = start
                if kinds[op] in _INSIDE and value > 0:
                    assert start + value <= len(data)


def test_damaged_messages_always_give_an_answer():
    random_ = random.Random(21)
    for vector in read("messages-3.9.2"):
        data = damaged(random_, bytes.fromhex(vector["hex"]))
        message = kwsniff.decode(
            data, direction=vector["direction"], api_key=vector["api_key"], api_version=vector["version"]
        )
        answer = json.loads(message.json())
        if answer["error"] is not None:
            assert 0 <= answer["error"]["offset"] <= max(len(data), 4)
        assert message.text()
        assert message.hexdump() or not data


def test_the_tree_has_a_leaf_for_every_cell_with_a_value():
    for vector in read("messages-4.5.0-SNAPSHOT"):
        data = bytes.fromhex(vector["hex"])
        message = kwsniff.decode(
            data, direction=vector["direction"], api_key=vector["api_key"], api_version=vector["version"]
        )
        program = message.program
        assert program is not None
        kinds = shape_of(program).kinds
        cells = [
            op
            for op, _, value in struct.iter_unpack("<IIq", engine.run(program.code, data)[0])
            if kinds[op] not in (Kind.END, Kind.TAGS, Kind.STRUCT, Kind.ARRAY)
            or (value < 0 and kinds[op] != Kind.TAGS)
        ]
        leaves = 0
        for _, node in message.tree.walk():
            if node.is_leaf:
                in_array = kinds[node.op] == Kind.ARRAY_STRING and isinstance(node.value, list)
                leaves += 1 + (len(node.value) if in_array and isinstance(node.value, list) else 0)
        assert leaves == len(cells)
