"""Texts from the wire and names of files, in everything that is printed: none of them steers a terminal."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kwsniff.cli.main import run
from kwsniff.live.prometheus import LONGEST_LABEL, Series
from kwsniff.texts import clean, json_text
from tests.hostile.flood import HEADER
from tests.hostile.greed import Line
from tests.traffic import messages

C1, BIDI, LINE, ESCAPE = "\x9b", "\u202e", "\u2028", "\x1b"
FOREIGN = f"a{C1}b{BIDI}c{LINE}d{ESCAPE}[31m{chr(0x7F)}e\u2066\U000e0041 \u00e9\u4e2d"
STEERING = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)
"""What no output may have: controls but the end of a line, signs of direction, separators, tags."""


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    line = Line()
    calls = [
        messages.api_versions(3, 1, client_id=FOREIGN),
        messages.metadata(9, 2, [FOREIGN], client_id=FOREIGN, errors={FOREIGN: 3}),
        messages.fetch(12, 3, {FOREIGN: {0: b""}}, client_id=FOREIGN, errors={(FOREIGN, 0): 3}),
    ]
    path = tmp_path / f"cap{C1}{BIDI}{LINE}ture.pcap"
    path.write_bytes(HEADER + line.open() + b"".join(line.talk(call) for call in calls))
    return path


VERBS = {
    "analyze": ["analyze", "CAPTURE"],
    "analyze --json": ["analyze", "CAPTURE", "--json"],
    "show": ["show", "CAPTURE"],
    "show --json": ["show", "CAPTURE", "--json"],
    "show --hex": ["show", "CAPTURE", "--hex"],
    "why": ["why", "CAPTURE"],
    "why --json": ["why", "CAPTURE", "--json"],
    "upgrade": ["upgrade", "4.3.1", "CAPTURE"],
    "upgrade --json": ["upgrade", "4.3.1", "CAPTURE", "--json"],
    "compare": ["compare", "CAPTURE", "CAPTURE"],
    "compare --json": ["compare", "CAPTURE", "CAPTURE", "--json"],
    "sql": ["sql", "TABLES", "select client_id, topics from api_calls"],
    "sql --format json": ["sql", "TABLES", "select client_id, topics from api_calls", "--format", "json"],
    "wireshark": ["wireshark", "TABLES", "-o", "FOLDER"],
    "not there": ["analyze", f"/no/{FOREIGN}"],
    "no verb": [FOREIGN],
    "no option": ["analyze", "CAPTURE", f"--{FOREIGN}"],
    "no limit": ["analyze", "CAPTURE", "--limit", f"{FOREIGN}=1"],
    "no release": ["upgrade", FOREIGN, "CAPTURE"],
    "no table": ["analyze", "CAPTURE", "--table", FOREIGN],
    "no API": ["explain", FOREIGN],
    "no bytes": ["decode", FOREIGN],
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("verb", list(VERBS))
def test_no_output_has_signs_that_steer(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    places = {"CAPTURE": str(capture), "FOLDER": str(tmp_path / "index")}
    arguments = [places.get(each, each) for each in VERBS[verb]]
    if "TABLES" in arguments:
        run(["analyze", str(capture), "-o", str(tmp_path / "tables")])
        arguments[1] = str(tmp_path / "tables")
        capsys.readouterr()
    with suppress(SystemExit):
        run(arguments)
    told = capsys.readouterr()
    assert told.out + told.err
    for text in (told.out, told.err):
        assert STEERING.findall(text) == []
    if "json" in verb:
        documents = told.out.splitlines() if verb == "show --json" else [told.out]
        texts = [text for each in documents for text in _texts(json.loads(each))]
        assert (
            verb == "compare --json"
            or any(FOREIGN in text for text in texts)
            or "upgrade" in verb
            or "why" in verb
        )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from (key, *_texts(each))
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def test_texts_for_people_and_for_programs() -> None:
    assert clean(FOREIGN) == ("a\\x9bb\\u202ec\\u2028d\\x1b[31m\\x7fe\\u2066\\U000e0041 \u00e9\u4e2d")
    given = {"a": [FOREIGN, "\udc80", 1.5, None], FOREIGN: float("nan")}
    text = json_text(given)
    assert STEERING.findall(text) == []
    assert "\u00e9\u4e2d" in text
    assert json.loads(text) == {"a": [FOREIGN, "\udc80", 1.5, None], FOREIGN: None}


def test_labels_of_metrics_are_short_and_plain() -> None:
    metrics = Series()
    label = metrics._bound("client", FOREIGN)
    assert STEERING.findall(label) == []
    long = [metrics._bound("client", f"{FOREIGN * 1000}{number}") for number in range(3)]
    assert len(set(long)) == 3
    assert max(map(len, long)) <= LONGEST_LABEL
