"""Makes the captures in crashes/ again: python -m tests.hostile.crash_inputs"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from tests.traffic import scenes
from tests.traffic.files import frames, pcap
from tests.traffic.messages import api_versions, metadata
from tests.traffic.tcp import MILLISECOND, SYN, Endpoint, Scene
from tests.traffic.wire import request_bytes, response_bytes, sized

FOLDER = Path(__file__).parent / "crashes"
KNOWN, NEW = b"\1" * 16, b"\2" * 15


def refused_for_ever() -> bytes:
    """A request of the largest size that is believed, where a search begins: found, refused, found again.
    The search and the reading of the size disagreed by the four bytes of the prefix."""
    scene = Scene()
    script = scene.connection()
    script.open()
    script.call(api_versions(3, 1), at=MILLISECOND, answer_at=2 * MILLISECOND)
    script.write(
        struct.pack(">I", 1 << 29) + api_versions(3, 2).request[4:], 3 * MILLISECOND, from_client=True
    )
    return pcap(frames(scene.packets()))


def foreign_before_its_syn() -> bytes:
    """A client not known yet begins with an API of a vendor; its SYN is recorded after its first bytes. The
    room above asked for the framing of side 1 - -1."""
    scene = Scene()
    script = scene.connection(Endpoint("10.1.0.200", 50_000))
    script.open()
    foreign = sized(request_bytes(3, 1, 7, "vendor", b"\0" * 40))
    foreign = foreign[:4] + struct.pack(">h", 600) + foreign[6:]
    script.write(foreign[:3], MILLISECOND, from_client=True)
    script.write(foreign[3:], 2 * MILLISECOND, from_client=True)
    script.call(metadata(9, 8, ["orders"]), at=3 * MILLISECOND, answer_at=4 * MILLISECOND)
    packets = scene.packets()
    syn = next(packet for packet in packets if packet.flags & SYN)
    first = next(packet for packet in packets if packet.payload)
    rest = [
        p for p in packets if not p.flags & SYN and p not in (syn, first) and (p.payload or not p.from_client)
    ]
    return pcap(frames([first, syn, *rest]))


def names_that_moved() -> bytes:
    """Metadata: a topic by its known id alone, then so many new ids that their memory has to grow."""
    learned = [(KNOWN, b"orders")]
    asked = [(KNOWN, None)] + [(bytes([n]) + NEW, b"x" * 200 + b"%03d" % n) for n in range(200)]
    scene = Scene()
    script = scene.connection()
    script.open()
    for number, topics in enumerate((learned, asked), start=1):
        call = replace(
            metadata(12, number, []), response=sized(response_bytes(3, 12, number, _topics(topics)))
        )
        script.call(call, at=number * MILLISECOND, answer_at=number * MILLISECOND + 1000)
    return pcap(frames(scene.packets()))


def _topics(topics: list[tuple[bytes, bytes | None]]) -> bytes:
    """The body of a Metadata v12 response (protocol guide)."""
    out = [struct.pack(">i", 0), b"\1", b"\0", struct.pack(">i", 1), _uvarint(len(topics) + 1)]
    for topic_id, name in topics:
        text = b"\0" if name is None else _uvarint(len(name) + 1) + name
        out += [struct.pack(">h", 0), text, topic_id, b"\0", b"\1", struct.pack(">i", 0), b"\0"]
    return b"".join(out) + b"\0"


def _uvarint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + _uvarint(value >> 7)


def centuries_apart() -> bytes:
    """pcapng: one interface before 1970, one in 2255: the times' difference does not fit into 64 bits."""
    from tests.traffic.files import Frame, Resolution, pcapng

    data = [frame.data for frame in frames(scenes.one_by_one([api_versions(3, 1)]).packets())]
    rows = [Frame(0, raw, len(raw)) for raw in data]
    ends = (Resolution(9, offset_s=-8_999_999_999), Resolution(9, offset_s=8_999_999_999))

    class Still(Resolution):
        def ticks(self, time_ns: int) -> int:
            return time_ns

    return pcapng(rows, resolutions=[Still(end.code, end.offset_s) for end in ends])


def empty_names() -> bytes:
    """Two calls of a client whose id is the empty string: an entry without bytes was compared by address."""
    calls = [metadata(9, number, ["orders"], client_id="") for number in (1, 2)]
    return pcap(frames(scenes.one_by_one(calls).packets()))


INPUTS: Mapping[str, Callable[[], bytes]] = {
    made.__name__: made
    for made in (refused_for_ever, foreign_before_its_syn, names_that_moved, centuries_apart, empty_names)
}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, made in INPUTS.items():
        (FOLDER / f"{name}.pcap").write_bytes(made())


if __name__ == "__main__":
    main()
