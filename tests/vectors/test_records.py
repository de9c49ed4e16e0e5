"""Every record set of the golden vectors, equal in full."""

from collections import Counter

from kwsniff.view.records import decode_records

from .golden import read, renamed


def test_every_record_set_equals_what_kafka_says():
    kinds: Counter[str] = Counter()
    for vector in read("records"):
        got = decode_records(bytes.fromhex(vector["hex"])).as_dict()
        expected = renamed({key: vector[key] for key in ("batches", "validBytes", "trailingBytes")}, {})
        assert got["error"] is None, vector["kind"]
        assert {key: got[key] for key in expected} == expected, vector["kind"]
        kinds[vector["kind"]] += 1
    assert sum(kinds.values()) == 41
    assert {"mixed-formats", "partial-tail", "magic0-lz4", "magic2-zstd", "delete-horizon"} <= set(kinds)
