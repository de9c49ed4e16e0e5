"""Golden vectors: reading them, and their names in ours (tests/data/vectors/README.md)."""

import json
import lzma
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "data" / "vectors"
TREES = ("3.9.2", "4.5.0-SNAPSHOT")

# Fields of 3.9.2 that later releases renamed without changing a byte: (api key, direction) -> old -> new.
RENAMED: Mapping[tuple[int, str], Mapping[str, str]] = {
    (28, "request"): {"generation_id": "generation_id_or_member_epoch"},
    (52, "request"): {
        "candidate_epoch": "replica_epoch",
        "candidate_id": "replica_id",
        "candidate_directory_id": "replica_directory_id",
    },
    (74, "response"): {"client_metrics_resources": "config_resources", "name": "resource_name"},
}


def read(name: str) -> Iterator[dict[str, Any]]:
    with lzma.open(FOLDER / f"{name}.jsonl.xz", "rt", encoding="utf-8") as text:
        for line in text:
            yield json.loads(line)


def snake(name: str) -> str:
    """The protocol guide's name of a JSON field; a run of capitals is one word (kRaft: kraft)."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name[:1].upper() + name[1:]).lower()


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A vector's JSON with every key in snake_case, then through a table of renames."""
    if isinstance(value, dict):
        return {names.get(snake(key), snake(key)): renamed(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [renamed(item, names) for item in value]
    return value


def tags(unknown: list[dict[str, Any]], names: Mapping[str, str], prefix: str = "") -> list[dict[str, Any]]:
    """A vector's unknown tags with their paths in our names, in the order of paths."""
    paths = ([snake(part) if part else "" for part in tag["path"].split("/")] for tag in unknown)
    return [
        {**tag, "path": prefix + "/".join(names.get(part, part) for part in path)}
        for tag, path in zip(unknown, paths, strict=True)
    ]


def in_order(unknown: list[dict[str, Any]]) -> list[tuple[str, int, str]]:
    return sorted((tag["path"], tag["tag"], tag["hex"]) for tag in unknown)
