"""Which layouts a key has follows from the server's product, as its own answers show it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from kwsniff.cli.main import run
from kwsniff.layout.products import Products
from tests.layout.vendor_messages import ALL, request, response
from tests.traffic.exchange import Exchange
from tests.traffic.scenes import one_by_one
from tests.traffic.tcp import Endpoint, Packet
from tests.traffic.wire import Encoder, sized

from .compare import analyzed, capture_of, content

KAFKAS = (0, 1, 3, 18)
AUTOMQ = (*KAFKAS, 501, 502, 503)
INKLESS = (*KAFKAS, 500, 501, 502)


def versions(correlation_id: int, keys: Sequence[int], features: Sequence[str] = ()) -> Exchange:
    """ApiVersions v3, answered with these keys."""
    head = Encoder(False).i16(18).i16(3).i32(correlation_id).string("node-1")
    head.flexible = True
    head.tags().string("apache-kafka-java").string("4.1.0").tags()
    answer = Encoder(True).i32(correlation_id).i16(0)
    answer.array(keys, lambda key: answer.i16(key).i16(0).i16(1).tags())
    answer.i32(0)
    told = Encoder(True)
    told.array(features, lambda name: told.string(name).i16(0).i16(1).tags())
    answer.tags({0: bytes(told.data)} if features else None)
    return Exchange(18, 3, correlation_id, "node-1", sized(bytes(head.data)), sized(bytes(answer.data)))


def metadata(correlation_id: int, cluster_id: str, hosts: Sequence[str] = ("10.3.0.1",)) -> Exchange:
    """Metadata v2 of no topic, answered by a cluster of these brokers."""
    head = Encoder(False).i16(3).i16(2).i32(correlation_id).string("node-1")
    head.array([], lambda _: None)
    answer = Encoder(False).i32(correlation_id)
    brokers = [*enumerate(hosts, 1)]
    answer.array(brokers, lambda each: answer.i32(each[0]).string(each[1]).i32(9092).string(None))
    answer.string(cluster_id).i32(1).array([], lambda _: None)
    return Exchange(3, 2, correlation_id, "node-1", sized(bytes(head.data)), sized(bytes(answer.data)))


def call(vendor: str, key: int, correlation_id: int, version: int = 0) -> Exchange:
    """A call of a vendor's, encoded by its definition."""
    asked, answered = ALL[vendor][key, version]
    question, answer = bytearray(request(key, version, asked)[0]), bytearray(response(answered)[0])
    question[4:8] = answer[0:4] = correlation_id.to_bytes(4, "big")
    return Exchange(key, version, correlation_id, "node-1", sized(bytes(question)), sized(bytes(answer)))


def with_error(exchange: Exchange, at: int) -> Exchange:
    """The same call, answered with error 514, whose place is given."""
    answer = exchange.response or b""
    return replace(exchange, response=answer[:at] + (514).to_bytes(2, "big") + answer[at + 2 :])


def capture(path: Path, *talks: Sequence[Exchange]) -> Path:
    """Each talk is a connection to a server of its own."""
    packets: list[Packet] = []
    for number, talk in enumerate(talks, 1):
        client, broker = Endpoint(f"10.2.0.{number}", 50_000), Endpoint(f"10.3.0.{number}", 9092)
        later = number * 1_000_000_000
        spoken = one_by_one(talk, client=client, broker=broker).packets()
        packets += [replace(packet, time_ns=packet.time_ns + later) for packet in spoken]
    return capture_of(path, packets)


def named(path: Path, **options: Any) -> list[tuple[int, str | None, str | None]]:
    rows = kwsniff.analyze(path, **options).api_calls.to_pylist()
    return [(row["api_key"], row["api_name"], row["reason"]) for row in rows if row["api_key"] != 18]


@pytest.fixture
def two_vendors(tmp_path: Path) -> Path:
    return capture(
        tmp_path / "two.pcap",
        [versions(1, AUTOMQ), call("automq", 501, 2), call("automq", 506, 3, 1)],
        [versions(1, INKLESS), call("inkless", 501, 2), call("inkless", 500, 3)],
        [versions(1, (*KAFKAS, 15000)), call("redpanda", 15000, 2)],
        [versions(1, KAFKAS), call("automq", 501, 2)],
    )


def test_a_key_of_two_vendors_is_read_as_each_server_means_it(two_vendors: Path) -> None:
    assert named(two_vendors) == [
        (501, "CreateStreams", None),
        (506, "CommitStreamSetObject", None),
        (501, "AlterDisklessSwitch", None),
        (500, "InitDisklessLog", None),
        (15000, "DescribeRedpandaRoles", None),
        (501, None, "unknown_api"),
    ]


