"""Nanoseconds per field: the engine over realistic frames against a copy of the same bytes."""

from __future__ import annotations

from dataclasses import dataclass

from tests.perf.measure import fastest
from tests.traffic import messages
from tests.traffic.records import batch

CELL_BYTES = 16
REPEATS = 2_000


@dataclass(frozen=True, slots=True)
class FieldCost:
    name: str
    frame_bytes: int
    fields: int
    ns_per_field: float
    copy_ns_per_field: float


def frames() -> dict[str, tuple[int, int, int, bytes]]:
    """Name -> (api key, version, direction, message without its size)."""
    topics = {f"topic-{number}": dict.fromkeys(range(20), batch([b"v" * 100])) for number in range(25)}
    names = [f"topic-{number}" for number in range(50)]
    fetched = messages.fetch(12, 1, topics)
    described = messages.metadata(9, 1, names, partitions=30)
    produced = messages.produce(9, 1, topics)
    return {
        "Fetch 12 response, 500 partitions": (1, 12, 1, (fetched.response or b"")[4:]),
        "Metadata 9 response, 1500 partitions": (3, 9, 1, (described.response or b"")[4:]),
        "Produce 9 request, 500 partitions": (0, 9, 0, produced.request[4:]),
    }


def measure(rounds: int = 7) -> list[FieldCost]:
    from kwsniff.core.wire import engine
    from kwsniff.layout.catalog import load_catalog

    catalog = load_catalog()
    rows = []
    for name, (api_key, version, direction, data) in frames().items():
        program = catalog.program(api_key, version, direction)
        if program is None:
            raise RuntimeError(f"the catalog has no {name}")
        tape, status, offset, _ = engine.run(program.code, data)
        if status or len(data) < CELL_BYTES:
            raise RuntimeError(f"{name} does not decode: status {status} at byte {offset}")
        cells = memoryview(tape).nbytes // CELL_BYTES
        repeats = max(REPEATS * 100 // cells, 5)
        code = program.code
        spent = fastest(lambda: [engine.run(code, data) for _ in range(repeats)], rounds)  # noqa: B023
        copied = fastest(lambda: [bytearray(data) for _ in range(repeats)], rounds)  # noqa: B023
        per = 1e9 / repeats / cells
        rows.append(FieldCost(name, len(data), cells, spent * per, copied * per))
    return rows
