"""Whose coordinator a FindCoordinator asks for: a group, a transactional id, or several of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import kwsniff
from tests.core.hand import START_NS, Talk
from tests.traffic.files import Frame, pcap
from tests.traffic.wire import Encoder, is_flexible, request_bytes, sized

GROUP, TRANSACTION, SHARE = 0, 1, 2


def _asked(version: int, key_type: int, *keys: str) -> bytes:
    """FindCoordinatorRequest.json: one key up to version 3, whose type follows from version 1 on."""
    body = Encoder(is_flexible(10, version))
    if version <= 3:
        body.string(keys[0])
        if version:
            body.i8(key_type)
    else:
        body.i8(key_type).count(len(keys))
        for key in keys:
            body.string(key)
    return sized(request_bytes(10, version, 7, "shop", bytes(body.tags().data)))


def _named(request: bytes, folder: Path) -> tuple[str | None, str | None]:
    talk = Talk().open()
    talk.send(True, request)
    frames = [Frame(START_NS + n * 10**6, each, len(each)) for n, each in enumerate(talk.packets)]
    (folder / "capture.pcap").write_bytes(pcap(frames, 101))
    (row,) = kwsniff.analyze(folder / "capture.pcap").api_calls.to_pylist()
    return row["group_id"], row["transactional_id"]


@pytest.mark.parametrize("version", range(7))
def test_a_key_of_type_0_is_a_group(version: int, tmp_path: Path) -> None:
    assert _named(_asked(version, GROUP, "billing"), tmp_path) == ("billing", None)


@pytest.mark.parametrize("version", range(1, 7))
def test_a_key_of_type_1_is_a_transactional_id(version: int, tmp_path: Path) -> None:
    assert _named(_asked(version, TRANSACTION, "till-7"), tmp_path) == (None, "till-7")


def test_the_key_of_a_share_partition_is_neither(tmp_path: Path) -> None:
    assert _named(_asked(6, SHARE, "packers:AAAAAAAAAAAAAAAAAAAAAQ:0"), tmp_path) == (None, None)


@pytest.mark.parametrize("keys", [(), ("billing", "audit"), ("a", "b", "c")])
def test_several_keys_name_none(keys: tuple[str, ...], tmp_path: Path) -> None:
    assert _named(_asked(5, GROUP, *keys), tmp_path) == (None, None)
