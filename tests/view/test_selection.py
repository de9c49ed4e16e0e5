"""What headers decide in the core would not have been chosen: the same calls, with and without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from kwsniff.filter.filtered_calls import FilteredCalls
from kwsniff.filter.parser import parse_filter
from kwsniff.view.reader import CallReader
from tests.traffic import messages
from tests.traffic.files import frames, pcap
from tests.traffic.tcp import MILLISECOND, Endpoint, Scene

CAPTURES = Path(__file__).parents[2] / "captures"
FIRST_STEPS = CAPTURES / "first_steps" / "capture.pcap"
NAMES = (
    "first_steps", "transaction", "group_classic", "group_share", "sasl_scram", "sasl_again", "snaplen_96",
    "no_acks",
    "three_brokers", "killed_broker", "versions_4_4", "begun_late", "admin_configs", "replication",
    "java_0_10",
    "kraft_start", "any_interface", "large_messages", "zookeeper_0_8",
)  # fmt: skip
FILTERS = (
    "api_key in (1, 3)",
    "api_name = Fetch",
    "api_name = Fetch and api_version > 11",
    "api_version = 4",
    "not (api_name in (Fetch, Produce))",
    "client_id ~ shop",
    "client_id is null",
    "client_id != 'shop-producer'",
    "client_address = 127.0.0.1 and broker_port = 9092",
    "connection_id in (1, 11, 73)",
    "correlation_id = 3",
    "correlation_id < 5 and topic is not null",
    "request_time > +1s",
    "request_time < +1s or api_name = Metadata",
    "request_time >= +500ms and request_time < +2s and session_id is not null",
    "caller = broker",
    "client_software_name is not null and api_name != ApiVersions",
    "principal is not null and api_name = Metadata",
    "topic = orders and client_id ~ billing",
    "error_count > 0 and client_id ~ shop",
    "status = unanswered or status = response_only",
    "call_id in (23000, 33000)",
)


class Undecided(FilteredCalls):
    """Leaves every decision to rows."""

    def begin(self, *given: Any) -> None:
        super().begin(*given)


def chosen(path: Path, text: str, *, early: bool) -> list[tuple[int | None, Any, Any]]:
    selection = (FilteredCalls if early else Undecided)(parse_filter(text))
    return [
        (call.id, call.request and call.request["data"], call.response and call.response["data"])
        for call in CallReader([str(path)], selection=selection).calls()
    ]


def paths() -> Iterator[Path]:
    for name in NAMES:
        yield from (path for path in (CAPTURES / name).iterdir() if path.name.startswith("capture."))


@pytest.mark.sample(6)
@pytest.mark.parametrize("path", [*paths()], ids=lambda path: path.parent.name)
def test_headers_leave_out_no_call_that_is_chosen(path: Path) -> None:
    for text in FILTERS:
        assert chosen(path, text, early=True) == chosen(path, text, early=False), text


def test_filters_find_something() -> None:
    """A comparison of nothing with nothing would hold as well."""
    found = {text: len(chosen(FIRST_STEPS, text, early=True)) for text in FILTERS}
    assert sum(number > 0 for number in found.values()) > len(FILTERS) // 2
    assert found["call_id in (23000, 33000)"] == 2


def test_few_calls_are_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that the core makes are counted, before the filter looks at them."""
    made: list[int] = []
    select = FilteredCalls.select

    def counted(self: FilteredCalls, tables: Any) -> Any:
        made.append(tables["api_calls"][0][1])
        return select(self, tables)

    monkeypatch.setattr(FilteredCalls, "select", counted)
    rows = kwsniff.analyze(FIRST_STEPS).api_calls.to_pylist()
    for text, wanted in {
        "api_key in (1, 3) and latency > 1h": sum(row["api_key"] in (1, 3) for row in rows),
        "correlation_id = 3 and acks = 9": sum(row["correlation_id"] == 3 for row in rows),
    }.items():
        made.clear()
        assert chosen(FIRST_STEPS, text, early=True) == []
        assert 0 < wanted < len(rows)
        assert wanted <= sum(made) < len(rows) - (len(rows) - wanted) // 2, text
    made.clear()
    chosen(FIRST_STEPS, "client_id = nobody", early=True)
    connections = len({row["connection_id"] for row in rows})
    assert sum(made) <= 2 * connections  # the first calls show that it is Kafka, and who sends


def test_a_call_at_the_edge_of_a_time_is_chosen() -> None:
    for row in kwsniff.analyze(FIRST_STEPS).api_calls.to_pylist():
        time = row["request_time"].isoformat()
        found = [call for call, _, _ in chosen(FIRST_STEPS, f"request_time = '{time}'", early=True)]
        assert row["call_id"] in found


def test_names_of_topics_are_learned_from_other_clients(tmp_path: Path) -> None:
    """A client asks by the id of a topic; only the Metadata response to another one has its name."""
    scene = Scene()
    broker = Endpoint("10.1.1.1", 9092)
    asking = scene.connection(Endpoint("10.1.0.7", 50_000), broker)
    reading = scene.connection(Endpoint("10.1.0.8", 50_001), broker)
    asking.open()
    reading.open()
    for number, topic in enumerate(("carts", "carts", "orders")):  # the first calls are read of every client
        metadata = messages.metadata(12, number, [topic], client_id="asking")
        asking.call(metadata, at=(2 + number) * MILLISECOND, answer_at=(3 + number) * MILLISECOND)
        fetch = messages.fetch(16, number, {"orders": {0: b""}}, client_id="reading")
        reading.call(fetch, at=(20 + number) * MILLISECOND, answer_at=(21 + number) * MILLISECOND)
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap(frames(scene.packets())))
    found = chosen(path, "client_id = reading and topic = orders", early=True)
    assert len(found) == 3
    assert found == chosen(path, "client_id = reading and topic = orders", early=False)


def test_progress_goes_up_to_the_size_of_all_captures(tmp_path: Path) -> None:
    """By the sizes that the file system tells."""
    names = []
    for number in range(2):
        path = tmp_path / f"{number}.pcap"
        path.write_bytes(FIRST_STEPS.read_bytes())
        names.append(str(path))
    told: list[tuple[str, int, int | None]] = []
    for _ in CallReader(names, progress=lambda *each: told.append(each)).calls():
        pass
    done = [each[1] for each in told]
    assert done == sorted(done)
    assert done[-1] == sum(Path(name).stat().st_size for name in names)
    assert {each[2] for each in told} == {done[-1]}
    assert {each[0] for each in told} == set(names)
