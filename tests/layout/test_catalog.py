"""The layouts that come with kwsniff: how many, which versions, which headers, and the tables beside them."""

import csv
from pathlib import Path

import pytest

from kwsniff.errors import LayoutError
from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.layout.meaning import Meaning
from kwsniff.layout.model import OPEN, Field

REQUEST, RESPONSE = 0, 1


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def _table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


def _fields(fields: tuple[Field, ...]) -> list[Field]:
    return [inner for field in fields for inner in (field, *_fields(field.children))]


def test_all_95_keys_are_there_without_a_hole(catalog: Catalog) -> None:
    assert list(catalog.apis) == list(range(95))


def test_members_wait_for_each_other_in_joins_and_syncs(catalog: Catalog) -> None:
    assert [api.name for api in catalog.apis.values() if api.traits.rendezvous] == ["JoinGroup", "SyncGroup"]


def test_all_736_layouts_compile(catalog: Catalog) -> None:
    programs = [
        catalog.program(api.key, version, direction)
        for api in catalog.apis.values()
        for version in range(api.min_version, api.max_version + 1)
        for direction in (REQUEST, RESPONSE)
    ]
    assert None not in programs
    assert len(programs) == 736
    assert sum(program.flexible for program in programs if program) == 402


def test_everything_passes_every_check(catalog: Catalog) -> None:
    assert catalog.check() == 736 + sum(len(schema.versions) for schema in catalog.schemas.values())


def test_file_names_are_key_and_snake_case_name(catalog: Catalog) -> None:
    for api in catalog.apis.values():
        number, _, name = api.file.removesuffix(".layout").partition("_")
        assert int(number) == api.key
        assert len(number) == 2
        assert name.replace("_", "") == api.name.lower()


def test_versions_names_and_encodings_are_those_of_the_releases(catalog: Catalog, shared: Path) -> None:
    rows = _table(shared / "kafka" / "union-index.tsv")
    assert len(rows) == 736
    for row in rows:
        key, version = int(row["api_key"]), int(row["version"])
        direction = int(row["direction"] == "response")
        program = catalog.program(key, version, direction)
        assert program is not None, row
        assert (program.name, program.flexible) == (row["api"], row["encoding"] == "flexible"), row
        assert catalog.header_version(key, version, direction) == int(row["header_version"]), row


def test_headers_and_their_two_exceptions(catalog: Catalog) -> None:
    assert catalog.header_version(1, 11, REQUEST) == 1
    assert catalog.header_version(1, 12, REQUEST) == 2
    assert catalog.header_version(1, 12, RESPONSE) == 1
    assert catalog.header_version(7, 0, REQUEST) == 0
    assert catalog.header_version(7, 1, REQUEST) == 1
    assert catalog.header_version(18, 4, RESPONSE) == 0
    assert catalog.header_version(18, 99, RESPONSE) == 0
    assert catalog.header_version(1, 99, REQUEST) == 2
    assert catalog.header_version(17, 99, REQUEST) == 1
    assert catalog.header_version(500, 0, REQUEST) is None


def test_what_is_not_known_is_none(catalog: Catalog) -> None:
    assert catalog.program(1, 19, REQUEST) is None
    assert catalog.program(1, -1, REQUEST) is None
    assert catalog.program(95, 0, REQUEST) is None
    assert catalog.program(1, 0, 2) is None
    assert catalog.layout(95) is None
    assert catalog.schema("Nothing", 0) is None
    assert catalog.schema("OffsetCommitValue", 5) is None
    assert catalog.alternates(1, 0, REQUEST) == ()
    assert catalog.alternates(95, 0, REQUEST) == ()
    assert catalog.schema_alternates("Nothing", 0) == ()


@pytest.mark.parametrize("name", ["ListOffsets", "list_offsets", "listoffsets", "list-offsets", "2", 2])
def test_an_api_is_found_by_any_spelling(catalog: Catalog, name: str | int) -> None:
    api = catalog.api(name)
    assert api is not None
    assert api.key == 2
    assert catalog.api("nothing") is None


def test_asking_for_one_api_parses_one_file() -> None:
    fresh = Catalog(load_catalog().folder)
    assert fresh.apis[17].flexible_from == OPEN
    assert fresh._layouts == {}
    assert fresh.program(18, 3, RESPONSE) is not None
    assert set(fresh._layouts) == {"18_api_versions.layout", "headers.layout"}


def test_a_program_is_compiled_once(catalog: Catalog) -> None:
    assert catalog.program(0, 9, REQUEST) is catalog.program(0, 9, REQUEST)


def test_every_error_code_field_says_so(catalog: Catalog) -> None:
    for api in catalog.apis.values():
        for direction in (REQUEST, RESPONSE):
            message = catalog.message(api.key, direction)
            assert message is not None
            for field in _fields(message.fields):
                assert field.name.endswith("error_code") == (field.meaning is Meaning.ERROR), (
                    api.name,
                    field,
                )


