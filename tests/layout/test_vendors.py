"""Layouts of servers that are not Apache's agree with the definitions of these servers."""

from __future__ import annotations

from typing import Any

import pytest

from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.layout.dissectors import dissectors_folder
from kwsniff.layout.spoken import api_names, spoken
from kwsniff.view.decode import decode

from .vendor_messages import ALL, AUTOMQ_EARLY, Definition, request, response

MESSAGES = [
    (vendor, key, version, definition)
    for vendor, messages in ALL.items()
    for (key, version), definition in messages.items()
]


def read(data: bytes, **options: Any) -> dict[str, Any]:
    message = decode(data, **options).as_dict()
    assert message["error"] is None, message["error"]
    assert message["unknown_tags"] == []
    return dict(message["body"])


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize(("vendor", "key", "version", "definition"), MESSAGES)
def test_a_message_of_the_definition_is_read_to_its_last_byte(
    vendor: str, key: int, version: int, definition: tuple[Definition, Definition], nulls: bool
) -> None:
    asked, answered = definition
    data, body = request(key, version, asked, nulls=nulls)
    assert read(data, layouts=vendor) == body
    data, body = response(answered, nulls=nulls)
    options = {"direction": "response", "api_key": key, "api_version": version}
    assert read(data, layouts=vendor, **options) == body


def test_every_message_of_the_layouts_has_a_definition() -> None:
    for vendor, messages in ALL.items():
        apis = load_catalog(vendor).apis
        known = {(key, n) for key, api in apis.items() for n in range(api.min_version, api.max_version + 1)}
        assert {pair for pair in known if pair not in set(_kafka())} == set(messages)


def _kafka() -> list[tuple[int, int]]:
    return [(key, n) for key, api in load_catalog("").apis.items() for n in range(api.max_version + 1)]


@pytest.mark.parametrize("key", AUTOMQ_EARLY)
def test_a_version_from_before_its_latest_field_is_read_too(key: int) -> None:
    data, body = request(key, 0, AUTOMQ_EARLY[key])
    assert read(data, layouts="automq") == body


def test_a_tagged_field_of_automq_is_read() -> None:
    data, body = response(ALL["automq"][514, 0][1])
    section = bytes.fromhex("01 00 21") + b"".join(n.to_bytes(8, "big") for n in (3, 2, 4, 1_700_000_000_000))
    found = read(
        data[:-1] + section + b"\0", layouts="automq", direction="response", api_key=514, api_version=0
    )
    epoch = {"committed": 3, "fenced": 2, "current": 4, "last_bump_up_timestamp": 1_700_000_000_000}
    assert found == body | {"router_channel_epoch": epoch}


def test_each_folder_is_checked_as_a_users_is() -> None:
    folders = {path.name for path in (dissectors_folder() / "vendors").iterdir() if path.is_dir()} - {
        "__pycache__"
    }
    assert folders == set(ALL)
    assert folders <= set(load_catalog("").products.names)
    for catalog in load_catalog("").by_product.values():
        catalog.check_vendor()


def test_names_are_unique_in_all_layouts() -> None:
    catalog = load_catalog("")
    assert len(set(api_names(catalog))) == len(api_names(catalog)) == len(spoken(catalog))


def test_one_key_has_a_meaning_for_each_product() -> None:
    names = {
        catalog.apis[501].name for catalog in load_catalog("").by_product.values() if 501 in catalog.apis
    }
    assert names == {"CreateStreams", "AlterDisklessSwitch"}
    assert 501 not in load_catalog("").apis


def _of(catalog: Catalog, product: str) -> Catalog:
    return catalog.of_product(catalog.products.names.index(product) + 1)


def test_a_vendor_that_is_named_holds_for_every_server_but_those_of_other_products() -> None:
    catalog = load_catalog("automq")
    assert catalog.apis[501].name == "CreateStreams"
    assert catalog.errors[514].name == "NODE_FENCED"
    assert _of(catalog, "inkless").apis[501].name == "AlterDisklessSwitch"
    assert _of(catalog, "automq") is catalog


def test_a_users_api_goes_before_a_shipped_one(tmp_path: Any) -> None:
    (tmp_path / "501_mine.layout").write_text("api 501 Mine 0\nrequest\n    a int8\nresponse\n    b int8\n")
    catalog = load_catalog([tmp_path, "redpanda"])
    assert [catalog.apis[key].name for key in (501, 15000)] == ["Mine", "DescribeRedpandaRoles"]
    assert _of(catalog, "automq").apis[501].name == "Mine"
    assert _of(catalog, "automq").apis[502].name == "OpenStreams"
