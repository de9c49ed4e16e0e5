"""Fingerprints of captures, by which an append knows those whose rows the tables already have.

A fingerprint is made of what the first stage found in a capture: numbers of packets by kind, bytes, the
times of the first and the last packet. A capture that was renamed, moved or compressed keeps it; one that has
grown since has another, and so has one that is read with other times (`--since`, `--until`).
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kwsniff.errors import UsageError
from kwsniff.spark.inputs import Capture
from kwsniff.spark.manifest import paths_of
from kwsniff.spark.parts import Part
from kwsniff.spark.scan import Walked

_DIGITS: Final = 20
_NAMED: Final = 3


def fingerprints_of(captures: Sequence[Capture], walks: Sequence[Sequence[Walked]]) -> dict[str, str]:
    """Fingerprint -> name of the capture; captures without packets have none."""
    found: dict[str, str] = {}
    for capture, walked in zip(captures, walks, strict=True):
        scans = [each.scan for each in walked]
        first = [scan.first_time for scan in scans if scan.first_time is not None]
        last = [scan.last_time for scan in scans if scan.last_time is not None]
        packets = sum(scan.packets for scan in scans)
        if not packets:
            continue
        kinds = sorted({kind for scan in scans for kind in scan.counts})
        facts = (
            packets,
            min(first, default=None),
            max(last, default=None),
            *((kind, sum(scan.counts.get(kind, 0) for scan in scans)) for kind in kinds),
        )
        found[hashlib.sha256(repr(facts).encode()).hexdigest()[:_DIGITS]] = capture.name
    return found


def check_new(inputs: Mapping[str, str], manifest: Mapping[str, Any] | None, output: str) -> None:
    """Raises UsageError where a run that the manifest shows has read one of these captures."""
    known = {each: run for run, read in (manifest or {}).get("inputs", {}).items() for each in read}
    twice = [(name, known[each]) for each, name in inputs.items() if each in known]
    if not twice:
        return
    names = ", ".join(name for name, _ in twice[:_NAMED])
    more = f" and {len(twice) - _NAMED} more" if len(twice) > _NAMED else ""
    raise UsageError(
        f"{output} already has the rows of {names}{more} (run {twice[0][1]}); omit what it has, or say "
        "--again to have these rows twice"
    )


def inputs_of_runs(manifest: Mapping[str, Any] | None, parts: Iterable[Part]) -> dict[str, Any]:
    """Run -> fingerprints of its captures, for each run that has a file among `parts`: files of the manifest
    that stay."""
    known: Mapping[str, Any] = (manifest or {}).get("inputs", {})
    # A run that replaced a folder of this machine has files without its id; it is the only one without.
    left = {_run_of(part.path, known) for part in parts}
    before = {_run_of(path, known) for path in paths_of(manifest)}
    return {run: read for run, read in known.items() if run in left or (run not in before and None in left)}


def _run_of(path: str, known: Mapping[str, Any]) -> str | None:
    run = path.rpartition("/")[2].partition("-")[0]
    return run if run in known else None