def test_the_summary_and_the_ranges_name_both(two_vendors: Path) -> None:
    found = kwsniff.analyze(two_vendors)
    counted = {(row["api_name"], row["calls"]) for row in found.summary["calls"] if row["api_key"] == 501}
    assert counted == {("CreateStreams", 1), ("AlterDisklessSwitch", 1), (None, 1)}
    offered = {
        (row["broker_address"], row["api_name"])
        for row in found.api_ranges.to_pylist()
        if row["api_key"] == 501
    }
    assert offered == {("10.3.0.1", "CreateStreams"), ("10.3.0.2", "AlterDisklessSwitch")}


def test_a_large_cluster_asks_for_few_words_and_its_cluster_id_still_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """16 hosts of each of 8 answers at most; the cluster id comes behind all hosts."""
    asked: list[tuple[str, str]] = []
    number = Products.number

    def note(self: Products, kind: str, word: str) -> int:
        asked.append((kind, word))
        return number(self, kind, word)

    monkeypatch.setattr(Products, "number", note)
    answers = [
        metadata(1 + turn, f"cluster-{turn}", [f"broker-{turn}-{host}" for host in range(1000)])
        for turn in range(12)
    ]
    last = metadata(1, "redpanda.1b2c", [f"b-{host}" for host in range(1000)])
    path = capture(tmp_path / "large.pcap", answers, [last, call("redpanda", 15000, 2)])
    assert [row for row in named(path) if row[0] == 15000] == [(15000, "DescribeRedpandaRoles", None)]
    hosts = [word for kind, word in asked if kind == "host"]
    assert len(hosts) == 9 * 16
    assert ("cluster_id", "cluster-7") in asked
    assert ("cluster_id", "cluster-8") not in asked


def test_topics_errors_and_throttle_of_vendors_calls_are_in_the_tables(two_vendors: Path) -> None:
    found = kwsniff.analyze(two_vendors)
    rows = {row["api_name"]: row for row in found.api_calls.to_pylist()}
    assert rows["AlterDisklessSwitch"]["topics"] == ["text 1"]
    assert (rows["AlterDisklessSwitch"]["throttle_time_ms"], rows["AlterDisklessSwitch"]["error_code"]) == (
        1,
        2,
    )
    assert rows["CreateStreams"]["caller"] == "broker"
    errors = [(row["api_name"], row["error_code"], row["path"]) for row in found.error_codes.to_pylist()]
    assert ("CreateStreams", 3, "create_stream_responses.error_code") in errors
    waits = [row["api_name"] for row in found.latencies.to_pylist()]
    assert waits.count("DescribeRedpandaRoles") == 1


@pytest.mark.parametrize(
    ("proof", "name"),
    [
        (versions(1, KAFKAS, ["group.version", "automq.version"]), "CreateStreams"),
        (versions(1, (*KAFKAS, 520)), "CreateStreams"),
        (versions(1, (*KAFKAS, 500)), "AlterDisklessSwitch"),
        (versions(1, (*KAFKAS, 501)), None),
        (versions(1, KAFKAS, ["group.version", "my.automq.version"]), None),
        (metadata(1, "redpanda.4f1c"), None),
    ],
)
def test_only_what_a_server_shows_decides(tmp_path: Path, proof: Exchange, name: str | None) -> None:
    vendor = "inkless" if name == "AlterDisklessSwitch" else "automq"
    path = capture(tmp_path / "one.pcap", [proof, call(vendor, 501, 2)])
    assert [row[1] for row in named(path) if row[0] == 501] == [name]


def test_the_cluster_id_of_redpanda_shows_it(tmp_path: Path) -> None:
    talk = [metadata(1, "redpanda.4f1c"), call("redpanda", 15000, 2)]
    path = capture(tmp_path / "one.pcap", talk)
    assert named(path)[-1] == (15000, "DescribeRedpandaRoles", None)


def test_calls_before_the_proof_stay_unknown_until_the_vendor_is_named(tmp_path: Path) -> None:
    path = capture(
        tmp_path / "late.pcap", [call("automq", 501, 1), versions(2, AUTOMQ), call("automq", 501, 3)]
    )
    assert named(path) == [(501, None, "unknown_api"), (501, "CreateStreams", None)]
    assert named(path, layouts="automq") == [(501, "CreateStreams", None)] * 2


def test_what_a_server_shows_goes_before_a_vendor_that_is_named(two_vendors: Path) -> None:
    assert named(two_vendors, layouts=["automq", "redpanda"])[:-1] == named(two_vendors)[:-1]
    assert named(two_vendors, layouts=["automq", "redpanda"])[-1] == (501, "CreateStreams", None)


