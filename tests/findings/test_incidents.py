"""Recorded incidents: what was done to the system is known, and found; where nothing was done, nothing is."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.findings.conftest import FindingsOf
from tests.house.tree import ROOT

INCIDENTS = ROOT / "captures" / "incidents"
SHARED = ROOT.parent / "shared" / "incidents"
BESIDE_BROKERS = {
    "path_dead": "nothing was under way when the path died: there it is a client that says nothing",
}
"""Incidents that only the client's recording shows."""

GIVEN = {
    "broker_pause": ("broker_stalled", "broker", "10.77.0.1:9092"),
    "connection_churn": ("connection_churn", "client", "webshop"),
    "lag_grows": ("lag_grows", "client", "lagger"),
    "metadata_storm": ("metadata_storm", "client", "dashboard"),
    "old_java_0.10.2.2_on_4.3": ("broker_hangs_up", "client", None),
    "request_storm": ("request_storm", "client", "shop"),
    "slow_consumer": ("poll_interval_exceeded", "client", "billing-1"),
    "static_fenced": ("static_id_shared", "configuration", None),
    "tls_to_plain": ("tls_on_plaintext", "client", None),
    "txn_timeout": ("transaction_timed_out", "client", "till-1"),
    "wrong_topic": ("unknown_topic", "client", "ordres"),
}
HEALTHY = (
    "healthy",
    "far_client_at_broker",
    "new_rdkafka_on_3.9",
    "old_java_1.1.1_on_3.9",
    "old_kp_2.6_on_3.9",
)


Found = Callable[[Path], list[tuple[str, str, str, str]]]


@pytest.fixture
def found_in(findings_of: FindingsOf) -> Found:
    return lambda capture: [
        (row["finding"], row["severity"], row["blames"], row["subject"]) for row in findings_of(capture)
    ]


def _recordings() -> list[tuple[str, Path, str]]:
    found = []
    for about in sorted(INCIDENTS.glob("*/about.toml")):
        said = tomllib.loads(about.read_text("utf-8"))
        for place, file in said["files"].items():
            name = about.parent.name
            if not (place == "broker" and name in BESIDE_BROKERS):
                found.append((f"{name}-{place}", about.parent / file, said["finding"]))
    return found


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("capture", "finding"), [each[1:] for each in _recordings()], ids=[each[0] for each in _recordings()]
)
def test_a_recorded_incident_is_among_the_first_three(capture: Path, finding: str, found_in: Found) -> None:
    found = found_in(capture)
    if finding:
        assert finding in [name for name, *_ in found[:3]]
    else:
        assert [each for each in found if each[1] != "info"] == []


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", GIVEN)
def test_an_incident_with_a_known_cause_comes_first(name: str, found_in: Found) -> None:
    capture = SHARED / f"{name}.pcap"
    if not capture.is_file():
        pytest.skip("the recordings are not beside this checkout")
    finding, blames, subject = GIVEN[name]
    first, severity, who, what = found_in(capture)[0]
    assert (first, who) == (finding, blames)
    assert severity != "info"
    assert subject is None or what == subject


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", HEALTHY)
def test_where_nothing_is_wrong_nothing_is_said(name: str, found_in: Found) -> None:
    capture = SHARED / f"{name}.pcap"
    if not capture.is_file():
        pytest.skip("the recordings are not beside this checkout")
    assert [each for each in found_in(capture) if each[1] != "info"] == []


def test_a_broker_that_reads_a_request_and_closes_has_no_limit_of_connections(found_in: Found) -> None:
    # It acknowledges the request and ends with a FIN; who closes unread bytes resets (RFC 1122, 4.2.2.13).
    found = found_in(ROOT / "captures" / "versions_3_9" / "capture.pcap")
    assert "connection_limit" not in [name for name, *_ in found]
    assert "version_not_offered" in [name for name, *_ in found]


@pytest.mark.parametrize(("name", "milliseconds"), [("timeout_sarama", 400), ("timeout_too_short", 300)])
def test_a_client_gave_up_when_its_settings_say(
    name: str, milliseconds: int, findings_of: FindingsOf
) -> None:
    """Net.ReadTimeout and request.timeout.ms, as about.toml has them; the answers came later than that."""
    rows = findings_of(INCIDENTS / name / "client.pcap")
    (found,) = (row for row in rows if row["finding"] == "timeout_too_short")
    assert found["value"] == pytest.approx(milliseconds, rel=0.02)
    assert found["expected"] > found["value"]
