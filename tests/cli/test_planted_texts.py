"""Markup, scripts and signs that steer, planted in the names that packets carry, stay text in all outputs."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kwsniff.cli.main import run
from kwsniff.cli.sql import _write as _write_rows
from kwsniff.findings.sql import ask, open_console
from tests.cli.test_foreign_texts import STEERING
from tests.hostile.flood import HEADER
from tests.hostile.greed import Line, beat
from tests.traffic import messages
from tests.traffic.messages import Exchange

PLANTED = (
    "</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", "\"'><svg/onload=alert(3)>",
    "<!--", "{{7*7}}", "a\nb\r\x1b]0;c\x07\x1b[2J", "d\x9b31m\u202ee\u2066\u2028\u2029f\x7f", "\U000e0041g",
)  # fmt: skip


def _name(kind: str, how: str) -> str:
    """The name of a kind of thing: planted, or as harmless as can be."""
    return f"{kind}{''.join(PLANTED)}" if how == "planted" else f"{how}-{kind}"


def _calls(how: str, *, well: bool) -> Iterator[Exchange]:
    """What several findings are made of: unknown topics, quotas, errors of partitions; or, `well`, none."""
    client, topic, group, member, host = (
        _name(kind, how) for kind in ("client", "topic", "group", "member", "host")
    )
    yield messages.api_versions(3, 1, client_id=client, software=(_name("software", how), _name("v", how)))
    for number in range(2, 40):
        yield messages.metadata(
            9, number, [topic], client_id=client, errors={} if well else {topic: 3}, host=host
        )
    for number in range(41, 60):
        yield beat(number, client, group, member)
    refused = [{} if well else {(topic, 0): code} for code in (6, 29)]
    for number in range(60, 90):
        yield messages.fetch(
            11, number, {topic: {0: b""}}, client_id=client, errors=refused[0], throttle_ms=0 if well else 700
        )
        yield messages.produce(8, number + 100, {topic: {0: b""}}, client_id=client, errors=refused[1])


def _write(path: Path) -> Path:
    line, (how, _, well) = Line(), path.stem.partition(" ")
    calls = _calls(how, well=well != "")
    path.write_bytes(HEADER + line.open() + b"".join(line.talk(call) for call in calls))
    return path


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("planted")
    found = {
        name: str(_write(folder / f"{name}.pcap"))
        for name in ("plain", "plain well", "planted", "planted well")
    }
    assert run(["analyze", found["planted"], "-o", str(folder / "tables")]) == 0
    return {**found, "TABLES": str(folder / "tables")}


class _Page(HTMLParser):
    """Counts what a page has of elements, of attributes that are scripts, and gathers its text."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts = Counter[str]()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts.update(
            [tag] if tag in ("script", "img", "svg", "iframe", "object", "link", "base") else []
        )
        self.scripts.update(name for name, _ in attrs if name.startswith("on") or name in ("src", "srcdoc"))
        self.scripts.update(
            value[:11] for _, value in attrs if value and value.lower().strip().startswith("javascript:")
        )

    def handle_data(self, data: str) -> None:
        self.text += data