def test_errors_that_only_automq_has_are_named_where_it_answers(tmp_path: Path) -> None:
    fenced = with_error(call("automq", 502, 2), at=9)
    other = with_error(call("inkless", 502, 2), at=13)
    path = capture(tmp_path / "e.pcap", [versions(1, AUTOMQ), fenced], [versions(1, INKLESS), other])
    rows = [row for row in kwsniff.analyze(path).api_calls.to_pylist() if row["error_code"] == 514]
    assert [(row["api_name"], row["error_name"]) for row in rows] == [
        ("OpenStreams", "NODE_FENCED"),
        ("RepairDisklessLog", None),
    ]


def test_rows_are_the_same_from_several_processes(two_vendors: Path) -> None:
    assert content(analyzed(two_vendors, jobs=3)) == content(analyzed(two_vendors, jobs=1))


def test_show_draws_each_vendors_fields(two_vendors: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", str(two_vendors), "--api", "501"]) == 0
    shown = capsys.readouterr().out
    assert [shown.count(word) for word in ("create_stream_requests: [2]", "seal_offset: 3")] == [1, 1]
    assert run(["show", str(two_vendors), "--api", "CreateStreams", "--json"]) == 0
    calls = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {each["api_name"] for each in calls} == {"CreateStreams"}


def test_a_filter_reads_what_shows_the_product_of_other_clients_too(two_vendors: Path) -> None:
    for text in ("api_name = 'CreateStreams'", "api_key = 501 and client_id = 'node-1'", "api_version = 0"):
        rows = kwsniff.analyze(two_vendors, where=text).api_calls.to_pylist()
        assert "CreateStreams" in {row["api_name"] for row in rows}


def test_a_response_alone_is_read_by_the_name_of_its_api(capsys: pytest.CaptureFixture[str]) -> None:
    data, _ = response(ALL["automq"][600, 0][1])
    assert run(["decode", data.hex(), "--response", "--api", "GetNextNodeId", "--version", "0"]) == 0
    assert "node_id: 3" in capsys.readouterr().out


def test_an_analysis_continues_with_what_was_shown_before(two_vendors: Path, tmp_path: Path) -> None:
    from kwsniff.analyzers import resume_analyzer, start_analyzer
    from kwsniff.core.declared import ENUMS
    from kwsniff.layout.catalog import load_catalog
    from kwsniff.tables.build import Builder

    catalog, data = load_catalog(), two_vendors.read_bytes()
    analyzer, names = start_analyzer(catalog, ("api_calls",)), []
    analyzer.open_capture("one")
    for at in range(0, len(data), 97):
        analyzer.feed(data[at : at + 97])
        taken = analyzer.drain("api_calls")
        names += Builder(catalog, ENUMS).build("api_calls", taken)["api_name"].to_pylist()
        analyzer = resume_analyzer(catalog, analyzer.save(), ("api_calls",))
    assert {"CreateStreams", "AlterDisklessSwitch", "DescribeRedpandaRoles"} <= set(names)


def test_what_may_be_secret_is_hidden(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk = [versions(1, AUTOMQ), call("automq", 513, 2), call("automq", 510, 3), call("automq", 515, 4)]
    assert run(["show", str(capture(tmp_path / "s.pcap", talk))]) == 0
    shown = capsys.readouterr().out
    assert "wal_config: <redacted" in shown
    assert "text 3" not in shown.partition("AutomqRegisterNode")[2].partition("PutKVs")[0].split("tags")[0]
    assert "bytes " not in shown.partition("PutKVs")[2].replace(" bytes", "")


def test_the_command_line_takes_several_vendors_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = capture(tmp_path / "cut.pcap", [call("automq", 501, 1)], [call("redpanda", 15000, 1)])
    asked = ["analyze", str(path), "--json", "--layouts", "automq", "--layouts", "redpanda"]
    assert run(asked) == 0
    assert {row["api_name"] for row in json.loads(capsys.readouterr().out)["calls"]} == {
        "CreateStreams",
        "DescribeRedpandaRoles",
    }
    data = request(501, 0, ALL["inkless"][501, 0][0])[0]
    assert run(["decode", data.hex(), "--layouts", "inkless"]) == 0
    assert "AlterDisklessSwitch request v0" in capsys.readouterr().out
    assert run(["decode", data.hex(), "--layouts", "inkless", "--layouts", "automq"]) == 2
    assert "api key 501 is already in" in capsys.readouterr().err
