"""What a client does: its role, by what its requests are for, and by the client ids that programs give."""

import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Final

from kwsniff.layout.catalog import Catalog
from kwsniff.layout.model import Traits
from kwsniff.layout.traits import PRODUCED

_PATTERNS: Final = "client_roles.tsv"
_MEMBERS: Final = ("join", "sync", "heartbeat", "epoch")


def find_role(
    catalog: Catalog, client_id: str | None, keys: Collection[int], words: Mapping[str, Collection[str]]
) -> str | None:
    """The role of a client that used the APIs `keys`. `words`: what its requests have as `caller`,
    `protocol_type` and `assignors`."""
    if "replica" in words["caller"]:
        return "follower"
    if "broker" in words["caller"]:
        return None
    traits = [catalog.apis[key].traits for key in keys if key in catalog.apis]
    named = _by_name(catalog, client_id or "", words)
    if named or any(each.group_kind == "streams" for each in traits):
        return named or "streams"
    produces = any(each.records == PRODUCED for each in traits)
    consumes = any(map(_consumes, traits))
    if produces or consumes:
        return None if produces and consumes else "producer" if produces else "consumer"
    return "admin" if any(map(_administers, traits)) else None


def _consumes(traits: Traits) -> bool:
    # An administrator removes members and sets offsets, too.
    return traits.records not in ("", PRODUCED) or traits.group in _MEMBERS


def _administers(traits: Traits) -> bool:
    return bool(traits.topics or traits.controller or traits.describe)


def _by_name(catalog: Catalog, client_id: str, words: Mapping[str, Collection[str]]) -> str | None:
    for kind, pattern, role in _patterns(catalog):
        told = [client_id] if kind == "client_id" else words[kind]
        if any(pattern.search(each) for each in told):
            return role
    return None


@cache
def _patterns(catalog: Catalog) -> tuple[tuple[str, re.Pattern[str], str], ...]:
    text = (catalog.folder / _PATTERNS).read_text("utf-8")
    lines = (line.split("\t") for line in text.splitlines() if line and not line.startswith("#"))
    return tuple((kind, re.compile(pattern), role) for kind, pattern, role, _ in lines)
