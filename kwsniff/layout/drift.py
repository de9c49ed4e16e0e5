"""Compares the layouts with Kafka's own message definitions. For developers who add a release.

``compare`` reads a folder of Kafka's JSON message definitions
(``clients/src/main/resources/common/message`` and its siblings of other modules, at any depth) and lists
every difference on the wire, version by version. An old folder has only its own versions and
older field names; ``names=False`` leaves names out of the comparison.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kwsniff.errors import LayoutError
from kwsniff.layout.catalog import Catalog
from kwsniff.layout.model import OPEN, Field, Message

_COMMENT: Final = re.compile(r"^\s*//[^\n]*$|/\*.*?\*/", re.MULTILINE | re.DOTALL)
_TAIL_COMMENT: Final = re.compile(r'//[^"\n]*$', re.MULTILINE)
_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ZEROS: Final = frozenset({"0", "false", "", "0.0"})


@dataclass(frozen=True, slots=True)
class Shape:
    """One field of one version, as far as bytes and names go."""

    name: str
    type: str
    array: bool
    null: bool
    tag: int | None
    default: str | None
    children: tuple["Shape", ...]


@dataclass(frozen=True, slots=True)
class Definition:
    """One JSON file, resolved: version -> (flexible, fields). `unstable`: brokers hide the last version."""

    name: str
    kind: str
    api_key: int | None
    versions: Mapping[int, tuple[bool, tuple[Shape, ...]]]
    listeners: tuple[str, ...] = ()
    unstable: bool = False
    module: str = ""


def snake_case(name: str) -> str:
    """Kafka's field name as the protocol guide writes it; a run of capitals is one word."""
    return _WORD_START.sub("_", name).lower()


def compare(catalog: Catalog, folder: Path, *, names: bool = True) -> tuple[list[str], int]:
    """Differences, one line each, and the number of layouts compared."""
    differences: list[str] = []
    count = 0
    for definition in read_definitions(folder):
        message = message_of(catalog, definition)
        if message is None:
            differences.append(f"{definition.name}: no layout")
            continue
        for version, (flexible, shapes) in definition.versions.items():
            count += 1
            where = f"{definition.name} version {version}"
            if version not in message.versions:
                differences.append(f"{where}: not in {message.file}")
                continue
            if flexible != (version >= message.flexible_from):
                differences.append(f"{where}: flexible is {flexible} in the definition")
            ours = shapes_of(message.fields, version)
            differences.extend(f"{where}: {text}" for text in shape_differences(ours, shapes, names=names))
    return differences, count


def shapes_of(fields: Sequence[Field], version: int) -> tuple[Shape, ...]:
    """The fields of a layout in one version, tagged fields last and by tag."""
    live = [
        Shape(
            field.name,
            "string" if field.type == "string16" else field.type,
            field.array,
            field.nullable is not None and version in field.nullable,
            field.tag,
            field.default,
            shapes_of(field.children, version),
        )
        for field in fields
        if version in field.versions
    ]
    return _wire_order(live)


def read_definitions(folder: Path) -> Iterator[Definition]:
    """Every JSON file below a folder; those without a valid version are left out."""
    for path in sorted(folder.rglob("*.json")):
        text = _TAIL_COMMENT.sub("", _COMMENT.sub("", path.read_text("utf-8")))
        try:
            data, _ = json.JSONDecoder().raw_decode(text.lstrip())
        except ValueError as error:
            raise LayoutError(f"{path}: not a Kafka message definition ({error})") from error
        definition = _definition(data, path.parent.name)
        if definition.versions:
            yield definition


def _definition(data: dict[str, Any], module: str) -> Definition:
    commons = {common["name"]: common["fields"] for common in data.get("commonStructs", ())}
    first, last = _range(data.get("validVersions"))
    flexible = _range(data.get("flexibleVersions"))
    versions = {
        version: (flexible[0] <= version <= flexible[1], _resolve(data.get("fields", ()), commons, version))
        for version in range(first, last + 1)
    }
    return Definition(
        data["name"],
        data["type"],
        data.get("apiKey"),
        versions,
        tuple(data.get("listeners", ())),
        bool(data.get("latestVersionUnstable", False)),
        module,
    )


def _range(text: str | None) -> tuple[int, int]:
    if text is None or text == "none":
        return 0, -1
    first, _, last = text.strip().partition("-")
    if first.endswith("+"):
        return int(first[:-1]), OPEN
    return int(first), int(last or first)


def _holds(text: str | None, version: int) -> bool:
    first, last = _range(text)
    return first <= version <= last


def _resolve(fields: Sequence[dict[str, Any]], commons: dict[str, Any], version: int) -> tuple[Shape, ...]:
    shapes = []
    for field in fields:
        if not _holds(field.get("versions") or field.get("taggedVersions"), version):
            continue
        kind = field["type"].strip()
        array = kind.startswith("[]")
        kind = kind.removeprefix("[]")
        children: tuple[Shape, ...] = ()
        if kind[0].isupper():
            children = _resolve(field.get("fields") or commons[kind], commons, version)
            kind = "struct"
        tagged = "tag" in field and _holds(field.get("taggedVersions"), version)
        shapes.append(
            Shape(
                snake_case(field["name"]),
                kind,
                array,
                _holds(field.get("nullableVersions"), version),
                int(field["tag"]) if tagged else None,
                _default(field.get("default")) if tagged and kind != "struct" else None,
                children,
            )
        )
    return _wire_order(shapes)


def _default(value: object) -> str | None:
    if value is None:
        return None
    text = str(value).lower()
    if text.startswith("0x"):
        text = str(int(text, 16))
    return None if text in _ZEROS else text


def _wire_order(shapes: Sequence[Shape]) -> tuple[Shape, ...]:
    return tuple(sorted(shapes, key=lambda shape: -1 if shape.tag is None else shape.tag))


def message_of(catalog: Catalog, definition: Definition) -> Message | None:
    """The layout that a definition describes."""
    if definition.kind in ("request", "response") and definition.api_key is not None:
        return catalog.message(definition.api_key, int(definition.kind == "response"))
    if definition.kind == "header":
        return catalog.headers[int(definition.name == "ResponseHeader")]
    return catalog.schema_message(definition.name)


def shape_differences(
    ours: Sequence[Shape], theirs: Sequence[Shape], *, names: bool = True, path: str = ""
) -> Iterator[str]:
    """Differences of one version, one line each."""
    for mine, other in zip(ours, theirs, strict=False):
        at = f"{path}/{mine.name}"
        if names and mine.name != other.name:
            yield f"{at} is called {other.name}"
        for what in ("type", "array", "null", "tag", "default"):
            if getattr(mine, what) != getattr(other, what):
                yield f"{at}: {what} is {getattr(mine, what)}, in the definition {getattr(other, what)}"
        yield from shape_differences(mine.children, other.children, names=names, path=at)
    for extra in ours[len(theirs) :]:
        yield f"{path}/{extra.name} is not in the definition"
    for extra in theirs[len(ours) :]:
        yield f"{path}/{extra.name} is missing"
