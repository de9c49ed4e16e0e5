"""One pair of addresses in two networks, one conversation with two tags, packets that were captured twice."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import pytest

from tests.pipeline.buckets import bucketed, every, whole
from tests.pipeline.mirrored import by_interface, calls, of_frames, recorded, tables
from tests.pipeline.running import analyzer
from tests.traffic.files import Frame, frames, pcap
from tests.traffic.scenes import vocabulary
from tests.traffic.tcp import Endpoint, Scene
from tests.traffic.tunnels import Carrier, outer, udp, vlan, vxlan

CAPTURE = "first_steps"
CLIENT, BROKER = Endpoint("10.9.0.7", 50_000), Endpoint("10.9.0.92", 9092)
MICRO = 1_000
Tag = Callable[[Frame, int], list[Frame]]


def talk(client_isn: int, broker_isn: int, shift_ns: int) -> list[Frame]:
    """A conversation between always the same addresses and ports."""
    scene = Scene()
    script = scene.connection(CLIENT, BROKER, client_isn=client_isn, broker_isn=broker_isn)
    script.open()
    for number, exchange in enumerate(vocabulary()[:12]):
        script.call(exchange, (number + 1) * 5_000_000, (number + 1) * 5_000_000 + 2_000_000)
    script.close(100_000_000)
    return [Frame(row.time_ns + shift_ns, row.data, row.length) for row in frames(scene.packets())]


def from_client(row: Frame) -> bool:
    return row.data[26:30] == bytes([10, 9, 0, 7])


def in_vlan(tag: int) -> Callable[[Frame], Frame]:
    return lambda row: Frame(row.time_ns, vlan(row.data, tag), row.length + 4)


def in_vni(vni: int) -> Callable[[Frame], Frame]:
    def change(row: Frame) -> Frame:
        (data,) = outer(17, udp(4789, vxlan(row.data, vni)), Carrier())
        return Frame(row.time_ns, data, len(data))

    return change


def merged(*talks: Sequence[Frame]) -> list[Frame]:
    return sorted((row for one in talks for row in one), key=lambda row: row.time_ns)


ISNS = [(1_000, 4_000_000_000), (2_900_000_000, 77), (9_000, 4_000_900_000), (2**32 - 50, 2**31)]


@pytest.mark.parametrize("isns", ISNS)
@pytest.mark.parametrize("change", [in_vlan, in_vni], ids=["vlan", "vni"])
def test_two_networks_hold_two_conversations(
    change: Callable[[int], Callable[[Frame], Frame]], isns: tuple[int, int]
) -> None:
    """Also where their numbers lie close together: then their handshakes tell."""
    one = [change(10)(row) for row in talk(500_000, 900_000, 0)]
    two = [change(20)(row) for row in talk(*isns, 300_000)]
    want = [of_frames(talk_)[0] for talk_ in (one, two)]
    assert all(len(rows["api_calls"]) == 12 for rows in want)
    rows, _ = of_frames(merged(one, two))
    assert len(rows["connections"]) == 2
    assert sorted(map(str, calls(rows, frames=False))) == sorted(
        map(str, (row for part in want for row in calls(part, frames=False)))
    )
    assert [row["name"] for row in rows["anomalies"]] == [
        row["name"] for part in want for row in part["anomalies"]
    ]


def test_two_interfaces_hold_two_conversations() -> None:
    one, two = talk(500_000, 900_000, 0), talk(2_900_000_000, 77, 300_000)
    both = sorted([(1, row) for row in one] + [(2, row) for row in two], key=lambda pair: pair[1].time_ns)
    rows, _ = tables(by_interface(both))
    assert len(rows["connections"]) == 2
    assert [row["status"] for row in rows["api_calls"]].count("answered") == 22
    assert not [row for row in rows["anomalies"] if row["name"].startswith("segment")]


@pytest.mark.parametrize("first", [0, 6], ids=["opened", "begun before"])
@pytest.mark.parametrize("untagged", [0, 1])
def test_one_of_two_networks_may_have_no_tag(untagged: int, first: int) -> None:
    """Packet by packet in turn: an answer without a tag belongs where its numbers do."""
    talks = [talk(500_000, 900_000, 0)[first:], talk(2_900_000_000, 77, 300_000)[first:]]
    talks[1 - untagged] = [in_vlan(20)(row) for row in talks[1 - untagged]]
    want = [row for part in talks for row in calls(of_frames(part)[0], frames=False)]
    rows, _ = of_frames([row for pair in zip(*talks, strict=True) for row in pair])
    assert len(rows["connections"]) == 2
    assert sorted(map(str, calls(rows, frames=False))) == sorted(map(str, want))


def test_two_conversations_begun_before_the_capture_are_told_apart() -> None:
    one = [in_vlan(10)(row) for row in talk(500_000, 900_000, 0)][6:]
    two = [in_vlan(20)(row) for row in talk(2_900_000_000, 77, 300_000)][6:]
    want = [row for part in (one, two) for row in calls(of_frames(part)[0], frames=False)]
    rows, _ = of_frames(merged(one, two))
    assert sorted(map(str, calls(rows, frames=False))) == sorted(map(str, want))


@pytest.mark.parametrize("change", [in_vlan, in_vni], ids=["vlan", "vni"])
def test_another_tag_in_each_direction_is_one_conversation(
    change: Callable[[int], Callable[[Frame], Frame]],
) -> None:
    plain = talk(500_000, 900_000, 0)
    made = [change(10 if from_client(row) else 20)(row) for row in plain]
    rows, _ = of_frames(made)
    assert calls(rows) == calls(of_frames(plain)[0])
    assert len(rows["connections"]) == 1


def test_a_conversation_that_changes_its_network_goes_on() -> None:
    """A machine moves, a link fails: the numbers go on."""
    plain = talk(500_000, 900_000, 0)
    half = len(plain) // 2
    made = [in_vlan(10)(row) for row in plain[:half]] + [in_vlan(30)(row) for row in plain[half:]]
    rows, _ = of_frames(made)
    assert calls(rows) == calls(of_frames(plain)[0])
    assert len(rows["connections"]) == 1


# -- copies --------------------------------------------------------------------------------------------------


def copied(rows: Sequence[Frame], later_ns: int, change: Callable[[Frame], Frame]) -> list[Frame]:
    """Every packet, and its copy as another place has it."""
    twice = [(row.time_ns, 0, row) for row in rows]
    twice += [(row.time_ns + later_ns, 1, change(row)) for row in rows]
    twice.sort(key=lambda entry: entry[:2])
    return [Frame(time, row.data, row.length) for time, _, row in twice]


def same(row: Frame) -> Frame:
    return row


def routed(row: Frame) -> Frame:
    """One hop further: other MAC addresses, one less to live; the checksum of IP is not looked at."""
    data = bytearray(row.data)
    data[:12] = bytes(range(12))
    data[22] -= 1
    return Frame(row.time_ns, bytes(data), row.length)


def on_the_other_host(row: Frame) -> Frame:
    """Where it was sent, the card had not made the checksum yet."""
    data = bytearray(routed(row).data)
    data[50:52] = bytes(2)
    return Frame(row.time_ns, bytes(data), row.length)


PLACES = {
    "mirror of both ports": same,
    "another VLAN": in_vlan(9),
    "a tunnel": in_vni(9),
    "a hop further": routed,
    "the other host": on_the_other_host,
}
FIGURES = (
    "client_bytes", "broker_bytes", "client_packets", "broker_packets", "client_retransmitted_bytes",
    "broker_retransmitted_bytes", "client_out_of_order", "broker_out_of_order", "client_missing_bytes",
    "broker_missing_bytes", "round_trip_ns", "client_round_trip_ns", "broker_round_trip_ns", "calls", "ending",
    "capture_point", "client_zero_window_ns", "broker_zero_window_ns", "first_time", "last_time",
)  # fmt: skip


@pytest.mark.parametrize("later_ns", [0, 3 * MICRO, 200 * MICRO])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", [CAPTURE, "group_classic", "three_brokers"])
def test_copies_are_no_retransmissions(name: str, place: str, later_ns: int) -> None:
    plain, facts = of_frames(recorded(name))
    made = copied(recorded(name), later_ns, PLACES[place])
    rows, told = of_frames(made)
    assert calls(rows, frames=False) == calls(plain, frames=False)
    assert told["packets_tcp"] == 2 * facts["packets_tcp"]
    for row, want in zip(rows["connections"], plain["connections"], strict=True):
        assert {figure: row[figure] for figure in FIGURES} == {figure: want[figure] for figure in FIGURES}
        # Copies of its last packets came when its row was written.
        packets = want["client_packets"] + want["broker_packets"]
        assert packets - 4 <= row["duplicate_packets"] <= packets
    assert [row["name"] for row in rows["anomalies"]] == [row["name"] for row in plain["anomalies"]]


def test_payload_of_copies_has_a_bin_of_its_own() -> None:
    engine = analyzer()
    engine.open_capture("capture")
    engine.feed(pcap(copied(recorded(CAPTURE), MICRO, same), nanoseconds=True))
    facts = engine.close_capture()
    engine.finish()
    bins = engine.accounting(0)
    assert bins["captured_twice"] == facts["tcp_payload_bytes"] // 2
    assert bins["retransmitted"] == 0
    assert sum(bins.values()) == facts["tcp_payload_bytes"]


def test_two_interfaces_of_one_host_see_every_packet_once_each() -> None:
    """As `-i any` on a bridged host, in a pcapng."""
    plain, _ = of_frames(recorded(CAPTURE))
    both = [pair for row in recorded(CAPTURE) for pair in ((0, row), (1, row))]
    rows, _ = tables(by_interface(both))
    assert calls(rows, frames=False) == calls(plain, frames=False)
    assert all(row["client_retransmitted_bytes"] == 0 for row in rows["connections"])
    assert all(row["duplicate_packets"] for row in rows["connections"])


def test_linux_cooked_captures_name_the_interface() -> None:
    """SLL2: the same packets on veth, bridge and card."""
    plain, _ = of_frames(recorded(CAPTURE))
    made = []
    for row in recorded(CAPTURE):
        for index in (3, 4, 7):
            head = row.data[12:14] + struct.pack(">HIHBB8x", 0, index, 1, 0, 6)
            made.append(Frame(row.time_ns + index * MICRO, head + row.data[14:], row.length + 6))
    rows, _ = of_frames(made, 276)
    assert calls(rows, frames=False)[0]["correlation_id"] == calls(plain, frames=False)[0]["correlation_id"]
    assert len(rows["api_calls"]) == len(plain["api_calls"])
    assert all(row["client_retransmitted_bytes"] == 0 for row in rows["connections"])


def retransmitted(row: Frame, ident: int | None, later_ms: int) -> Frame:
    """The segment sent again: another identification, and a later timestamp where it has that option."""
    data = bytearray(row.data)
    if ident is not None:
        data[18:20] = struct.pack(">H", ident)
    return Frame(row.time_ns + later_ms * 1_000_000, bytes(data), row.length)


@pytest.mark.parametrize(("ident", "later_ms"), [(60_000, 0), (60_000, 1)])
def test_segments_that_were_sent_again_still_count(ident: int, later_ms: int) -> None:
    made = list(recorded(CAPTURE))
    sizes = [len(row.data) for row in made]
    largest = sizes.index(max(sizes))
    made.append(retransmitted(made[largest], ident, later_ms))
    made.sort(key=lambda row: row.time_ns)
    rows, _ = of_frames(made)
    again = sum(
        row["client_retransmitted_bytes"] + row["broker_retransmitted_bytes"] for row in rows["connections"]
    )
    assert again > 0
    assert sum(row["duplicate_packets"] for row in rows["connections"]) == 0


def test_without_identifications_the_time_between_tells() -> None:
    """IPv4 packets that all have the number 1, as some senders write them."""
    for later_ms, copies, again in ((0, 1, 0), (20, 0, 1)):
        made = talk(500_000, 900_000, 0)
        data = next(row for row in made if row.length > 100)
        other = Frame(data.time_ns + later_ms * 1_000_000, data.data, data.length)
        rows, _ = of_frames(merged(made, [other]))
        (row,) = rows["connections"]
        assert row["duplicate_packets"] == copies
        assert bool(row["client_retransmitted_bytes"] + row["broker_retransmitted_bytes"]) == bool(again)


def test_networks_and_copies_are_the_same_in_splits_and_buckets() -> None:
    one = [in_vlan(10)(row) for row in talk(500_000, 900_000, 0)]
    two = [in_vni(20)(row) for row in talk(2_900_000_000, 77, 300_000)]
    data = pcap(copied(merged(one, two, list(recorded(CAPTURE))), MICRO, routed_outside), nanoseconds=True)
    assert bucketed([data], 3, every(900)) == whole([data])


def routed_outside(row: Frame) -> Frame:
    return Frame(row.time_ns, bytes(range(12)) + row.data[12:], row.length)
