"""One bucket's share of a batch of a stream: resumes the analysis, feeds it, saves its state."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kwsniff.analyzers import CORE_OUTPUT
from kwsniff.layout.catalog import load_catalog
from kwsniff.sources.tls import Secrets
from kwsniff.spark.decode import Rows
from kwsniff.spark.parts import Part
from kwsniff.spark.saved_analyzers import Saved
from kwsniff.spark.serialization import register
from kwsniff.spark.storage import Place
from kwsniff.spark.tail import Piece, read
from kwsniff.tables.captures import CaptureName, CaptureRow, capture_row
from kwsniff.tables.schema import TABLES


@dataclass(frozen=True, slots=True)
class Step:
    """What a batch reads."""

    pieces: tuple[Piece, ...]
    captures_before: int
    finish: bool


@register
@dataclass(slots=True)
class Advanced:
    """What it gave."""

    parts: list[Part]
    notes: list[str]
    state: str
    captures: list[CaptureRow] = field(default_factory=list)
    """Rows of the captures that ended, without where their bytes ended up."""
    accounting: list[dict[str, int]] = field(default_factory=list)
    """Of all captures that ended so far."""
    topics: dict[str, str] = field(default_factory=dict)


def advance_bucket(
    number: int,
    *,
    step: Step,
    states: Sequence[str],
    folder: str,
    prefix: str,
    settings: Mapping[str, Any],
    run_id: str,
) -> Advanced:
    """The task; states and parts are files in `folder`."""
    place = Place(folder)
    place.check()
    saved = Saved.read(Path(states[number]).read_bytes()) if states else Saved()
    catalog = load_catalog(settings["layouts"])
    num_buckets = settings["num_buckets"]
    bucket = (number, num_buckets) if num_buckets > 1 else None
    analyzer = saved.take_up(
        catalog, CORE_OUTPUT, ports=settings["ports"], limits=settings["limits"], bucket=bucket
    )
    analyzer.open_tls(Secrets(settings["tls_keylog"], follow=bool(settings["tls_keylog"])))
    rows = Rows(
        analyzer, catalog, frozenset(TABLES), place, place, f"{prefix}-{number:05}",
        run_id=run_id, packets_before=saved.packets_before,
    )  # fmt: skip
    rows.resume(saved.row_path)
    captures = _feed(step.pieces, rows)
    if step.finish:
        rows.finish()
    rows.take_all()
    path = Path(folder) / f"{prefix}-{number:05}-{uuid.uuid4().hex[:12]}.state"
    path.write_bytes(Saved(rows.notes.packets_before, rows.state(), analyzer.save()).to_bytes())
    ended = range(step.captures_before + len(captures))
    accounting = [analyzer.accounting(place) for place in ended]
    return Advanced(
        rows.parts.close(),
        rows.notes.close(),
        str(path),
        captures,
        accounting,
        analyzer.topic_names(),
    )


def _feed(pieces: Sequence[Piece], rows: Rows) -> list[CaptureRow]:
    """The rows of the captures that end."""
    captures = []
    for piece in pieces:
        if piece.opens:
            rows.analyzer.open_capture(piece.name)
        for buffer in read(piece):
            if rows.analyzer.stopped:
                break
            rows.analyzer.feed(buffer)
            rows.drain()
        if piece.closes:
            facts = rows.analyzer.close_capture()
            captures.append(capture_row(CaptureName(piece.name), facts))
            rows.end_capture(facts["packets"])
    return captures
