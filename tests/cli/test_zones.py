"""--tz: the zone in which people read times; programs get UTC."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest

pytest.importorskip("kwsniff.core.analyzer", reason="the analyzer is not built")

import kwsniff
from kwsniff.cli.main import run
from kwsniff.errors import UsageError
from kwsniff.findings.rule import load_rules
from kwsniff.sources.times import parse_moment
from kwsniff.zones import UTC_ZONE, Zone, from_iso, parse_zone
from tests.house.tree import ROOT

FIRST_STEPS = str(ROOT / "captures" / "first_steps" / "capture.pcap")
STALLED = str(ROOT / "captures" / "incidents" / "broker_stalled" / "broker.pcap")
SASL = str(ROOT / "captures" / "incidents" / "sasl_expected" / "broker.pcap")
WITH_ZONE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC")
# date -u -d @1792889999.999 and the lines of `zdump -v Europe/Berlin` for 2026: clocks go back at 01:00 UTC.
BEFORE, AFTER = 1_792_889_999_999_000_000, 1_792_890_000_000_000_000
VERBS = (
    ["analyze", FIRST_STEPS], ["why", FIRST_STEPS], ["show", FIRST_STEPS], ["upgrade", "4.3.1", FIRST_STEPS],
    ["slice", FIRST_STEPS, "--error", "any", "-o", "never.pcapng"], ["compare", FIRST_STEPS, FIRST_STEPS],
    ["sql", "never"], ["live", "-i", FIRST_STEPS], ["pipeline", FIRST_STEPS, "-o", "never"], ["decode", "00"],
)  # fmt: skip


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = run(arguments)
    return status, *capsys.readouterr()


@pytest.mark.parametrize(
    ("zone", "moment"),
    [
        ("UTC", "2026-10-25 00:59:59.999 UTC"),
        ("z", "2026-10-25 00:59:59.999 UTC"),
        ("+02:00", "2026-10-25 02:59:59.999 +02:00"),
        ("UTC-3", "2026-10-24 21:59:59.999 -03:00"),
        ("+0530", "2026-10-25 06:29:59.999 +05:30"),
        ("Europe/Berlin", "2026-10-25 02:59:59.999 +02:00"),
        ("Asia/Kathmandu", "2026-10-25 06:44:59.999 +05:45"),
    ],
)
def test_a_time_has_date_and_zone(zone: str, moment: str) -> None:
    assert parse_zone(zone).moment(BEFORE) == moment
    assert parse_moment(moment, "--since").nanoseconds == BEFORE  # it can be given back


def test_what_two_times_have_in_common_is_there_once() -> None:
    assert UTC_ZONE.between(BEFORE, AFTER) == "2026-10-25 00:59:59.999 UTC to 01:00:00.000"
    berlin = parse_zone("Europe/Berlin")
    assert berlin.between(BEFORE, AFTER) == "2026-10-25 02:59:59.999 +02:00 to 2026-10-25 02:00:00.000 +01:00"
    day = 86_400 * 10**9
    assert UTC_ZONE.between(AFTER, AFTER + day, 0) == "2026-10-25 01:00:00 UTC to 2026-10-26 01:00:00"
    assert UTC_ZONE.between(AFTER, AFTER + 999) == "2026-10-25 01:00:00.000 UTC"
    assert UTC_ZONE.between(None, AFTER, 0) == "2026-10-25 01:00:00 UTC"
    assert UTC_ZONE.between(None, None) == "an unknown time"


def test_a_zone_never_shifts_a_time_over_the_ends_of_the_calendar() -> None:
    assert Zone("-23:00", parse_zone("-23:00").info).moment(datetime(1, 1, 1)).endswith("00:00:00.000 UTC")


def test_times_of_json_are_read_to_the_nanosecond() -> None:
    assert from_iso("2026-10-25T00:59:59.999000000Z") == BEFORE
    assert from_iso("2026-10-25T01:00:00+00:00") == AFTER
    assert from_iso("2026-10-25T01:00:00.000000001Z") == AFTER + 1
    assert from_iso(None) is None


@pytest.mark.parametrize(
    ("zone", "hint"),
    [
        ("Berlin", "did you mean Europe/Berlin?"),
        ("europe/berlin", "did you mean Europe/Berlin"),
        ("Mars", "a name such as Europe/Berlin"),
        ("", "a name such as Europe/Berlin"),
        ("../../etc/passwd", "a name such as Europe/Berlin"),
        ("+24:00", "a name such as Europe/Berlin"),
    ],
)
def test_what_is_no_zone_says_what_may_have_been_meant(zone: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"^--tz {re.escape(zone)}: unknown time zone") as raised:
        parse_zone(zone)
    assert hint in str(raised.value)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_every_verb_refuses_it_in_one_line(verb: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = said(capsys, *verb, "--tz", "Berlin")
    assert (status, out) == (2, "")
    assert err == "kwsniff: error: --tz Berlin: unknown time zone; did you mean Europe/Berlin?\n"


def test_every_finding_has_its_date_once(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(capsys, "why", SASL, "--all")
    findings = re.findall(r"^(?:PROBLEM|WARNING) ", out, re.MULTILINE)
    assert len(findings) > 2
    assert len(WITH_ZONE.findall(out)) == len(findings)


def test_sentences_of_findings_have_no_times() -> None:
    """They are in tables and JSON as well, whose readers choose the zone."""
    for rule in load_rules():
        assert not re.search(r"\{(since|until|first_time|last_time)\b", rule.text + rule.advice), rule.name


def test_people_read_the_zone_they_ask_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The capture begins on 2026-11-20 at 19:36:05.357773 UTC (tshark)."""
    _, out, _ = said(capsys, "analyze", FIRST_STEPS)
    assert ", 2026-11-20 19:36:05.357 UTC to 19:36:08.519\n" in out
    _, out, _ = said(capsys, "analyze", FIRST_STEPS, "--tz", "Asia/Kolkata", "-o", str(tmp_path / "out"))
    assert ", 2026-11-21 01:06:05.357 +05:30 to 01:06:08.519\n" in out
    _, out, _ = said(capsys, "show", FIRST_STEPS, "-n", "1", "--tz", "-03:30")
    assert "  request, frame 4, 2026-11-20 16:06:05.360361000 -03:30, " in out
    query = "select request_time, 1 as one from api_calls where request_frame = 4"
    _, out, _ = said(capsys, "sql", str(tmp_path / "out"), query, "--tz", "+1")
    assert out.splitlines()[1].split("  ")[0] == "2026-11-20 20:36:05.360361 +01:00"
    _, out, err = said(capsys, "show", FIRST_STEPS, "--since", "21:00", "--tz", "+1")
    assert err.endswith("the captures cover 2026-11-20 20:36:05.357 +01:00 to 20:36:08.519\n")


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_the_live_view_of_a_file_has_the_zone_of_its_times(
    zone: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = said(capsys, "live", "-i", STALLED, "--speed", "max", "--lines", "--tz", zone)
    begin, since = {
        "UTC": ("2026-11-22 00:48:53 UTC", "since 00:48:46"),
        "America/Los_Angeles": ("2026-11-21 16:48:53 -08:00", "since 16:48:46"),
    }[zone]
    last = out.splitlines()[-1]
    assert last.startswith(begin)
    assert since in last


@pytest.mark.slow
def test_programs_read_utc_whatever_was_asked_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    kwsniff.analyze(STALLED, output=tmp_path)
    for verb in (
        ["analyze", STALLED, "--json"], ["why", STALLED, "--json"], ["show", STALLED, "--json"],
        ["sql", str(tmp_path), "from api_calls", "--format", "json"],
        ["sql", str(tmp_path), "from api_calls", "--format", "csv"],
        ["live", "-i", STALLED, "--speed", "max", "--json"],
    ):  # fmt: skip
        plain, zoned = (_steady(said(capsys, *verb, *more)[1]) for more in ([], ["--tz", "+9"]))
        assert plain == zoned
        assert "+09:00" not in plain


def _steady(out: str) -> str:
    return re.sub(r"\"run_id\": \"[^\"]*\"", "", out)


@pytest.mark.slow
def test_the_page_has_the_zone(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    said(capsys, "why", STALLED, "--html", str(page), "--tz", "+05:30")
    text = page.read_text("utf-8")
    assert "from 2026-11-22 06:18:44.055 +05:30" in text
    assert "2026-11-22 06:18:46.353 +05:30 to 06:18:49.387" in text
    assert not WITH_ZONE.search(text)
    # Axes tick in the zone.
    ticks = {*re.findall(r'<span class="below"[^>]*>([0-9:]+)</span>', text)}
    assert ticks == {"06:18:46", "06:18:48", "06:18:50", "06:18:52"}


def test_a_time_without_an_offset_is_of_the_zone(capsys: pytest.CaptureFixture[str]) -> None:
    counts = []
    for words in (["19:36:06.5"], ["20:36:06.5", "--tz", "+1"], ["2026-11-20 15:36:06.5", "--tz", "-4"]):
        status, out, _ = said(capsys, "analyze", FIRST_STEPS, "--json", "--since", *words)
        found = json.loads(out)
        assert (status, found["since"]) == (0, "2026-11-20T19:36:06.500000000Z")
        counts.append(found["rows"]["api_calls"])
    assert len(set(counts)) == 1


def test_commands_of_findings_read_the_same_part_in_the_same_zone(capsys: pytest.CaptureFixture[str]) -> None:
    incident = str(ROOT / "captures" / "incidents" / "message_too_large" / "broker.pcap")
    _, out, _ = said(capsys, "why", incident, "--since", "2026-11-20 01:00", "--tz", "+1", "--json")
    commands = [each["command"] for each in json.loads(out)["findings"] if " show " in each["command"]]
    assert commands
    assert all("'--since=2026-11-20 01:00' --tz=+1" in command for command in commands)


def test_local_is_the_zone_of_the_machine() -> None:
    command = [sys.executable, "-m", "kwsniff.cli.main", "why", STALLED, "--tz", "local"]
    environment = {**os.environ, "TZ": "America/New_York"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert "When: 2026-11-21 19:48:46.353 -05:00 to 19:48:49.387" in done.stdout


def test_a_machine_without_names_of_zones_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import zoneinfo

    monkeypatch.setattr(zoneinfo, "available_timezones", set)
    monkeypatch.setattr(zoneinfo, "ZoneInfo", lambda name: (_ for _ in ()).throw(LookupError(name)))
    status, _, err = said(capsys, "why", STALLED, "--tz", "Europe/Berlin")
    assert status == 2
    assert "this system has no time zone database: give local, UTC or an offset such as +02:00" in err
