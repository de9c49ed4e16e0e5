"""The layouts against Kafka's own message definitions, field by field, in every version and direction."""

import json
from pathlib import Path

import pytest

from kwsniff.errors import LayoutError
from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.layout.drift import compare, read_definitions, shapes_of, snake_case

_NEWEST, _OLD = "4.5.0-SNAPSHOT", "3.9.2"

# What 3.9.2 wrote in these is not what the layouts say: early access that was changed later under the same
# version number (the layouts keep it as an alternate), and tagged fields that came without a new version.
_CHANGED_SINCE = {
    "ReadShareGroupStateSummaryResponse version 0",
    "ShareGroupMetadataValue version 0",
    "ConsumerGroupCurrentMemberAssignmentValue version 0",
    "ConsumerGroupMetadataValue version 0",
    "ConsumerGroupTargetAssignmentMetadataValue version 0",
    "OffsetCommitValue version 4",
    "RemoteLogSegmentMetadataRecord version 0",
    "RemoteLogSegmentMetadataSnapshotRecord version 0",
    "TransactionLogValue version 1",
}

_EARLY = [
    ("2.7.2", "EndQuorumEpochRequest", 54, 0),
    ("3.6.2", "ConsumerGroupHeartbeatRequest", 68, 0),
    ("3.6.2", "ConsumerGroupHeartbeatResponse", 68, 1),
    ("3.7.1", "ConsumerGroupDescribeResponse", 69, 1),
    ("4.0.2", "ReadShareGroupStateSummaryResponse", 87, 1),
]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def test_nothing_differs_from_the_newest_definitions(catalog: Catalog, shared: Path) -> None:
    differences, count = compare(catalog, shared / "kafka" / "messages" / _NEWEST)
    assert differences == []
    assert count > 618


def test_bytes_are_those_of_the_old_definitions(catalog: Catalog, shared: Path) -> None:
    differences, count = compare(catalog, shared / "kafka" / "messages" / _OLD, names=False)
    assert {line.partition(":")[0] for line in differences} == _CHANGED_SINCE
    assert count > 646


def test_both_trees_together_define_all_736_layouts(catalog: Catalog, shared: Path) -> None:
    seen = {
        (definition.api_key, definition.kind, version)
        for tree in (_NEWEST, _OLD)
        for definition in read_definitions(shared / "kafka" / "messages" / tree)
        if definition.kind in ("request", "response")
        for version in definition.versions
    }
    assert len(seen) == 736
    ours = {
        (api.key, kind, version)
        for api in catalog.apis.values()
        for kind in ("request", "response")
        for version in range(api.min_version, api.max_version + 1)
    }
    assert ours == seen


def test_names_of_versions_only_old_trees_have(catalog: Catalog, shared: Path) -> None:
    """Versions dropped before the newest tree keep their names, apart from fields that were renamed since."""
    newest = {
        (definition.name, version)
        for definition in read_definitions(shared / "kafka" / "messages" / _NEWEST)
        for version in definition.versions
    }
    differences, _ = compare(catalog, shared / "kafka" / "messages" / _OLD)
    only_old = [
        line
        for line in differences
        for name, _, rest in [line.partition(" version ")]
        if (name, int(rest.partition(":")[0])) not in newest and not name.startswith("ListClientMetrics")
    ]
    assert only_old == []


@pytest.mark.parametrize("early", _EARLY)
def test_alternates_are_what_early_access_sent(
    catalog: Catalog, shared: Path, early: tuple[str, str, int, int]
) -> None:
    release, name, api_key, direction = early
    folder = shared / "kafka" / "messages" / release
    (definition,) = [definition for definition in read_definitions(folder) if definition.name == name]
    (alternate,) = catalog.alternates(api_key, 0, direction)
    layout = catalog.layout(api_key)
    assert layout is not None
    (message,) = [m for m in layout.messages if m.releases and m.section == definition.kind]
    assert shapes_of(message.fields, 0) == definition.versions[0][1]
    assert alternate.flexible == definition.versions[0][0]
    assert alternate.code != getattr(catalog.program(api_key, 0, direction), "code", b"")


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"type": "int64"}, "/a: type is int32, in the definition int64"),
        ({"type": "[]int32"}, "/a: array is False"),
        ({"name": "Other"}, "/a is called other"),
        ({"versions": "1+"}, "/a is not in the definition"),
        ({"taggedVersions": "0+", "tag": 4}, "/a: tag is None, in the definition 4"),
    ],
)
def test_a_difference_is_found(tmp_path: Path, change: dict[str, object], difference: str) -> None:
    field: dict[str, object] = {"name": "A", "type": "int32", "versions": "0+"}
    (tmp_path / "a.layout").write_text("schema Thing 0 flexible 0+\n    a int32\n", "utf-8")
    definition = {"name": "Thing", "type": "data", "validVersions": "0", "flexibleVersions": "0+"}
    text = json.dumps(definition | {"fields": [field]})
    (tmp_path / "Thing.json").write_text("// a comment\n" + text, "utf-8")
    assert compare(Catalog(tmp_path), tmp_path) == ([], 1)
    (tmp_path / "Thing.json").write_text(json.dumps(definition | {"fields": [field | change]}), "utf-8")
    differences, _ = compare(Catalog(tmp_path), tmp_path)
    assert any(difference in line for line in differences), differences


def test_missing_layouts_versions_and_fields_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.layout").write_text("schema Thing 0\n    a int32\n", "utf-8")
    fields = [{"name": name, "type": "int32", "versions": "0+"} for name in ("A", "B")]
    thing = {
        "name": "Thing",
        "type": "data",
        "validVersions": "0-1",
        "flexibleVersions": "0+",
        "fields": fields,
    }
    (tmp_path / "Thing.json").write_text(json.dumps(thing), "utf-8")
    (tmp_path / "Other.json").write_text(json.dumps(thing | {"name": "Other"}), "utf-8")
    differences, _ = compare(Catalog(tmp_path), tmp_path)
    assert differences == [
        "Other: no layout",
        "Thing version 0: flexible is True in the definition",
        "Thing version 0: /b is missing",
        "Thing version 1: not in a.layout",
    ]


def test_a_file_that_is_no_definition_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "Broken.json").write_text("{", "utf-8")
    with pytest.raises(LayoutError, match=r"Broken\.json: not a Kafka message definition"):
        list(read_definitions(tmp_path))


def test_a_run_of_capitals_is_one_word() -> None:
    assert snake_case("KRaftVersionFeature") == "kraft_version_feature"
    assert snake_case("isKRaftController") == "is_kraft_controller"
    assert snake_case("V3AndBelowTransactionalId") == "v3_and_below_transactional_id"
    assert snake_case("ThrottleTimeMs") == "throttle_time_ms"
