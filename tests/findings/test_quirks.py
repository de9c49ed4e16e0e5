"""What is normal at one server and breaks a rule of the protocol at another: the same calls at both."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import kwsniff
from kwsniff.cli.main import run
from kwsniff.findings.evaluate import as_json
from kwsniff.layout.quirks import load_quirks
from tests.core.hand import ACK, FIN, RST, START_NS, Talk
from tests.findings.opened import call
from tests.findings.scripted import find, find_worth_asking
from tests.traffic.files import Frame, pcap
from tests.traffic.wire import Encoder, sized

MS = 10**6
HOSTS = {
    "apache": ("broker-1.example.com", "4fK1xN2sQvS5pW8tYbE7Zg"),
    "event_hubs": ("shop.servicebus.windows.net", None),
    "redpanda": ("broker-1.example.com", "redpanda.0c2f"),
    "seaweedfs": ("gateway", "seaweedfs-kafka-gateway"),
    "warpstream": ("api-1.discovery.prod-z.us-east-1.warpstream.com", None),
}
"""Product -> the host and the cluster id that its Metadata names."""


class Said(NamedTuple):
    """A request, its answer (None: the broker resets the connection) and when that comes."""

    request: bytes
    answer: bytes | None
    after_ms: float = 1


def head(key: int, version: int, number: int) -> bytes:
    return struct.pack(">hhih", key, version, number, 4) + b"shop"


def text(word: str | None) -> bytes:
    return struct.pack(">h", -1) if word is None else struct.pack(">h", len(word)) + word.encode()


def known(product: str, number: int) -> Said:
    """Metadata v2 of no topic, which shows the product."""
    host, cluster_id = HOSTS[product]
    brokers = struct.pack(">ii", 1, 1) + text(host) + struct.pack(">i", 9092) + text(None)
    body = struct.pack(">i", number) + brokers + text(cluster_id) + struct.pack(">ii", 1, 0)
    return Said(sized(head(3, 2, number) + struct.pack(">i", 0)), sized(body))


def produce(number: int, acks: int, throttle_ms: int = 0, after_ms: float = 1) -> Said:
    """Produce v8 of no topic: KIP-219 holds for this version."""
    asked = head(0, 8, number) + struct.pack(">hhii", -1, acks, 30_000, 0)
    return Said(sized(asked), sized(struct.pack(">iii", number, 0, throttle_ms)), after_ms)


def fetch(number: int, throttle_ms: int = 0, after_ms: float = 1, aborted: Sequence[int] = ()) -> Said:
    """Fetch v11 of the end of orders-0, for at most 500 ms."""
    part = struct.pack(">iiiqqi", 1, 0, 0, 50, -1, 1 << 20)
    asked = struct.pack(">iiiibii", -1, 500, 1, 1 << 20, 1, 0, -1) + struct.pack(">i", 1) + text("orders")
    asked += part + struct.pack(">i", 0) + text("")
    told = struct.pack(">iihi", number, throttle_ms, 0, 0) + struct.pack(">i", 1) + text("orders")
    told += struct.pack(">iihqqqi", 1, 0, 0, 50, 50, 0, len(aborted))
    told += b"".join(struct.pack(">qq", 7 + n, first) for n, first in enumerate(aborted))
    told += struct.pack(">ii", -1, 0)
    return Said(sized(head(1, 11, number) + asked), sized(told), after_ms)


def sync_group(number: int) -> Said:
    """SyncGroup v0, whose answer has null for its bytes."""
    asked = text("g") + struct.pack(">i", 1) + text("m") + struct.pack(">i", 0)
    return Said(sized(head(14, 0, number) + asked), sized(struct.pack(">ihi", number, 0, -1)))


def versions_4(number: int) -> Said:
    """ApiVersions v4, to which the broker only resets."""
    asked = head(18, 4, number) + b"\0" + b"\x05java" + b"\x064.1.0" + b"\0"
    return Said(sized(asked), None)


def versions_0(number: int) -> Said:
    """ApiVersions v0, answered with Metadata alone."""
    told = struct.pack(">ihi", number, 0, 1) + struct.pack(">hhh", 3, 0, 12)
    return Said(sized(head(18, 0, number)), sized(told))


def end_txn(number: int, error: int) -> Said:
    asked = text("pay") + struct.pack(">qhb", 7, 0, 1)
    return Said(sized(head(26, 1, number) + asked), sized(struct.pack(">iih", number, 0, error)))


def metadata_12(number: int, leader: int, host: str) -> Said:
    """Metadata v12 of orders-0 in leader epoch 3."""
    asked = Encoder(False).i16(3).i16(12).i32(number).string("shop")
    asked.flexible = True
    asked.tags().count(0).i8(1).i8(0).tags()
    told = Encoder(True).i32(number).tags().i32(0)
    nodes = [1, 2]
    told.array(nodes, lambda node: told.i32(node).string(host).i32(9090 + node).string(None).tags())
    told.string(None).i32(1)

    def part(_: int) -> None:
        told.i16(0).i32(0).i32(leader).i32(3)
        for some in (nodes, nodes, []):
            told.array(some, told.i32)
        told.tags()

    def topic(_: int) -> None:
        told.i16(0).string("orders").uuid(b"0123456789abcdef").i8(0)
        told.array([0], part).i32(-(1 << 31)).tags()

    told.array([0], topic).tags()
    return Said(sized(bytes(asked.data)), sized(bytes(told.data)))


def capture(path: Path, *talks: Sequence[Said]) -> Path:
    """Each talk is a connection to 10.0.0.2:9092 of a port of its own, one after the other."""
    frames, now = [], START_NS
    for port, talk in enumerate(talks, 50_001):
        opened, times = Talk().open(), []
        times += [now + n for n in range(len(opened.packets))]
        for said in talk:
            opened.send(True, said.request)
            times.append(now := now + 10 * MS)
            if said.answer is None:
                opened.send(False, flags=RST | ACK)
            else:
                opened.send(False, said.answer)
            times.append(now := now + int(said.after_ms * MS))
        if talk[-1].answer is not None:
            opened.send(True, flags=FIN | ACK)
            opened.send(False, flags=FIN | ACK)
            times += [now + MS, now + 2 * MS]
        now += 5 * MS
        number = port.to_bytes(2, "big")
        for time, packet in zip(times, opened.packets, strict=True):
            at = 20 if packet[20:22] == (50_000).to_bytes(2, "big") else 22
            changed = packet[:at] + number + packet[at + 2 :]
            frames.append(Frame(time, changed, len(changed)))
    path.write_bytes(pcap(frames, 101, nanoseconds=True))
    return path


def why(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    run(["why", str(path), "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


CASES: dict[str, tuple[str, Callable[[], Sequence[Sequence[Said]]], str, str]] = {
    "acks_0_answered": (
        "event_hubs",
        lambda: [[produce(n, 0) for n in range(2, 9)]],
        "protocol_violation",
        "must send no response to Produce with acks=0",
    ),
    "versions_refused_by_closing": (
        "event_hubs",
        lambda: [[versions_0(2)], [versions_4(3)], [versions_4(4)]],
        "broker_hangs_up",
        "with UNSUPPORTED_VERSION (KIP-511)",
    ),
    "null_not_allowed": (
        "event_hubs",
        lambda: [[sync_group(2), sync_group(3)]],
        "protocol_violation",
        "Bytes may be null only where the layout says so",
    ),
    "throttle_is_elapsed": (
        "seaweedfs",
        lambda: [[fetch(n, throttle_ms=500, after_ms=500) for n in range(2, 6)]],
        "throttled",
        "Without a quota, throttle_time_ms must be 0",
    ),
    "leader_by_client": (
        "warpstream",
        lambda: [[metadata_12(2, 1, "{host}"), metadata_12(3, 2, "{host}"), metadata_12(4, 1, "{host}")]],
        "protocol_violation",
        "must get the same leader of a partition in one leader epoch",
    ),
    "aborted_out_of_order": (
        "redpanda",
        lambda: [[fetch(2, aborted=[5, 9]), fetch(3, aborted=[9, 5]), fetch(4, aborted=[])]],
        "protocol_violation",
        "must come in the order of their first offsets",
    ),
    "error": ("redpanda", lambda: [[end_txn(2, -1)]], "persistent_error", "UNKNOWN_SERVER_ERROR"),
}
"""Quirk -> the product at which it is normal, calls that show it, the finding elsewhere, what that says."""


def talks_at(product: str, quirk: str) -> list[list[Said]]:
    talks = [list(talk) for talk in CASES[quirk][1]()]
    host = HOSTS[product][0]
    if quirk == "leader_by_client":
        talks = [[metadata_12(n, leader, host) for n, leader in ((2, 1), (3, 2), (4, 1))]]
    return [[known(product, 1), *talks[0]], *talks[1:]]


@pytest.mark.parametrize("quirk", CASES)
def test_it_is_quiet_where_it_is_normal(
    quirk: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product = CASES[quirk][0]
    path = capture(tmp_path / "a.pcap", *talks_at(product, quirk))
    assert [row["product"] for row in kwsniff.analyze(path).servers.to_pylist()] == [product]
    found = why(path, capsys)
    assert [each["finding"] for each in found["findings"] if each["severity"] != "info"] == []
    assert CASES[quirk][2] not in {each["finding"] for each in found["findings"]}
    assert found["account"]["explained"] == {}
    assert found["account"]["unexplained"] == 0


@pytest.mark.parametrize("quirk", CASES)
def test_elsewhere_the_finding_names_the_rule_of_the_protocol(quirk: str, tmp_path: Path) -> None:
    _, _, name, rule = CASES[quirk]
    path = capture(tmp_path / "a.pcap", *talks_at("apache", quirk))
    found = [row for row in kwsniff.analyze(path).findings.to_pylist() if row["finding"] == name]
    assert [rule in row["text"] for row in found] == [True]
    assert {row["blames"] for row in found} == {"broker"}


def test_every_quirk_has_a_case_or_a_test_of_its_own() -> None:
    normal = {name for name, quirk in load_quirks().items() if quirk.places}
    assert normal == {*CASES, "throttle_held"}


def test_a_broker_that_never_answered_a_lower_version_breaks_no_rule(tmp_path: Path) -> None:
    """It may close for another reason: nothing is behind it, or there are too many connections."""
    talks = [[known("apache", 1)], [versions_4(3)], [versions_4(4)]]
    found = kwsniff.analyze(capture(tmp_path / "a.pcap", *talks)).findings.to_pylist()
    (closed,) = (row for row in found if row["finding"] == "broker_hangs_up")
    assert "KIP-511" not in closed["text"]


def test_an_answer_to_acks_0_harms_nobody_by_itself(tmp_path: Path) -> None:
    """Its client closes when it is done."""
    talk = [known("apache", 1), *(produce(n, 0) for n in range(2, 9))]
    (found,) = kwsniff.analyze(capture(tmp_path / "a.pcap", talk)).findings.to_pylist()
    assert (found["severity"], found["confidence"], found["value"]) == ("info", "certain", 6)


def held(product: str) -> list[Said]:
    """25 quick calls; then a quota, for which the broker waits before it answers."""
    quick = [produce(n, 1) for n in range(2, 27)]
    return [known(product, 1), *quick, *(produce(n, 1, 1500, 1501) for n in range(27, 30))]


def test_a_server_that_holds_back_what_it_throttles(tmp_path: Path) -> None:
    found = kwsniff.analyze(capture(tmp_path / "a.pcap", held("event_hubs")))
    (throttled,) = (row for row in found.findings.to_pylist() if row["finding"] == "throttled")
    assert "KIP-219" not in throttled["text"]
    assert "A quota (" in throttled["text"]
    assert {row["harm"] for row in found.api_calls.to_pylist()} == {None}


def test_another_one_breaks_a_rule_by_that(tmp_path: Path) -> None:
    found = kwsniff.analyze(capture(tmp_path / "a.pcap", held("apache")))
    (throttled,) = (row for row in found.findings.to_pylist() if row["finding"] == "throttled")
    assert "From KIP-219 on, a broker must respond first" in throttled["text"]
    assert "late" in {row["harm"] for row in found.api_calls.to_pylist()}


def test_a_quota_at_seaweedfs_besides_fetches_still_counts(tmp_path: Path) -> None:
    talk = [known("seaweedfs", 1), *(produce(n, -1, 400) for n in (2, 3))]
    found = kwsniff.analyze(capture(tmp_path / "a.pcap", talk)).findings.to_pylist()
    assert "throttled" in {row["finding"] for row in found}


def led(number: int, leader: int, epoch: int | None, topic_id: str | None, address: str) -> dict[str, Any]:
    row = {"topic": "orders", "topic_id": topic_id, "partition": 0, "leader": leader, "leader_epoch": epoch}
    row |= {"first_call_id": number, "calls": 2, "broker_address": address, "broker_port": 9092}
    return row | {"first_time": number * 10**6, "last_time": number * 10**6 + 5}


@pytest.mark.parametrize(
    ("rows", "number"),
    [
        ([(1, 3, "a"), (2, 3, "a")], 1),
        ([(1, 3, "a"), (2, 4, "a")], 0),  # an election
        ([(1, 3, "a"), (-1, 3, "a")], 0),  # no leader for this listener
        ([(1, 0, "a"), (2, 0, "b")], 0),  # created again, or of another cluster
        ([(1, 0, None), (2, 0, None)], 0),  # which cannot be told
        ([(1, None, "a"), (2, None, "a")], 0),
    ],
)
def test_two_leaders_of_one_epoch(rows: list[tuple[int, int | None, str | None]], number: int) -> None:
    leaders = [led(at, *row, "10.0.0.2") for at, row in enumerate(rows, 1)]
    found = find("protocol_violation", {"leaders": leaders})
    assert [(each.subject_kind, each.subject) for each in found] == [("topic", "orders")] * number


def test_leaders_that_depend_on_the_client_do_not_flap() -> None:
    """Each refusal is of another broker, and Metadata names another leader each time."""
    calls, errors, leaders = [], [], []
    for number in range(1, 9):
        broker = f"10.0.0.{2 + number % 2}"
        row = call(number, number, number + 0.1, broker_address=broker, error_code=6)
        calls.append(row)
        error = {"error_code": 6, "error_name": "NOT_LEADER_OR_FOLLOWER", "topic": "orders", "partition": 0}
        errors.append({**row, **error})
        leaders.append(led(number, number % 2, number, "a", "10.0.0.2"))
    servers = [
        {"address": f"10.0.0.{each}", "port": 9092, "product": "warpstream", "calls": 4} for each in (2, 3)
    ]
    tables = {"api_calls": calls, "error_codes": errors, "leaders": leaders}
    found = find("leader_flaps", tables)
    assert [as_json(each)["value"] for each in found] == [7]
    assert find("leader_flaps", {**tables, "servers": servers}) == []


def test_calls_with_acks_0_that_nobody_answers_ask_for_no_rule() -> None:
    row = call(1, 1, api_name="Produce", api_key=0, acks=0, status="no_response_expected", reason=None)
    assert "protocol_violation" not in find_worth_asking({"api_calls": [row]})
    assert "protocol_violation" in find_worth_asking({"api_calls": [{**row, "status": "answered"}]})
