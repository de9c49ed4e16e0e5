"""The plugin runs in Lua 5.2, which Wireshark 4.0 and 4.2 have, and in 5.4, which later ones have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from kwsniff.cli.main import run
from tests.traffic.files import frames, pcap
from tests.traffic.scenes import pipelined
from tests.wireshark.seen import FIELDS, PLUGIN, told

STUBS = Path(__file__).with_name("wireshark.lua")
CAPTURES = Path(__file__).parents[2] / "captures"


class Wireshark:
    """A Lua of one version with the plugin, and no Wireshark."""

    def __init__(self, version: str, index: Path) -> None:
        lupa = pytest.importorskip(f"lupa.{version}")
        self.lua = lupa.LuaRuntime(encoding="utf-8")
        assert self.lua.eval("_VERSION") == f"Lua {version[3]}.{version[4]}"
        names = self.lua.globals()
        names.folder = str(index)
        names.indexes = self.lua.table_from({path.name: True for path in index.iterdir()})
        self.lua.execute(STUBS.read_text("utf-8"))
        self.lua.execute(PLUGIN.read_text("utf-8"))
        names.begin()

    def show(self, number: int, time_ns: int, info: Mapping[str, Any], size: int) -> list[tuple[str, str]]:
        """Name and value of every field that the plugin adds to a packet."""
        names = self.lua.globals()
        seconds, rest = divmod(time_ns, 10**9)
        moment = {"value": self.lua.table_from({"secs": float(seconds), "nsecs": float(rest)})}
        names.packet = self.lua.table_from(
            {
                "info": self.lua.table_from({"number": number, **info}),
                "frame.time_epoch": self.lua.table_from(moment),
                "tcp.len": self.lua.table_from({"value": size}),
            }
        )
        return [(pair[1], pair[2]) for pair in names["pass"]().values()]


def indexed(capture: Path, folder: Path) -> tuple[Path, Path]:
    tables, index = folder / "tables", folder / "index"
    assert run(["analyze", str(capture), "-o", str(tables)]) == 0
    assert run(["wireshark", str(tables), "-o", str(index)]) == 0
    return tables, index


@pytest.mark.parametrize("version", ["lua52", "lua54"])
@pytest.mark.parametrize("mss", [90, 1448])
def test_a_packet_shows_the_calls_whose_bytes_it_carries(version: str, mss: int, tmp_path: Path) -> None:
    """More messages than a group of the index has, several in a packet and over many packets: the script says
    which bytes of which call each packet carries."""
    scene = pipelined(calls=150, mss=mss)
    packets = scene.packets()
    capture = tmp_path / "pipelined.pcap"
    capture.write_bytes(pcap(frames(packets)))
    tables, index = indexed(capture, tmp_path)
    ids = {row["correlation_id"]: row["call_id"] for row in kwsniff.open(tables).api_calls.to_pylist()}
    wireshark = Wireshark(version, index)
    for number, packet in enumerate(packets, 1):
        info = {
            "src": packet.source.address, "src_port": packet.source.port,
            "dst": packet.target.address, "dst_port": packet.target.port,
        }  # fmt: skip
        found = wireshark.show(number, packet.time_ns, info, len(packet.payload))
        carried = [
            str(ids[call.exchange.correlation_id])
            for call in scene.calls
            if (span := call.request if packet.from_client else call.response)
            and max(span.start, packet.offset) < min(span.end, packet.end)
        ]
        assert sorted(value for name, value in found if name == "kwsniff.call") == sorted(carried)


@pytest.mark.parametrize("version", ["lua52", "lua54"])
def test_fields_are_those_of_the_tables(version: str, tmp_path: Path) -> None:
    capture = CAPTURES / "incidents" / "broker_stalled" / "client.pcap"
    tables, index = indexed(capture, tmp_path)
    wireshark = Wireshark(version, index)
    calls = kwsniff.open(tables).api_calls.to_pylist()
    times = {call["request_frame"]: call["request_time"] for call in calls}
    expected = told(tables, {})
    checked = 0
    for number, time in sorted(times.items()):
        fields: dict[str, list[str]] = {name: [] for name in FIELDS}
        nanoseconds = (
            time.value if hasattr(time, "value") else int(time.timestamp()) * 10**9 + time.microsecond * 1000
        )
        for name, value in wireshark.show(number, nanoseconds, {}, 0):
            fields[name].append(value)
        assert [sorted(values) for values in fields.values()] == expected[number]
        checked += bool(fields["kwsniff.finding"])
    assert checked
