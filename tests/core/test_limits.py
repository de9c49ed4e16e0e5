"""Bounds: every value that is allowed works, every other is refused; reaching one costs what it says."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kwsniff.cli.main import run
from kwsniff.cli.options.limits import parse_limits
from kwsniff.errors import UsageError
from kwsniff.limits import Limits
from tests.core.hand import facts_of, ipv4, tcp
from tests.core.test_captures import block
from tests.pipeline.running import chunks, rows_of_bytes
from tests.pipeline.running import run as run_core
from tests.traffic.files import frames, pcap
from tests.traffic.scenes import two_clients


def ethernet(packet: bytes) -> bytes:
    return bytes(12) + b"\x08\x00" + packet


NAMES = sorted(Limits.ranges())
FRAGMENTS = [
    ethernet(ipv4(tcp(bytes(64))[:32], fragment=0x2000)),
    ethernet(ipv4(tcp(bytes(64))[32:], fragment=4)),
]
WHOLE = pcap(frames(two_clients().packets()))


def capture_with(packets: list[bytes]) -> bytes:
    """A capture of calls, and of these packets behind them."""
    return WHOLE + b"".join(struct.pack("<IIII", 1_800_000_000, 0, len(p), len(p)) + p for p in packets)


@pytest.mark.parametrize("name", NAMES)
def test_least_and_greatest_values_work_and_nothing_beyond(name: str) -> None:
    least, greatest = Limits.ranges()[name]
    data = capture_with(FRAGMENTS)
    plain = rows_of_bytes(data)["api_calls"]
    assert plain
    rows_of_bytes(data, limits={name: least})
    assert rows_of_bytes(data, limits={name: greatest})["api_calls"] == plain
    wrong: list[Any] = [least - 1, greatest + 1, 2**32, 2**63, 2**64, -1, "64", 1.5, None, True]
    for value in wrong:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= greatest:
            continue
        with pytest.raises(UsageError, match=name):
            rows_of_bytes(data, limits={name: value})


@pytest.mark.parametrize("name", NAMES)
def test_defaults_lie_within_their_bounds(name: str) -> None:
    least, greatest = Limits.ranges()[name]
    assert least <= Limits().as_dict()[name] <= greatest


@pytest.mark.parametrize("value", ["0", str(2**32), str(2**63), "9" * 5000, "many", "1.5", "-1", ""])
def test_what_is_outside_is_one_line_and_exit_status_2(
    value: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "capture.pcap"
    path.write_bytes(WHOLE)
    assert run(["analyze", str(path), "--limit", f"ip_reassembly={value}"]) == 2
    text = capsys.readouterr().err
    assert text.startswith("kwsniff: error: ")
    assert text.count("\n") == 1


def test_a_number_too_long_for_python_is_refused() -> None:
    with pytest.raises(UsageError, match="5,000 digits"):
        parse_limits(["message_fields=" + "7" * 5000])


def interfaces(number: int, packets: list[tuple[int, bytes]]) -> bytes:
    """A pcapng of so many Ethernet interfaces, without options, and of packets with their interface."""
    out = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    out += [block(1, struct.pack("<HHI", 1, 0, 0))] * number
    for index, (interface, data) in enumerate(packets):
        out.append(block(6, struct.pack("<IIIII", interface, 0, index, len(data), len(data)) + data))
    return b"".join(out)


def test_interfaces_beyond_the_limit_are_passed_over_and_rows_stay() -> None:
    packets = [row.data for row in frames(two_clients().packets())]
    data = interfaces(
        65_537, [(0, packet) for packet in packets] + [(65_536, packets[0]), (65_537, packets[0])]
    )
    rows = rows_of_bytes(data)
    assert len(rows["api_calls"]) == len(rows_of_bytes(WHOLE)["api_calls"]) > 0
    assert [(row["name"], row["value"]) for row in rows["anomalies"]] == [("interfaces_limit", 1)]
    facts = facts_of(data)
    assert facts["interfaces"] == 65_537
    assert facts["packets_tcp"] == len(packets)
    assert facts["packets_unknown_link_type"] == 1  # of the interface that was passed over
    assert facts["packets_malformed"] == 1  # of one that nothing describes


def test_the_limit_of_interfaces_counts_for_each_section() -> None:
    packet = ethernet(ipv4(tcp(b"four")))
    data = interfaces(2, [(1, packet)]) + interfaces(4, [(1, packet), (2, packet)])
    columns, facts = run_core(chunks(data, [1000]), limits={"interfaces": 2})
    assert columns["anomalies"]
    assert (facts["packets_tcp"], facts["packets_unknown_link_type"], facts["interfaces"]) == (2, 1, 6)