def _page(path: Path) -> tuple[_Page, str]:
    page, text = _Page(), path.read_text("utf-8")
    page.feed(text)
    return page, text


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["why", "compare"])
def test_a_page_has_no_element_sign_or_script_that_a_name_brought(
    captures: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    """Beside the page of a capture with harmless names: the same elements, and no more signs that steer."""
    pages = {}
    for name in ("plain", "planted"):
        inputs = [captures[name]] if verb == "why" else [captures[f"{name} well"], captures[name]]
        run([verb, *inputs, "--html", str(tmp_path / f"{name}.html")])
        pages[name] = _page(tmp_path / f"{name}.html")
    capsys.readouterr()
    (plain, plain_text), (planted, planted_text) = pages["plain"], pages["planted"]
    assert "alert(2)" in planted.text
    assert "<script>alert(1)" not in planted_text
    assert set(planted.scripts) == set(plain.scripts)
    if verb == "why":
        assert planted.scripts == plain.scripts
    assert Counter(STEERING.findall(planted_text)) == Counter(STEERING.findall(plain_text))


VERBS = {
    "why": ["why", "PLANTED", "--all"],
    "why --json": ["why", "PLANTED", "--json"],
    "why of tables": ["why", "TABLES"],
    "compare": ["compare", "PLAIN", "PLANTED"],
    "compare --json": ["compare", "PLAIN", "PLANTED", "--json"],
    "upgrade": ["upgrade", "4.3.1", "PLANTED"],
    "upgrade --json": ["upgrade", "4.3.1", "PLANTED", "--json"],
    "slice": ["slice", "PLANTED", "--api", "Metadata", "-o", "OUT"],
    "slice --json": ["slice", "PLANTED", "--api", "Metadata", "-o", "OUT", "--json"],
    "sql": ["sql", "TABLES", "select client_id, topics, group_id from api_calls"],
    "sql --format json": ["sql", "TABLES", "from findings", "--format", "json"],
    "live --lines": ["live", "-i", "PLANTED", "--speed", "max", "--lines"],
    "live --json": ["live", "-i", "PLANTED", "--speed", "max", "--json"],
    "live --lines --json": ["live", "-i", "PLANTED", "--speed", "max", "--json", "--lines"],
    "show": ["show", "PLANTED", "--api", "Metadata"],
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("verb", list(VERBS))
def test_what_is_printed_has_no_sign_that_a_name_brought(
    captures: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    places = {"PLAIN": captures["plain"], "PLANTED": captures["planted"], "TABLES": captures["TABLES"]}
    places["OUT"] = str(tmp_path / "out.pcapng")
    status = run([places.get(part, part) for part in VERBS[verb]])
    told = capsys.readouterr()
    assert status in (0, 1), told.err
    assert told.out
    assert STEERING.findall(told.out + told.err) == []
    if "json" in verb:
        for each in told.out.splitlines() if "live" in verb else [told.out]:
            json.loads(each)


def test_csv_is_exact_for_programs_and_harmless_on_terminals(captures: dict[str, str]) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    query = "select distinct client_id from api_calls"
    with open_console(captures["TABLES"]) as database:
        for out in (io.StringIO(newline=""), Terminal(newline="")):
            _write_rows(ask(database, query), "csv", out)
            _, (told,) = csv.reader(io.StringIO(out.getvalue(), newline=""))
            if out.isatty():
                assert STEERING.findall(out.getvalue()) == []
            else:
                assert told == _name("client", "planted")


def test_comments_of_a_slice_have_no_sign_that_a_name_brought(
    captures: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wireshark shows them beside packets."""
    out = tmp_path / "out.pcapng"
    assert run(["slice", captures["planted"], "--api", "Metadata", "-o", str(out)]) == 0
    capsys.readouterr()
    comments = _comments(out.read_bytes())
    assert comments
    assert [STEERING.findall(each) for each in comments] == [[] for _ in comments]


def _comments(data: bytes) -> list[str]:
    """Of a pcapng's packets: option 1 of each enhanced packet block (draft-ietf-opsawg-pcapng 3.5, 4.3)."""
    found, at = [], 0
    while at < len(data):
        kind, size = (int.from_bytes(data[at + each : at + each + 4], "little") for each in (0, 4))
        if kind == 6:
            captured = int.from_bytes(data[at + 20 : at + 24], "little")
            spot = at + 28 + captured + -captured % 4
            while spot + 4 <= at + size - 4:
                code, length = (
                    int.from_bytes(data[spot + each : spot + each + 2], "little") for each in (0, 2)
                )
                if code == 1:
                    found.append(data[spot + 4 : spot + 4 + length].decode())
                spot += 4 + length + -length % 4
        at += size
    return found


def test_the_plants_are_what_the_sign_looks_for() -> None:
    assert all(re.search("[<{'\"]", each) or STEERING.search(each) for each in PLANTED)
