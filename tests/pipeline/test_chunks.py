"""However the bytes of a capture are handed over, the result is the same to the last bit."""

from __future__ import annotations

from itertools import cycle, islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pipeline.running import chunks, frozen, run
from tests.traffic import damage, files, scenes

PACKETS = damage.reorder(scenes.pipelined(depth=3, calls=9, mss=100).packets(), 3, seed=5)
CAPTURES = {
    "pcap": files.pcap(files.frames(PACKETS)),
    "pcap_ns_big": files.pcap(files.frames(PACKETS), big=True, nanoseconds=True),
    "pcapng": files.pcapng(files.frames(PACKETS), noise=True),
    "pcapng_big": files.pcapng(files.frames(PACKETS), noise=True, custom=True, big=True),
}


@pytest.mark.parametrize("name", CAPTURES)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 16, 24, 61, 1500, 4096])
def test_any_chunk_size_gives_the_same_tables(name: str, size: int) -> None:
    data = CAPTURES[name]
    whole, facts = run([data])
    assert len(frozen(whole)["api_calls"][0][2:]) > 0
    pieces, same_facts = run(chunks(data, [size]))
    assert frozen(pieces) == frozen(whole)
    assert same_facts == facts


@given(
    sizes=st.lists(st.integers(0, 300), min_size=1, max_size=40).filter(any),
    name=st.sampled_from(sorted(CAPTURES)),
)
@settings(max_examples=60)
def test_uneven_chunks_give_the_same_tables(sizes: list[int], name: str) -> None:
    data = CAPTURES[name]
    whole, _ = run([data])
    pieces, _ = run(chunks(data, islice(cycle(sizes), 100_000)))
    assert frozen(pieces) == frozen(whole)


def test_rows_may_be_taken_at_any_time() -> None:
    """Taking rows between chunks loses and repeats none."""
    from tests.pipeline.running import CORE_TABLES, analyzer, rows_of

    data = CAPTURES["pcap"]
    whole, _ = run([data])
    engine = analyzer()
    engine.open_capture("capture")
    taken: dict[str, list[object]] = {name: [] for name in CORE_TABLES}

    def take() -> None:
        for name, rows in rows_of({name: engine.drain(name) for name in CORE_TABLES}).items():
            taken[name] += rows

    for piece in chunks(data, [333]):
        engine.feed(piece)
        take()
        assert engine.rows("api_calls") == 0
    engine.close_capture()
    engine.finish()
    take()
    assert taken == rows_of(whole)
