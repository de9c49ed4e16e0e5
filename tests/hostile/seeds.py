"""What is mutated: recorded and made captures, scenes packet by packet, golden messages, record sets."""

import json
import lzma
import os
from argparse import Namespace
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from kwsniff.cli.decode import LineDecoder, _line_decoder
from kwsniff.core.analyzer import Analyzer
from kwsniff.layout.catalog import load_catalog
from tests.hostile import sealed
from tests.hostile.build import ROOT
from tests.traffic import damage, hello, scenes
from tests.traffic.files import FORMATS, frames, pcap, pcapng
from tests.traffic.links import LINKS, IpStyle
from tests.traffic.messages import produce
from tests.traffic.records import batch
from tests.traffic.tcp import Packet

LARGEST = 200_000
"""Bytes of a seed: a larger one makes executions slow and finds nothing that a small one does not."""


def folder(name: str) -> Path:
    """A folder of the checkout, also from a copy of the tests that was built elsewhere."""
    return Path(os.environ.get("KWSNIFF_CHECKOUT", ROOT)) / name


@cache
def files() -> dict[str, bytes]:
    """Whole capture files: recorded ones, foreign ones if at hand, every format that can be written."""
    found: dict[str, bytes] = {}
    for place in (folder("captures"), folder("../shared/captures")):
        for path in sorted(place.rglob("*.pcap*")) if place.is_dir() else ():
            data = path.read_bytes()
            if path.is_file() and path.suffix in (".pcap", ".pcapng") and len(data) <= LARGEST:
                found[f"{path.parent.name}/{path.name}"] = data
    rows = frames(scenes.two_clients().packets())
    for name, format_ in FORMATS.items():
        found[name] = format_.write(rows, 1)
    for name, link in LINKS.items():
        found[f"link_{name}"] = pcap(frames(scenes.two_clients().packets(), link), link.number)
    found["simple_cut"] = pcapng(
        frames(scenes.pipelined(3, 6).packets(), snaplen=120), simple=True, snaplen=120
    )
    return found


@cache
def talks() -> dict[str, list[Packet]]:
    """Packets of scenes, whole and hurt: the seeds of packet-level mutation."""
    whole = scenes.one_by_one(scenes.vocabulary()).packets()
    small = scenes.two_clients().packets()
    large = scenes.one_by_one([produce(7, n, {"t": {0: batch([b"z" * 9000])}}) for n in range(4)]).packets()
    rows = {
        "vocabulary": whole,
        "small_segments": scenes.one_by_one(scenes.vocabulary()[:12], mss=37).packets(),
        "two_clients": small,
        "pipelined": scenes.pipelined(5, 20, 300).packets(),
        "large": large,
        "wrap": scenes.one_by_one(
            scenes.vocabulary()[:8], client_isn=(1 << 32) - 60, broker_isn=(1 << 32) - 9
        ).packets(),
        "late": damage.start_late(whole, 9),
        "no_handshake": scenes.one_by_one(scenes.vocabulary()[:9], handshake=False).packets(),
        "answers_only": damage.one_direction(whole, from_client=False),
        "requests_only": damage.one_direction(whole, from_client=True),
        "reordered": damage.reorder(large, 6, 1),
    }
    rows["lossy"] = damage.drop_share(whole, 0.1, 4)
    return rows


@cache
def messages() -> list[tuple[bytes, bytes]]:
    """(program, message with header) pairs: the golden vectors of the newest release."""
    catalog = load_catalog()
    pairs: list[tuple[bytes, bytes]] = []
    for vector in _vectors("messages-4.5.0-SNAPSHOT"):
        direction = 0 if vector["direction"] == "request" else 1
        program = catalog.program(vector["api_key"], vector["version"], direction)
        if program is None:
            continue
        message = bytes.fromhex(str(vector["hex"]))
        if len(message) < 20_000:
            pairs.append((program.code, message))
    return pairs


@cache
def record_sets() -> list[bytes]:
    found = [bytes.fromhex(str(v["hex"])) for v in _vectors("records") if "hex" in v]
    found += [batch([b"a", b"bc"]) + batch([b"d" * 300], gzipped=True), batch([]) * 3]
    return [records for records in found if len(records) < 20_000]


@cache
def sealed_talks() -> dict[str, list[Packet]]:
    """Packets of scenes inside TLS."""
    large = scenes.one_by_one([produce(7, n, {"t": {0: batch([b"z" * 9000])}}) for n in range(4)])
    return {
        "two_clients": sealed.sealed(scenes.two_clients()),
        "small_records": sealed.sealed(scenes.two_clients("10.2.0."), 30),
        "small_segments": sealed.sealed(scenes.one_by_one(scenes.vocabulary()[:6], mss=70)),
        "large": sealed.sealed(large),
        "pipelined": sealed.sealed(scenes.pipelined(3, 8, 300), 500),
        "updates": sealed.sealed(scenes.one_by_one(scenes.vocabulary()[:8]), 200, updates=5),
    }


@cache
def hellos() -> list[bytes]:
    """First records of both sides of TLS connections, whole and in small records."""
    made = [hello.client_hello(), hello.client_hello(None, b"i" * 32, 700), hello.server_hello()]
    made += [hello.server_hello(0xC02F, chosen=None), hello.server_hello(0xC02F, session=b"")]
    return [hello.records(message, size) for message in made for size in (1 << 14, 40, 3)]


@cache
def lines() -> list[dict[str, object]]:
    """Lines for `kwsniff decode --jsonl`: the golden vectors."""
    names = {"version": "api_version"}
    kept = ("direction", "hex", "api_key", "version")
    return [
        {names.get(name, name): vector[name] for name in kept}
        for vector in _vectors("messages-4.5.0-SNAPSHOT")
        if len(str(vector["hex"])) < 20_000
    ]


@cache
def line_decoder() -> LineDecoder:
    """What `kwsniff decode --jsonl` does to a line."""
    return _line_decoder(Namespace(records=False, schema=None, limit=[]))


def _vectors(name: str) -> Iterator[dict[str, object]]:
    with lzma.open(folder(f"tests/data/vectors/{name}.jsonl.xz"), "rt", encoding="utf-8") as text:
        for line in text:
            yield json.loads(line)


def compile_shipped(key: int, version: int, direction: int) -> tuple[bytes, tuple[str, ...]] | None:
    program = load_catalog().program(key, version, direction)
    return (program.code, program.paths) if program else None


def analyzer(**options: object) -> Analyzer:
    """A fresh analyzer over the real layouts."""
    catalog = load_catalog()
    ranges = [(a.key, a.min_version, a.max_version, a.flexible_from) for a in catalog.apis.values()]
    return Analyzer(compile_shipped, ranges, **options)  # type: ignore[arg-type]


def resumed(state: bytes) -> Analyzer:
    """The analyzer that goes on from a saved state."""
    catalog = load_catalog()
    ranges = [(a.key, a.min_version, a.max_version, a.flexible_from) for a in catalog.apis.values()]
    return Analyzer.resume(compile_shipped, ranges, state)


RAW = LINKS["ethernet"]
STYLE = IpStyle(tcp_timestamps=False)
