"""The captures that were read, in lines of the summary."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kwsniff.tables.enums import WORDS
from kwsniff.texts import clean, in_bytes, in_percent, plural
from kwsniff.zones import Zone, from_iso

Facts = Mapping[str, Any]
_SKIPPED = {
    "skipped_fragment": "later IP fragments",
    "skipped_malformed": "malformed headers",
    "skipped_other_time": "outside the time range",
}
_NOT_READ = ("skipped_not_ip", "skipped_not_tcp", "skipped_unknown_link_type")
_BINS = {"answered": "in answered calls"}


def capture_lines(captures: Sequence[Facts], top: int, zone: Zone) -> Iterator[str]:
    """Packets, time range, skipped packets and notes of at most `top` captures."""
    for capture in captures[:top]:
        skipped = [*_not_read(capture, top)]
        skipped += [f"{capture[key]:,} {words}" for key, words in _SKIPPED.items() if capture[key]]
        first, last = from_iso(capture["first_time"]), from_iso(capture["last_time"])
        span = f", {zone.between(first, last)}" if first is not None else ""
        size = f"{plural(capture['packets'], 'packet')}, {in_bytes(capture['bytes'])}"
        yield f"{clean(capture['capture'])}: {size}{span}"
        if skipped:
            yield f"  skipped: {', '.join(skipped)}"
        if capture["encapsulations"]:
            named = [text.rpartition("=") for text in capture["encapsulations"]]
            yield f"  inside tunnels: {', '.join(f'{int(number):,} {name}' for name, _, number in named)}"
        if payload := _payload(capture):
            yield f"  payload: {payload}"
        yield from (f"  note: {note}" for note in _quality(capture))
    if len(captures) > top:
        yield f"and {plural(len(captures) - top, 'more capture')}"


def _not_read(capture: Facts, top: int) -> Iterator[str]:
    """Packets by what they carry, such as "123 packets of Frame Relay", and the number of unknown ones."""
    left = sum(capture[key] for key in _NOT_READ)
    for text in (capture["not_read"] or [])[:top]:
        name, _, number = text.rpartition("=")
        left -= int(number)
        yield f"{plural(int(number), 'packet')} of {name}"
    if left > 0:
        yield f"{plural(left, 'other packet')}"


def _payload(capture: Facts) -> str:
    """The parts of the TCP payload, largest first."""
    whole = capture["tcp_payload_bytes"]
    parts = sorted(((capture[f"{name}_bytes"], name) for name in WORDS["bin"]), reverse=True)
    return ", ".join(f"{in_percent(part, whole)} {_BINS.get(name, name)}" for part, name in parts if part)


def _quality(capture: Facts) -> Iterator[str]:
    if capture["dropped_by_kernel"]:
        yield f"the kernel dropped {plural(capture['dropped_by_kernel'], 'packet')}"
    if capture["damaged"]:
        yield "the file is damaged; kwsniff did not read the part after the damage"
    elif capture["truncated"] and not capture["notes"]:
        yield "the file ends inside a packet"
    yield from capture["notes"]
