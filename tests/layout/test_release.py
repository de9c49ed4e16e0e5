"""A release's definitions, written into the layouts before it, make what stands in dissectors/ today."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.layout.drift import Shape, compare, read_definitions, shape_differences, shapes_of
from kwsniff.layout.model import Field, Message
from tests.broker import artifacts
from tests.layout.release import jars, update
from tests.layout.release.earlier import write_earlier
from tests.layout.release.tables import order, read_errors
from tests.layout.release.update import Update

TRUNK = "4.5.0-SNAPSHOT"
FACTS = Path(update.__file__).parent / "kafka_4.3.json"
#: What 4.3 did not have; other definitions that differ from trunk's are in the file of facts.
SINCE_4_3 = {
    "AbortedTxn",
    "StreamsGroupTopologyDescriptionUpdateRequest",
    "StreamsGroupTopologyDescriptionUpdateResponse",
    "UnregisterControllerRequest",
    "UnregisterControllerResponse",
    "UnregisterControllerRecord",
}
_GENERATION = "/generation_id is called generation_id_or_member_epoch"


class Case(NamedTuple):
    """`later`: names and bytes under the same version that changed after the release, so that today's differ.
    `moved`: messages with fields that have other names than before, or came later under the same version."""

    before: str
    release: str
    layouts: int
    new: int
    later: set[str]
    moved: set[str]


CASES = [
    Case(
        "3.8.1",
        "3.9.0",
        646,
        12,
        {
            *(f"TxnOffsetCommit request {version}: {_GENERATION}" for version in (3, 4)),
            *(
                f"Vote request {version}: /topics/partitions/candidate_{what} is called replica_{what}"
                for version, what in ((0, "epoch"), (0, "id"), (1, "epoch"), (1, "id"), (1, "directory_id"))
            ),
            "ListConfigResources response 0: /client_metrics_resources is called config_resources",
            "ListConfigResources response 0: /client_metrics_resources/name is called resource_name",
            # Early access, which has an alternate today.
            "ReadShareGroupStateSummary response 0: /results/partitions/start_offset is called leader_epoch",
            "ReadShareGroupStateSummary response 0: /results/partitions/start_offset: type is int64, "
            "in the definition int32",
            "ReadShareGroupStateSummary response 0: /results/partitions/start_offset is missing",
        },
        {
            "ListConfigResources response",
            "TxnOffsetCommit request",
            "Vote request",
            "ConsumerGroupCurrentMemberAssignmentValue",
            "ConsumerGroupMetadataValue",
            "ConsumerGroupTargetAssignmentMetadataValue",
            "OffsetCommitValue",
            "RemoteLogSegmentMetadataRecord",
            "RemoteLogSegmentMetadataSnapshotRecord",
            "ShareGroupMetadataValue",
            "TransactionLogValue",
        },
    ),
    Case(
        "4.2.1",
        "4.3.0",
        604,
        0,
        {
            *(f"TxnOffsetCommit request {version}: {_GENERATION}" for version in (3, 4, 5)),
            "StreamsGroupHeartbeat response 0: /acceptable_recovery_lag is called "
            "acceptable_recovery_lag_legacy",
        },
        {"TxnOffsetCommit request", "StreamsGroupHeartbeat response", "StreamsGroupMetadataValue"},
    ),
    Case("4.3.1", TRUNK, 618, 2, set(), {"TxnOffsetCommit request", "StreamsGroupHeartbeat response"}),
]


@pytest.fixture(scope="module")
def today() -> Catalog:
    return load_catalog()


@pytest.fixture(scope="module")
def folders(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Definitions by release. Those of 4.3 are trunk's with the facts in which it differed."""
    messages = shared / "kafka" / "messages"
    older = tmp_path_factory.mktemp("definitions")
    shutil.copytree(messages / TRUNK, older, dirs_exist_ok=True)
    paths = {path.stem: path for path in older.rglob("*.json")}
    for name in SINCE_4_3:
        paths[name].unlink()
    for facts in json.loads(FACTS.read_text("utf-8")):
        paths[facts["name"]].write_text(json.dumps(facts), "utf-8")
    return {"3.9.0": messages / "3.9.2", "4.3.0": older, TRUNK: messages / TRUNK}


def _errors(shared: Path, release: str) -> str:
    """Kafka's codes up to a release, of the table beside the definitions."""
    lines = (shared / "kafka" / "errors.tsv").read_text("utf-8").splitlines()[1:]
    since = [line.split("\t")[5].removeprefix("<=").partition("(")[0] for line in lines]
    kept = [line for line, first in zip(lines, since, strict=True) if order(first) <= order(release)]
    return "\n".join(kept)


