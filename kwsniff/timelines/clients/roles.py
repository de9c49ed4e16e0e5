"""What a client does: its role, by what its requests are for, and by the client ids that programs give."""

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Final, NamedTuple

from kwsniff.layout.catalog import Catalog
from kwsniff.layout.model import Traits
from kwsniff.layout.traits import PRODUCED

_PATTERNS: Final = "client_roles.tsv"
_MEMBERS: Final = ("join", "sync", "heartbeat", "epoch")
_OF_WORKER: Final = "of_worker"


def find_role(
    catalog: Catalog, client_id: str | None, keys: Collection[int], words: Mapping[str, Collection[str]]
) -> str | None:
    """The role of a client that used the APIs `keys`. `words`: what its requests have as `caller`,
    `protocol_type`, `assignors` and `group_id`."""
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
    types = words["protocol_type"] or ("",)
    known = {
        **words,
        "client_id": [client_id],
        # of several types it is not known which group has which
        "group": [f"{type_}/{group}" for type_ in types for group in words["group_id"] if len(types) == 1],
    }
    return next(
        (
            role
            for kind, pattern, role in _patterns(catalog)
            if kind != _OF_WORKER and any(map(pattern.search, known[kind]))
        ),
        None,
    )


class Worker(NamedTuple):
    """A worker of Connect: the address, its groups, its role."""

    address: str
    groups: Collection[str]
    role: str


def is_worker(catalog: Catalog, words: Mapping[str, Collection[str]]) -> bool:
    """Whether it is a worker, by its protocol type."""
    types = words["protocol_type"]
    patterns = [pattern for kind, pattern, _ in _patterns(catalog) if kind == "protocol_type"]
    return any(pattern.search(each) for each in types for pattern in patterns)


def list_features(catalog: Catalog, client_id: str | None) -> list[str]:
    """The settings in a client id, as servers of some products read them."""
    patterns = [pattern for _, pattern in catalog.products.patterns.get("client_id", ())]
    parts = (client_id or "").split(",")
    return [part for part in parts if any(pattern.search(part) for pattern in patterns)]


def find_worker_clients(
    catalog: Catalog, workers: Iterable[Worker], clients: Iterable[tuple[str | None, str]]
) -> dict[tuple[str | None, str], str]:
    """Client id and address -> the role of the worker at that address with whose group the id begins."""
    roles = {(each.address, group): each.role for each in workers for group in each.groups}
    patterns = [pattern for kind, pattern, _ in _patterns(catalog) if kind == _OF_WORKER]
    found: dict[tuple[str | None, str], str] = {}
    for client_id, address in clients if roles else ():
        if client_id and any(pattern.search(client_id) for pattern in patterns):
            begins = (client_id[: dash.start()] for dash in re.finditer("-", client_id))
            role = next((roles[address, each] for each in begins if (address, each) in roles), None)
            if role:
                found[client_id, address] = role
    return found


@cache
def _patterns(catalog: Catalog) -> tuple[tuple[str, re.Pattern[str], str], ...]:
    text = (catalog.folder / _PATTERNS).read_text("utf-8")
    lines = (line.split("\t") for line in text.splitlines() if line and not line.startswith("#"))
    return tuple((kind, re.compile(pattern), role) for kind, pattern, role, _ in lines)
