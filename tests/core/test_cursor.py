"""The cursor's varints, through the engine, against a reference written from Kafka's rules."""

from hypothesis import given
from hypothesis import strategies as st

from kwsniff.core.wire import engine

from .guard import flush_against_guard_page
from .programs import UVARINT, VARINT, VARLONG, cells, one_field, op, status


def reference(data: bytes, most: int, bits: int) -> tuple[str, int, int]:
    """Status, unsigned value, bytes used."""
    value = 0
    for used, byte in enumerate(data[:most], 1):
        value |= (byte & 127) << 7 * (used - 1)
        if byte < 128:
            return ("ok" if used == len(data) else "bytes_left_over", value & (2**bits - 1), used)
    return ("varint_too_long" if len(data) >= most else "unexpected_end", 0, 0)


def zigzag(raw: int) -> int:
    return raw // 2 if raw % 2 == 0 else -(raw + 1) // 2


mostly_long = st.lists(st.one_of(st.integers(128, 255), st.integers(0, 255)), max_size=12).map(bytes)


@given(mostly_long)
def test_varints_follow_the_reference(data: bytes):
    for kind, most, bits in ((UVARINT, 5, 32), (VARINT, 5, 32), (VARLONG, 10, 64)):
        expected, raw, used = reference(data, most, bits)
        with flush_against_guard_page(data) as guarded:
            tape, result, offset, _ = engine.run(one_field(op(kind)), guarded)
        assert status(result) == expected
        if used:
            assert cells(tape)[1] == (1, 0, raw if kind == UVARINT else zigzag(raw))
            assert offset == used
