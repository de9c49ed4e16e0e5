"""What brokers say of an error in words stands with that error, also where structs inside have words, too."""

from __future__ import annotations

from pathlib import Path

from tests.pipeline.compare import analyzed_packets
from tests.traffic.exchange import Exchange, Facts, exchange
from tests.traffic.scenes import one_by_one
from tests.traffic.wire import Encoder

_DELETE_ACLS = 31


def acls_deleted(filters: list[tuple[int, str | None, list[tuple[int, str | None]]]]) -> Exchange:
    """DeleteAcls 1: of each filter its error and words, and those of the ACLs that it matched."""
    request = Encoder(False).count(0)
    response = Encoder(False).i32(0).count(len(filters))
    for code, words, matching in filters:
        response.i16(code).string(words).count(len(matching))
        for inner, inner_words in matching:
            response.i16(inner).string(inner_words)
            response.i8(2).string("orders").i8(3).string("User:ann").string("*").i8(3).i8(3)
    return exchange((_DELETE_ACLS, 1, 1, "admin"), request.data, response.data, Facts())


def test_each_error_has_its_own_words(tmp_path: Path) -> None:
    call = acls_deleted(
        [
            (42, "outer one", [(42, "inner"), (0, None), (31, None), (0, "of no error")]),
            (54, None, [(42, "inner two")]),
            (29, "outer three", []),
        ]
    )
    rows = analyzed_packets(tmp_path, one_by_one([call]).packets())["error_codes"]
    assert {("matching_acls" in row["path"], row["error_code"], row["error_message"]) for row in rows} == {
        (False, 42, "outer one"),
        (True, 42, "inner"),
        (True, 31, None),
        (False, 54, None),
        (True, 42, "inner two"),
        (False, 29, "outer three"),
    }
    assert len(rows) == 6
