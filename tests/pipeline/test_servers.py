"""The release of every recorded broker is found; its name in about.toml is the witness."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import kwsniff

CAPTURES = Path(__file__).parents[2] / "captures"
RELEASE = re.compile(r"Apache Kafka ([\d.]+)")
ABOUTS = [*sorted(CAPTURES.glob("*/about.toml")), *sorted(CAPTURES.glob("incidents/*/about.toml"))]


def recordings() -> list[tuple[Path, str]]:
    """Captures of a broker with its release."""
    found = []
    for path in ABOUTS:
        about = tomllib.loads(path.read_text("utf-8"))
        release = RELEASE.search(about["broker"]["name"])
        file = about.get("file") or next(iter(about["files"].values()))
        if release:
            found.append((path.parent / file, release[1]))
    return found


def _proxies(path: Path) -> list[int]:
    about = tomllib.loads((path.parent / "about.toml").read_text("utf-8"))
    ports: list[int] = about["broker"].get("proxies", [])
    return ports


WHOLE_LIST = 40
"""Ranges of a controller of 2.8 and later, at the least; mock brokers list fewer."""


@pytest.mark.sample(12)
@pytest.mark.parametrize(("path", "release"), recordings(), ids=lambda each: str(each)[-60:])
def test_the_release_of_a_recorded_broker_is_in_the_range(path: Path, release: str) -> None:
    found = kwsniff.analyze(path, tables=["servers", "api_ranges"])
    listed = Counter((row["broker_address"], row["broker_port"]) for row in found.api_ranges.to_pylist())
    known = [row for row in found.servers.to_pylist() if row["product"] != "unknown"]
    # A proxy offers what both it and its brokers know.
    assert {(row["address"], row["port"]) for row in known} == {
        address
        for address, ranges in listed.items()
        if ranges >= WHOLE_LIST and address[1] not in _proxies(path)
    }
    for row in known:
        least, most = _numbers(row["version_min"]), _numbers(row["version_max"])
        assert row["product"] == "apache_kafka"
        assert least <= _numbers(release) <= most
        assert least[0] == most[0]


def _numbers(release: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", release)[:3]]