def _earlier(today: Catalog, folder: Path, release: str) -> Catalog:
    """The layouts before a release; those of 4.3 with its names, too."""
    gone = {"AbortedTxn": (), "UnregisterControllerRecord": ()} if release == "4.3.1" else {}
    write_earlier(today, folder, release, gone)
    if release == "4.3.1":
        for file, new, old in (
            ("28_txn_offset_commit.layout", "generation_id_or_member_epoch", "generation_id"),
            (
                "88_streams_group_heartbeat.layout",
                "acceptable_recovery_lag_legacy",
                "acceptable_recovery_lag",
            ),
        ):
            path = folder / file
            assert new in path.read_text("utf-8")
            path.write_text(path.read_text("utf-8").replace(new, old), "utf-8")
        path = folder / "group_coordinator.layout"
        lines = path.read_text("utf-8").splitlines(keepends=True)
        path.write_text("".join(line for line in lines if "description_topology_epoch" not in line), "utf-8")
    return Catalog(folder)


def _messages(catalog: Catalog) -> Iterator[tuple[str, Message]]:
    for key, api in catalog.apis.items():
        for direction in (0, 1):
            message = catalog.message(key, direction)
            assert message is not None
            yield f"{api.name} {message.section}", message
    for name in catalog.schemas:
        schema = catalog.schema_message(name)
        assert schema is not None
        yield name, schema


def _meanings(catalog: Catalog) -> dict[tuple[str, int, str], str]:
    """Message, version and path -> meaning."""

    def walk(fields: Sequence[Field], version: int, path: str) -> Iterator[tuple[str, str]]:
        for field in fields:
            if version in field.versions:
                yield f"{path}/{field.name}", f"{field.meaning.name}{field.enum}"
                yield from walk(field.children, version, f"{path}/{field.name}")

    return {
        (name, version, path): meaning
        for name, message in _messages(catalog)
        for version in message.versions
        for path, meaning in walk(message.fields, version, "")
    }


def _paths(shapes: Sequence[Shape], path: str = "") -> Iterator[str]:
    for shape in shapes:
        yield f"{path}/{shape.name}"
        yield from _paths(shape.children, f"{path}/{shape.name}")


def _differences(ours: Catalog, theirs: Catalog, release: str | None = None) -> tuple[set[str], int]:
    """Of APIs, in the versions that a release speaks, or in all of `theirs`; the second: layouts compared."""
    found: set[str] = set()
    count = 0
    for key, api in theirs.apis.items():
        span = theirs.releases.speaks(release).get(key) if release else (api.min_version, api.max_version)
        for direction in (0, 1) if span else ():
            mine, other = ours.message(key, direction), theirs.message(key, direction)
            assert mine is not None and other is not None and span is not None
            for version in range(span[0], span[1] + 1):
                count += 1
                where = f"{api.name} {other.section} {version}"
                assert version in mine.versions, where
                assert (version >= mine.flexible_from) == (version >= other.flexible_from), where
                pair = shapes_of(mine.fields, version), shapes_of(other.fields, version)
                found |= {f"{where}: {text}" for text in shape_differences(*pair)}
    return found, count


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.before} to {case.release}")
def test_a_release_makes_what_stands_in_dissectors(
    today: Catalog, folders: dict[str, Path], shared: Path, tmp_path: Path, case: Case
) -> None:
    before = _earlier(today, tmp_path, case.before)
    before.check()
    meant, older = _meanings(before), before.releases
    assert compare(before, folders[case.release])[0], "the layouts have what the release added"
    notes = Update(tmp_path, folders[case.release], case.release)
    notes.run(_errors(shared, case.release))
    after = Catalog(tmp_path)
    after.check()
    assert compare(after, folders[case.release])[0] == []
    assert _differences(after, today, case.release) == (case.later, case.layouts)
    new = after.apis.keys() - before.apis.keys()
    assert len(new) == len(notes.notes.get(update.TRAITS, [])) == case.new
    assert all(after.apis[key].file == today.apis[key].file for key in new)
    _check_meanings(meant, _meanings(after), notes, case.moved)
    known = {(name, path) for name, _, path in meant}
    meaning = _meanings(today)
    further = {place: each for place, each in _meanings(after).items() if place[::2] in known}
    assert {place: meaning[place] for place in further if place[0] not in case.moved} == {
        place: each for place, each in further.items() if place[0] not in case.moved
    }
    _check_tables(today, after, case, older.names)