def test_secrets_are_marked(catalog: Catalog) -> None:
    found = {
        (api.name, direction, field.name)
        for api in catalog.apis.values()
        for direction in (REQUEST, RESPONSE)
        for message in [catalog.message(api.key, direction)]
        if message is not None
        for field in _fields(message.fields)
        if field.meaning is Meaning.SECRET
    }
    assert found == {
        ("SaslAuthenticate", 0, "auth_bytes"),
        ("SaslAuthenticate", 1, "auth_bytes"),
        ("AlterUserScramCredentials", 0, "salt"),
        ("AlterUserScramCredentials", 0, "salted_password"),
        ("AlterUserScramCredentials", 1, "error_message"),
        ("CreateDelegationToken", 1, "hmac"),
        ("RenewDelegationToken", 0, "hmac"),
        ("ExpireDelegationToken", 0, "hmac"),
        ("DescribeDelegationToken", 1, "hmac"),
    }


def test_schemas_have_the_versions_of_the_releases(catalog: Catalog, shared: Path) -> None:
    # No definition of these is at hand: they left Kafka before 3.9, or had another name for the same bytes.
    without = {"AccessControlRecord", "QuotaRecord", "RemoveFeatureLevelRecord", "SubscriptionInfo"}
    rows = [row for row in _table(shared / "kafka" / "nonrpc.tsv") if row["type"] != "header"]
    assert {row["name"] for row in rows} - set(catalog.schemas) == without
    for row in rows:
        if row["name"] not in without:
            schema = catalog.schemas[row["name"]]
            assert schema.versions == tuple(int(version) for version in row["union_versions"].split(",")), row
            if row["apiKey"]:
                assert schema.number == int(row["apiKey"]), row


def test_error_codes_are_all_there(catalog: Catalog, shared: Path) -> None:
    rows = _table(shared / "kafka" / "errors.tsv")
    assert len(catalog.errors) == len(rows) == 138
    for row in rows:
        error = catalog.errors[int(row["code"])]
        assert (error.name, error.retriable) == (row["name"], row["retriable"] == "true")
        assert error.since in row["since"]
        assert error.meaning


def test_releases_speak_what_they_spoke(catalog: Catalog, shared: Path) -> None:
    rows = _table(shared / "kafka" / "api_versions_by_release.tsv")
    spoken: dict[str, dict[int, tuple[int, int]]] = {}
    for row in rows:
        span = (int(row["min_version"]), int(row["max_version"]))
        spoken.setdefault(row["release"], {})[int(row["api_key"])] = span
    others = [name for name in catalog.releases.names if name not in spoken]
    assert [name for name in catalog.releases.names if name in spoken] == [*spoken]
    assert (others[0], others[-2:]) == ("0.10.0.0", ["2.1.1", "4.4.0"])
    for release, spans in spoken.items():
        assert catalog.releases.speaks(release) == spans
    assert catalog.releases.speaks("0.7") == {}


def test_which_release_spoke_a_version(catalog: Catalog) -> None:
    assert catalog.releases.spoken_by(0, 2)[0] == "0.10.0.0"
    assert catalog.releases.spoken_by(0, 2)[-1] == "3.9.2"
    assert catalog.releases.spoken_by(0, 99) == ()
    assert catalog.releases.spoken_by(200, 0) == ()


@pytest.mark.parametrize(
    ("api_key", "version", "first"),
    [
        (1, 3, "0.10.1.0"),  # KIP-74
        (0, 3, "0.11.0.0"),  # KIP-98
        (22, 0, "0.11.0.0"),  # KIP-98
        (36, 0, "1.0.0"),  # KIP-152
        (38, 0, "1.1.0"),  # KIP-48
        (18, 2, "2.0.0"),  # KIP-219
        (0, 7, "2.1.0"),  # KIP-110
    ],
)
def test_the_first_release_of_a_version_is_that_of_its_proposal(
    catalog: Catalog, api_key: int, version: int, first: str
) -> None:
    assert catalog.releases.spoken_by(api_key, version)[0] == first


def test_enums_have_names_for_their_codes(catalog: Catalog) -> None:
    assert catalog.enums["isolation_level"] == {0: "read_uncommitted", 1: "read_committed"}
    assert catalog.enums["member_type"][-1] == "unknown"


def test_an_empty_folder_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match="no layouts"):
        _ = Catalog(tmp_path).apis


def test_a_layout_added_by_hand_works_at_once(tmp_path: Path) -> None:
    headers = (load_catalog().folder / "headers.layout").read_text("utf-8")
    (tmp_path / "headers.layout").write_text(headers, "utf-8")
    text = "api 501 GetRouterNodes 0 flexible 0+\nrequest\n    zone string rack\nresponse\n    status int8\n"
    (tmp_path / "501_get_router_nodes.layout").write_text(text, "utf-8")
    catalog = Catalog(tmp_path)
    program = catalog.program(501, 0, REQUEST)
    assert program is not None
    assert program.paths[1:5] == (
        "header.request_api_key",
        "header.request_api_version",
        "header.correlation_id",
        "header.client_id",
    )
    (tmp_path / "502_again.layout").write_text(text, "utf-8")
    with pytest.raises(LayoutError, match=r"api key 501 is already in"):
        _ = Catalog(tmp_path).apis


def test_an_enum_that_does_not_exist_is_named(tmp_path: Path) -> None:
    for name in ("headers.layout", "enums.txt"):
        (tmp_path / name).write_text((load_catalog().folder / name).read_text("utf-8"), "utf-8")
    text = "api 1 Fetch 0\nrequest\n    a int8 enum.nothing\nresponse\n    b int8\n"
    (tmp_path / "01_fetch.layout").write_text(text, "utf-8")
    with pytest.raises(LayoutError, match=r"^01_fetch\.layout:3: 'nothing'"):
        Catalog(tmp_path).check()
