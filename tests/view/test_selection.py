"""What rows leave out before messages are decoded would not have fitted: the same calls, with and without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from kwsniff.view.call import Conversation
from kwsniff.view.filters import ANY_ERROR, Filters
from kwsniff.view.reader import CallReader

CAPTURES = Path(__file__).parents[2] / "captures"
NAMES = (
    "first_steps", "transaction", "group_classic", "group_share", "sasl_scram", "snaplen_96", "three_brokers",
    "killed_broker", "versions_4_4", "begun_late", "admin_configs",
)  # fmt: skip
FILTERS: tuple[dict[str, Any], ...] = (
    {"errors": frozenset({ANY_ERROR})},
    {"errors": frozenset({6, 79})},
    {"errors": frozenset({0})},
    {"apis": frozenset({1, 3})},
    {"client": "SHOP"},
    {"client": "127.0.0.1"},
    {"topic": "orders"},
    {"group": "billing"},
    {"connection": "11"},
    {"min_latency_ns": 5_000_000},
    {"statuses": frozenset({"unanswered", "response_only"})},
    {"calls": frozenset({23_000, 33_000})},
    {"topic": "orders", "errors": frozenset({ANY_ERROR})},
    {"client_is": "shop-producer"},
    {"client_is": "shop"},
)


def fitting(path: Path, filters: Filters, *, chosen: bool) -> list[tuple[int | None, Any, Any]]:
    reader = CallReader([str(path)], filters=filters if chosen else None)
    conversation = Conversation(topics=reader.topics)
    return [
        (call.id, call.request and call.request["data"], call.response and call.response["data"])
        for call in reader.calls()
        if filters.fits(call) and filters.fits_inside(conversation.decode(call), conversation.topics)
    ]


def paths() -> Iterator[Path]:
    for name in NAMES:
        yield from (path for path in (CAPTURES / name).iterdir() if path.name.startswith("capture."))


@pytest.mark.parametrize("path", [*paths()], ids=lambda path: path.parent.name)
def test_nothing_that_fits_is_left_out(path: Path) -> None:
    for one in FILTERS:
        filters = Filters(**one)
        assert fitting(path, filters, chosen=True) == fitting(path, filters, chosen=False), one


def test_filters_find_something() -> None:
    """A comparison of nothing with nothing would hold as well."""
    path = CAPTURES / "first_steps" / "capture.pcap"
    found = [len(fitting(path, Filters(**one), chosen=True)) for one in FILTERS]
    assert all(found[place] for place in (0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 12))
    assert found[11] == 2
    assert (found[13], found[14]) == (13, 0)


def test_few_calls_reach_python(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    take = CallReader._calls_of

    def counted(self: CallReader, *arguments: Any) -> Any:
        calls = take(self, *arguments)
        made.extend(calls)
        return calls

    monkeypatch.setattr(CallReader, "_calls_of", counted)
    path = CAPTURES / "first_steps" / "capture.pcap"
    rows = kwsniff.analyze(path).api_calls.to_pylist()
    counts = {
        1: sum(row["error_count"] > 0 or row["api_name"] in ("JoinGroup", "SyncGroup") for row in rows),
        3: sum(row["api_key"] in (1, 3) for row in rows),
        4: sum("shop" in row["client_id"] for row in rows),
        9: sum(row["latency_ns"] >= 5_000_000 for row in rows),
        11: 2,
    }
    for place, count in counts.items():
        made.clear()
        fitting(path, Filters(**FILTERS[place]), chosen=True)
        assert 0 < len(made) == count, FILTERS[place]


def test_progress_goes_up_to_the_size_of_all_captures(tmp_path: Path) -> None:
    """By the sizes that the file system tells."""
    names = []
    for number in range(2):
        path = tmp_path / f"{number}.pcap"
        path.write_bytes((CAPTURES / "first_steps" / "capture.pcap").read_bytes())
        names.append(str(path))
    told: list[tuple[str, int, int | None]] = []
    for _ in CallReader(names, progress=lambda *each: told.append(each)).calls():
        pass
    done = [each[1] for each in told]
    assert done == sorted(done)
    assert done[-1] == sum(Path(name).stat().st_size for name in names)
    assert {each[2] for each in told} == {done[-1]}
    assert {each[0] for each in told} == set(names)
