"""One change of a definition, written into a small folder of layouts: its text is known line by line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kwsniff.errors import LayoutError
from kwsniff.layout.catalog import Catalog
from kwsniff.layout.dissectors import dissectors_folder
from tests.layout.release import __main__, update
from tests.layout.release.tables import add_errors, add_release, order, read_errors
from tests.layout.release.update import Update

LAYOUT = """\
api 7 Thing 0-2 flexible 2+ internal

# What is said here stays.

request
    name       string   topic
    old        int32                 0-1
    items      []                    1+
        item   int32    partition

# And here.
response
    error_code  int16   error
    note        string

alternate request 0 releases 2.0
    name  bytes
"""
Fields = list[dict[str, Any]]
REQUEST: Fields = [
    {"name": "Name", "type": "string", "versions": "0+"},
    {"name": "Old", "type": "int32", "versions": "0-1"},
    {
        "name": "Items",
        "type": "[]Item",
        "versions": "1+",
        "fields": [{"name": "Item", "type": "int32", "versions": "1+"}],
    },
]
RESPONSE: Fields = [
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "Note", "type": "string", "versions": "0+"},
]


@pytest.fixture
def layouts(tmp_path: Path) -> Path:
    folder = tmp_path / "layouts"
    folder.mkdir()
    ours = dissectors_folder() / "kafka"
    for name in ("headers.layout", "names.txt", "public_settings.txt", "enums.txt"):
        shutil.copy(ours / name, folder)
    (folder / "07_thing.layout").write_text(LAYOUT, "utf-8")
    (folder / "releases.tsv").write_text("release\t2.0.0\t2.1.0\n7\t2.0.0:0\t2.1.0:0-2\n", "utf-8")
    (folder / "errors.txt").write_text("  0  NONE  final  0.8.2.0  no error\n", "utf-8")
    return folder


def _definition(folder: Path, name: str, kind: str, versions: str, fields: Fields, **more: Any) -> None:
    facts = {
        "name": name,
        "type": kind,
        "validVersions": versions,
        "flexibleVersions": "2+",
        "fields": fields,
    }
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({"apiKey": 7} | facts | more), "utf-8")


def _update(
    layouts: Path, versions: str, request: Fields, release: str = "2.2.0", **more: Any
) -> dict[str, list[str]]:
    folder = layouts.parent / "message"
    _definition(folder, "ThingRequest", "request", versions, request, **more)
    _definition(folder, "ThingResponse", "response", versions, RESPONSE)
    made = Update(layouts, folder, release)
    made.run()
    Catalog(layouts).check()
    return made.notes


def _request(layouts: Path) -> list[str]:
    """The lines of the request, without their columns."""
    lines = (layouts / "07_thing.layout").read_text("utf-8").partition("request\n")[2].splitlines()
    return [" ".join(line.split()) for line in lines[: lines.index("")]]


def test_a_version_without_new_fields_changes_the_first_line_alone(layouts: Path) -> None:
    notes = _update(layouts, "0-3", REQUEST)
    text = (layouts / "07_thing.layout").read_text("utf-8")
    assert text.splitlines()[0] == "api 7 Thing 0-3 flexible 2+ internal"
    assert text.splitlines()[1:4] == LAYOUT.splitlines()[1:4]
    assert text.partition("# And here.")[2] == LAYOUT.partition("# And here.")[2]
    assert _request(layouts) == ["name string topic", "old int32 0-1", "items [] 1+", "item int32 partition"]
    assert notes == {}


def test_columns_are_as_wide_as_their_words(layouts: Path) -> None:
    _update(layouts, "0-3", [*REQUEST, {"name": "RatherLong", "type": "int64", "versions": "3+"}])
    text = (layouts / "07_thing.layout").read_text("utf-8")
    assert text.partition("request\n")[2].partition("\n\n")[0].splitlines() == [
        "    name         string  topic",
        "    old          int32              0-1",
        "    items        []                 1+",
        "        item     int32   partition",
        "    rather_long  int64              3+",
    ]


def test_a_new_field_stands_where_the_bytes_have_it(layouts: Path) -> None:
    new = {"name": "Between", "type": "bytes", "versions": "3+", "nullableVersions": "3+"}
    notes = _update(layouts, "0-3", [*REQUEST[:2], new, REQUEST[2]])
    assert _request(layouts)[1:3] == ["old int32 0-1", "between bytes? 3+"]
    assert notes == {
        update.MEANINGS: ["ThingRequest /between (bytes)"],
        update.BYTES: ["ThingRequest /between"],
        update.NAMES: ["between -"],
    }


def test_a_field_that_ends_ends(layouts: Path) -> None:
    _update(layouts, "0-3", [REQUEST[0] | {"versions": "0-2"}, *REQUEST[1:]])
    assert _request(layouts)[0] == "name string topic 0-2"


def test_a_field_that_comes_back_has_two_lines(layouts: Path) -> None:
    _update(layouts, "0-3", [*REQUEST, {"name": "Old", "type": "int32", "versions": "3+"}])
    assert _request(layouts) == [
        "name string topic",
        "old int32 0-1",
        "items [] 1+",
        "item int32 partition",
        "old int32 3+",
    ]


def test_a_field_that_comes_back_in_its_place_has_two_lines(layouts: Path) -> None:
    back = {"name": "Old", "type": "int32", "versions": "3+"}
    _update(layouts, "0-3", [*REQUEST[:2], back, REQUEST[2]])
    assert _request(layouts)[1:3] == ["old int32 0-1", "old int32 3+"]


def test_null_is_legal_from_a_version_on(layouts: Path) -> None:
    _update(layouts, "0-4", [REQUEST[0] | {"nullableVersions": "3+"}, *REQUEST[1:]])
    assert _request(layouts)[0] == "name string?3+ topic"


def test_a_tagged_field_may_come_without_a_version(layouts: Path) -> None:
    new = {
        "name": "Mark",
        "type": "int64",
        "versions": "2+",
        "taggedVersions": "2+",
        "tag": 0,
        "default": "-1",
    }
    notes = _update(layouts, "0-2", [*REQUEST, new])
    assert _request(layouts)[-1] == "mark int64 2+ tag 0 = -1"
    assert update.CHANGED not in notes


def test_tagged_fields_stay_the_last_ones(layouts: Path) -> None:
    mark = {"name": "Mark", "type": "int64", "versions": "2+", "taggedVersions": "2+", "tag": 0}
    _update(layouts, "0-2", [*REQUEST, mark])
    _update(layouts, "0-3", [*REQUEST, mark, {"name": "Last", "type": "int8", "versions": "3+"}])
    assert _request(layouts)[-2:] == ["last int8 3+", "mark int64 2+ tag 0"]


def test_a_new_field_means_what_fields_of_its_name_mean_if_they_agree(layouts: Path) -> None:
    for key, value in ((8, "topic"), (9, "topic"), (10, "topic"), (11, "group")):
        fields = f"    title  string  topic\n    value  string  {value}\n"
        text = f"api {key} Other{key} 0\n\nrequest\n{fields}\nresponse\n{fields}"
        (layouts / f"{key:02d}_other{key}.layout").write_text(text, "utf-8")
    new = [{"name": name, "type": "string", "versions": "3+"} for name in ("Title", "Value")]
    notes = _update(layouts, "0-3", [*REQUEST, *new])
    assert _request(layouts)[-2:] == ["title string topic 3+", "value string 3+"]
    assert notes[update.MEANINGS] == [
        "ThingRequest /title (string, written: topic)",
        "ThingRequest /value (string)",
    ]


def test_a_field_keeps_its_meaning_under_a_new_name(layouts: Path) -> None:
    notes = _update(layouts, "0-3", [REQUEST[0] | {"name": "Title"}, *REQUEST[1:]])
    assert _request(layouts)[0] == "title string topic"
    assert notes == {update.RENAMED: ["ThingRequest /name -> title"]}


def test_other_bytes_under_the_same_version_leave_the_earlier_ones_as_an_alternate(layouts: Path) -> None:
    changed = [REQUEST[0], REQUEST[1] | {"type": "int64"}, REQUEST[2]]
    notes = _update(layouts, "0-2", changed)
    assert _request(layouts)[:2] == ["name string topic", "old int64 0-1"]
    catalog = Catalog(layouts)
    layout = catalog.layout(7)
    assert layout is not None
    made = [
        (each.versions, each.releases, [field.type for field in each.fields])
        for each in layout.messages
        if each.releases and each.releases != "2.0"
    ]
    assert made == [((1,), "2.1", ["string", "int32", "struct"]), ((0,), "2.0-2.1", ["string", "int32"])]
    assert len(notes[update.CHANGED]) == 2


def test_a_new_api_is_a_new_file(layouts: Path) -> None:
    folder = layouts.parent / "message"
    for kind in ("request", "response"):
        fields = REQUEST if kind == "request" else RESPONSE
        name = f"OtherThing{kind.title()}"
        _definition(folder, name, kind, "1-2", fields, apiKey=8, listeners=["controller"])
    notes = _update(layouts, "0-2", REQUEST)
    assert (layouts / "08_other_thing.layout").read_text("utf-8").splitlines() == [
        "api 8 OtherThing 1-2 flexible 2+",
        "",
        "request",
        "    name      string",
        "    old       int32   1",
        "    items     []",
        "        item  int32",
        "",
        "response",
        "    error_code  int16",
        "    note        string",
    ]
    assert notes[update.TRAITS] == ["08_other_thing.layout (listeners: controller)"]
    assert Catalog(layouts).releases.speaks("2.2.0") == {7: (0, 2), 8: (1, 2)}


def test_a_new_schema_goes_to_the_file_of_its_module(layouts: Path) -> None:
    folder = layouts.parent / "message"
    _update(layouts, "0-2", REQUEST)
    _definition(folder, "ThingRecord", "data", "0", RESPONSE, flexibleVersions="0+", apiKey=3)
    made = Update(layouts, folder, "2.2.0")
    made.run()
    assert (layouts / "clients.layout").read_text("utf-8").splitlines() == [
        "# Schemas of clients.",
        "",
        "schema ThingRecord 0 flexible 0+ type 3",
        "    error_code  int16",
        "    note        string",
    ]
    assert made.notes[update.SCHEMAS] == ["ThingRecord in clients.layout"]
    Catalog(layouts).check()


def test_the_command_writes_checks_and_says_what_needs_a_human(
    layouts: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = layouts.parent / "message"
    new = {"name": "Between", "type": "bytes", "versions": "3+"}
    _definition(folder, "ThingRequest", "request", "0-3", [*REQUEST, new])
    _definition(folder, "ThingResponse", "response", "0-3", RESPONSE)
    errors = layouts.parent / "errors.tsv"
    errors.write_text("0\tNONE\tfalse\n1\tBUSY_NOW\ttrue\n", "utf-8")
    layouts.rename(layouts.parent / "kafka")
    monkeypatch.setattr(__main__, "dissectors_folder", lambda: layouts.parent)
    __main__.main(["2.2.0", str(folder), "--errors", str(errors)])
    assert capsys.readouterr().out.splitlines() == [
        f"{update.MEANINGS}:",
        "    ThingRequest /between (bytes)",
        f"{update.BYTES}:",
        "    ThingRequest /between",
        f"{update.NAMES}:",
        "    between -",
        f"{update.ERRORS}:",
        "    1 BUSY_NOW",
        "8 layouts compile",
    ]


def test_what_is_no_longer_spoken_is_none_and_said(layouts: Path) -> None:
    folder = layouts.parent / "message"
    _definition(folder, "ThingRecord", "data", "0", RESPONSE, apiKey=3)
    made = Update(layouts, folder, "2.2.0")
    made.run()
    assert made.notes[update.DROPPED] == ["Thing"]
    assert (layouts / "releases.tsv").read_text("utf-8").splitlines()[
        1
    ] == "7\t2.0.0:0\t2.1.0:0-2\t2.2.0:none"
    assert (layouts / "07_thing.layout").read_text("utf-8") == LAYOUT


def test_an_empty_folder_is_no_release(layouts: Path) -> None:
    with pytest.raises(LayoutError, match="no message definitions in this folder"):
        Update(layouts, layouts.parent / "nothing", "2.2.0")


def test_what_cannot_be_written_is_said(layouts: Path) -> None:
    """A version that is flexible now and was not is no change of its fields."""
    notes = _update(layouts, "0-2", REQUEST, flexibleVersions="1+")
    assert notes == {update.ODD: ["ThingRequest version 1: flexible is True in the definition"]}


def test_a_version_that_is_not_stable_is_hidden(layouts: Path) -> None:
    _update(layouts, "0-3", REQUEST, latestVersionUnstable=True)
    assert (layouts / "releases.tsv").read_text("utf-8").splitlines()[1].endswith("\t2.2.0:0-3/0-2")


TABLE = "# Head.\nrelease\t2.0.0\t2.1.0-SNAPSHOT\n0\t2.0.0:3-9/0-9\n7\t2.0.0:0\t2.1.0-SNAPSHOT:0-2\n"


@pytest.mark.parametrize(
    ("release", "spoken", "lines"),
    [
        # A snapshot gives way to its release.
        ("2.1.0", {0: ((3, 9), None), 7: ((0, 2), None)}, "2.0.0\t2.1.0|2.0.0:3-9/0-9|2.0.0:0\t2.1.0:0-2"),
        # A patch release goes before what is newer, which keeps its range.
        (
            "2.0.1",
            {0: ((3, 9), None), 7: ((0, 0), None)},
            "2.0.0\t2.0.1\t2.1.0-SNAPSHOT|2.0.0:3-9/0-9|2.0.0:0\t2.1.0-SNAPSHOT:0-2",
        ),
        (
            "2.0.1",
            {0: ((3, 10), None)},
            "2.0.0\t2.0.1\t2.1.0-SNAPSHOT|2.0.0:3-9/0-9\t2.0.1:3-10/0-10\t2.1.0-SNAPSHOT:3-9/0-9"
            "|2.0.0:0\t2.0.1:none\t2.1.0-SNAPSHOT:0-2",
        ),
    ],
)
def test_a_release_has_its_place_in_the_table(release: str, spoken: dict[int, Any], lines: str) -> None:
    names, first, second = lines.split("|")
    expected = f"# Head.\nrelease\t{names}\n0\t{first}\n7\t{second}\n"
    assert add_release(TABLE, release, spoken) == expected


def test_releases_are_in_order() -> None:
    names = ["0.10.2.2", "0.11.0.0", "2.9.0", "2.10.0-SNAPSHOT", "2.10.0", "2.10.1"]
    assert sorted(set(names), key=order) == names


def test_new_error_codes_wait_for_their_explanation(layouts: Path) -> None:
    errors = read_errors("code\tname\tretriable\n0\tNONE\tfalse\n1\tBUSY_NOW\ttrue\tBusyException\n")
    path = layouts / "errors.txt"
    known = Catalog(layouts).errors
    path.write_text(add_errors(path.read_text("utf-8"), known, "2.2.0", errors), "utf-8")
    new = Catalog(layouts).errors[1]
    assert (new.name, new.retriable, new.since, new.meaning) == ("BUSY_NOW", True, "2.2.0", "")
    assert path.read_text("utf-8").startswith("  0  NONE  final  0.8.2.0  no error\n")