def _check_meanings(
    before: dict[tuple[str, int, str], str],
    after: dict[tuple[str, int, str], str],
    notes: Update,
    moved: set[str],
) -> None:
    """Fields keep their meaning; each that is new is for a human."""
    kept = before.keys() & after.keys()
    assert {place: after[place] for place in kept} == {place: before[place] for place in kept}
    assert {place[0] for place in before.keys() - kept} == moved
    known = {(name, path) for name, _, path in before}
    new = {(name, path) for name, _, path in after if (name, path) not in known and name not in moved}
    spelled = {
        f"{name} {path}".replace(" re", "Re", 1) if " re" in name else f"{name} {path}" for name, path in new
    }
    told = {line.partition(" (")[0] for line in notes.notes[update.MEANINGS]}
    assert spelled <= told
    others = {name.replace(" re", "Re") for name in moved}
    assert {text for text in told - spelled if text.split()[0] not in others} == set()


def _check_tables(today: Catalog, after: Catalog, case: Case, older: Sequence[str]) -> None:
    for name in (*older, case.release):
        assert after.releases.speaks(name) == today.releases.speaks(name), name
    shown = {place: span for place, span in today.releases.shown.items() if place[1] in after.releases.names}
    assert after.releases.shown == shown
    errors = {code: each for code, each in today.errors.items() if order(each.since) <= order(case.release)}
    assert {code: (each.name, each.retriable) for code, each in after.errors.items()} == {
        code: (each.name, each.retriable) for code, each in errors.items()
    }


def test_the_layouts_before_trunk_are_those_of_4_3(
    today: Catalog, folders: dict[str, Path], tmp_path: Path
) -> None:
    assert compare(_earlier(today, tmp_path, "4.3.1"), folders["4.3.0"])[0] == []


def test_two_releases_after_3_8_make_all_of_today(
    today: Catalog, folders: dict[str, Path], tmp_path: Path
) -> None:
    """Every layout that was ever spoken, with the newest names, and early access as an alternate."""
    write_earlier(today, tmp_path, "3.8.1")
    Update(tmp_path, folders["3.9.0"], "3.9.0").run()
    Update(tmp_path, folders[TRUNK], TRUNK).run()
    after = Catalog(tmp_path)
    assert _differences(after, today) == (set(), 736)
    for name, schema in today.schemas.items():
        mine, other = after.schema_message(name), today.schema_message(name)
        assert mine is not None and other is not None
        assert (after.schemas[name], mine.number) == (schema, other.number)
        for version in schema.versions:
            assert shapes_of(mine.fields, version) == shapes_of(other.fields, version), name
    made, kept = (
        [message for message in layout.messages if message.releases]
        for layout in (after.layout(87), today.layout(87))
        if layout is not None
    )
    assert [shapes_of(each.fields, 0) for each in made] == [shapes_of(each.fields, 0) for each in kept]


def test_what_is_there_is_not_written_again(
    today: Catalog, folders: dict[str, Path], shared: Path, tmp_path: Path
) -> None:
    shutil.copytree(today.folder, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.py*", "__*"))
    again = Update(tmp_path, folders[TRUNK], TRUNK)
    again.run(_errors(shared, TRUNK))
    assert again.notes == {}
    for path in tmp_path.iterdir():
        assert path.read_text("utf-8") == (today.folder / path.name).read_text("utf-8"), path.name


def test_an_older_release_changes_no_layout(today: Catalog, folders: dict[str, Path], tmp_path: Path) -> None:
    """A patch release after a newer one: only its column in releases.tsv."""
    shutil.copytree(today.folder, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.py*", "__*"))
    patch = Update(tmp_path, folders["4.3.0"], "4.3.2")
    patch.run()
    changed = {
        path.name
        for path in tmp_path.iterdir()
        if path.read_bytes() != (today.folder / path.name).read_bytes()
    }
    assert changed == {"releases.tsv"}
    after = Catalog(tmp_path).releases
    names = list(today.releases.names)
    assert list(after.names) == [*names[: names.index("4.4.0")], "4.3.2", *names[names.index("4.4.0") :]]
    assert after.speaks("4.3.2") == today.releases.speaks("4.3.1")
    assert all(after.speaks(name) == today.releases.speaks(name) for name in names)


@pytest.mark.slow
@pytest.mark.skipif(not artifacts.fetched("4.3.1"), reason="the jars of Kafka 4.3.1 are not in the cache")
@pytest.mark.skipif(shutil.which("java") is None, reason="java is not installed")
def test_the_jars_of_4_3_say_the_same(folders: dict[str, Path], today: Catalog, tmp_path: Path) -> None:
    jars.unpack(artifacts.jars("4.3.1"), tmp_path)
    ours = {definition.name: definition for definition in read_definitions(folders["4.3.0"])}
    theirs = {definition.name: definition for definition in read_definitions(tmp_path)}
    assert theirs == ours
    codes = read_errors(jars.list_errors(artifacts.jars("4.3.1")))
    known = today.errors.items()
    assert codes == {c: (e.name, e.retriable) for c, e in known if order(e.since) <= order("4.3.1")}
