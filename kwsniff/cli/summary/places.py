"""The places where captures were taken, in lines of the summary."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kwsniff.texts import clean, in_time, plural

Facts = Mapping[str, Any]
_SIDES = {
    "client": "nearest to the client",
    "broker": "nearest to the broker",
    "between": "between the others",
}


def place_lines(places: Sequence[Facts], top: int) -> Iterator[str]:
    """One line for each of at most `top` places, the nearest to the client first."""
    for place in places[:top]:
        side = f", {_SIDES[place['side']]}" if place["side"] else ""
        yield f"place {clean(place['place'])}{side}: {_clock(place)}"
    if len(places) > top:
        yield f"and {plural(len(places) - top, 'more place')}"


def _clock(place: Facts) -> str:
    if place["is_reference"]:
        return "most calls count as captured here; its clock is the reference"
    ahead, error = place["clock_offset_ns"], place["clock_error_ns"]
    if ahead is None:
        return "no calls tell its clock"
    told = [f"clock {_say_side(ahead, in_time(abs(ahead)), 'ahead', 'behind')}, to within {in_time(error)}"]
    drift, spread = place["clock_drift_ppm"], place["clock_drift_error_ppm"]
    if spread is not None and abs(drift) > spread:
        told.append(
            f"{_say_side(drift, f'{abs(drift):.1f} ppm', 'faster', 'slower')}, to within {spread:.1f} ppm"
        )
    if place["clock_steps"]:
        told.append(f"stepped {plural(place['clock_steps'], 'time')}")
    return "; ".join(told)


def _say_side(value: float, shown: str, above: str, below: str) -> str:
    return f"{shown} {above if value >= 0 else below}"
