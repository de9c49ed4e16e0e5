"""What kwsniff makes of the captures in ../shared: frozen in tests/data/foreign.json.

    python -m tests.pipeline.foreign            says where the frozen results and today's differ
    python -m tests.pipeline.foreign --update   freezes today's results

The frozen results keep changes from going unseen; that they are right is shown by other programs in
tests/pipeline/test_foreign.py, whose checks the file lists. The captures themselves stay where they are.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import kwsniff
from kwsniff.errors import CaptureError
from tests.pipeline.compare import TABLES

SHARED = Path(__file__).resolve().parents[3] / "shared"
GOLDEN = Path(__file__).parents[1] / "data" / "foreign.json"
WITNESSES = (
    "tshark 4.0: packets, TCP packets, TCP conversations, distinct payload bytes of each direction, "
    "first and last time",
    "PROVENANCE.md beside the captures: format, link type, packets, TCP packets, streams, payload bytes, "
    "bytes that no packet carries, Kafka requests by API and version, responses, client ids",
    "where they see it otherwise than kwsniff, the reason is in tests/pipeline/differences.py",
)
_PACKETS = ("tcp_packets", "skipped_not_ip", "skipped_not_tcp", "skipped_fragment", "skipped_malformed",
            "skipped_unknown_link_type")  # fmt: skip
_SUFFIXES = (".pcap", ".pcapng", ".gz", ".hex")

Result = dict[str, Any]


def foreign_files(shared: Path = SHARED) -> list[str]:
    """The captures of the collections, and hex dumps that are none, by their path in them."""
    root = shared / "captures"
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.suffix in _SUFFIXES)


def analyzed_foreign(name: str, shared: Path = SHARED) -> Any:
    """The result of kwsniff.analyze, or the CaptureError that it raised."""
    try:
        # One holds TLS secrets; what the lists and tshark say is of the bytes as they are.
        return kwsniff.analyze(str(shared / "captures" / name), tls_keylog=False, tables=TABLES)
    except CaptureError as error:
        return error


def _counted(rows: Iterable[tuple[Any, ...]]) -> dict[str, int]:
    counts = Counter(" ".join("-" if cell is None else str(cell) for cell in row) for row in rows)
    return dict(sorted(counts.items()))


def summarized(result: Any, shared: Path = SHARED) -> Result:
    """What is frozen of a result: counts by kind, no times and no addresses."""
    if isinstance(result, CaptureError):
        return {"error": str(result).replace(f"{shared / 'captures'}/", "")}
    (capture,) = result.captures.to_pylist()
    bins = {key[:-6]: value for key, value in capture.items() if key.endswith("_bytes") and value}
    payload = bins.pop("tcp_payload", 0)
    if sum(bins.values()) != payload:
        raise AssertionError(f"the bins of {capture['capture']} do not add up: {bins}, not {payload}")
    summary: Result = {
        "packets": {key.removeprefix("skipped_"): capture[key] for key in _PACKETS if capture[key]},
        "connections": _counted(
            (row["protocol"], row["ending"], row["role_source"]) for row in result.connections.to_pylist()
        ),
        "calls": _counted(
            (row["api_name"], row["api_version"], row["status"], row["reason"])
            for row in result.api_calls.to_pylist()
        ),
        "anomalies": _counted((row["name"],) for row in result.anomalies.to_pylist()),
        "bytes": bins,
    }
    summary |= {key: True for key in ("truncated", "damaged") if capture[key]}
    return {key: value for key, value in summary.items() if value}


def frozen_results() -> dict[str, Result]:
    results: dict[str, Result] = json.loads(GOLDEN.read_text("utf-8"))["files"]
    return results


def _text(results: dict[str, Result]) -> str:
    """One line per capture, so that a change shows which ones it touches."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(results[name])}" for name in sorted(results))
    return f'{{\n "verified_by": {json.dumps(WITNESSES, indent=2)},\n "files": {{\n{lines}\n }}\n}}\n'


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.pipeline.foreign", description=__doc__)
    parser.add_argument("--update", action="store_true", help="freeze today's results")
    update = parser.parse_args(arguments).update
    found = {name: summarized(analyzed_foreign(name)) for name in foreign_files()}
    known = frozen_results() if GOLDEN.exists() else {}
    changed = [name for name in sorted({*found, *known}) if found.get(name) != known.get(name)]
    for name in changed:
        sys.stdout.write(f"{name}\n  was {known.get(name)}\n  is  {found.get(name)}\n")
    if update:
        GOLDEN.write_text(_text(found), "utf-8")
    sys.stdout.write(f"{len(changed)} of {len(found)} differ\n")
    return 1 if changed and not update else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
