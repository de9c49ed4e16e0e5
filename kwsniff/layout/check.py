"""Checks of a layout beyond its grammar, each with its reason.

``check_layout`` is cheap and runs on every file that is read; ``check_versions`` goes through every version
and runs when everything is checked (``Catalog.check``).
"""

from collections.abc import Sequence
from typing import Final

from kwsniff.layout.meaning import TYPES, Meaning
from kwsniff.layout.model import Field, LayoutFile, Message, Versions
from kwsniff.layout.tokens import FIXED, fail

#: Deepest nesting a layout may have: half of the engine's stack of 16.
MAX_NESTING: Final = 8


def check_layout(layout: LayoutFile) -> None:
    """Raise LayoutError at the first line that breaks a rule."""
    for message in layout.messages:
        _check_struct(message, message.fields, message.span, 1)
    if layout.api is not None:
        sections = [message.section for message in layout.messages if not message.releases]
        if sorted(sections) != ["request", "response"]:
            fail(
                layout.file, 1, f"an API has one request and one response, this one has: {' '.join(sections)}"
            )


def check_versions(message: Message) -> None:
    """Every element of an array takes at least one byte, in every version: this bounds a hostile count."""
    for version in message.versions:
        struct_size(message, message.fields, version)


def _check_struct(message: Message, fields: Sequence[Field], parent: Versions, depth: int) -> None:
    if depth > MAX_NESTING:
        fail(message.file, fields[0].line, f"'{fields[0].name}' is nested deeper than {MAX_NESTING} levels")
    _check_names(message, fields)
    _check_tags(message, fields)
    for field in fields:
        if not field.versions.within(parent):
            fail(
                message.file,
                field.line,
                f"'{field.name}' has versions {field.versions}, around it is {parent}",
            )
        if not any(version in field.versions for version in message.versions):
            fail(message.file, field.line, f"'{field.name}' is in no version of {message.name}")
        if field.nullable is not None and not field.nullable.within(field.versions):
            fail(
                message.file,
                field.line,
                f"'{field.name}' is null in {field.nullable} but exists in {field.versions}",
            )
        _check_meaning(message, field)
        if field.type == "struct":
            if not field.children:
                fail(message.file, field.line, f"'{field.name}' has no fields")
            _check_struct(message, field.children, field.versions, depth + 1)


def _check_names(message: Message, fields: Sequence[Field]) -> None:
    seen: dict[str, list[Field]] = {}
    for field in fields:
        for other in seen.setdefault(field.name, []):
            if field.versions.overlaps(other.versions):
                fail(
                    message.file,
                    field.line,
                    f"'{field.name}' is already on line {other.line} in the same versions",
                )
        seen[field.name].append(field)


def _check_tags(message: Message, fields: Sequence[Field]) -> None:
    seen: dict[int, list[Field]] = {}
    for field in fields:
        if field.tag is None:
            continue
        if field.versions.first < message.flexible_from:
            fail(
                message.file,
                field.line,
                f"'{field.name}' has tag {field.tag} in a version that is not flexible",
            )
        for other in seen.setdefault(field.tag, []):
            if field.versions.overlaps(other.versions):
                fail(
                    message.file,
                    field.line,
                    f"'{field.name}' has tag {field.tag}, which '{other.name}' already has",
                )
        seen[field.tag].append(field)


def _check_meaning(message: Message, field: Field) -> None:
    allowed = TYPES.get(field.meaning)
    if field.meaning is not Meaning.NONE and allowed is not None and field.type not in allowed:
        word = field.meaning.name.lower()
        fail(message.file, field.line, f"'{word}' cannot be the meaning of a {field.type} ('{field.name}')")


def struct_size(message: Message, fields: Sequence[Field], version: int) -> int:
    """Minimum size of the fields in a version; LayoutError for array elements that may be empty."""
    flexible = version >= message.flexible_from
    size = 1 if flexible else 0
    for field in fields:
        if version not in field.versions:
            continue
        inner = struct_size(message, field.children, version) if field.type == "struct" else 0
        if field.array and field.type == "struct" and inner < 1:
            fail(
                message.file, field.line, f"elements of '{field.name}' may take no bytes in version {version}"
            )
        if field.tag is None:
            size += (
                inner if field.type == "struct" and not field.array else _field_size(message, field, flexible)
            )
            if field.type == "struct" and not field.array and _null_in(field, version):
                size += 1 - inner
    return size


def _null_in(field: Field, version: int) -> bool:
    return field.nullable is not None and version in field.nullable


def _field_size(message: Message, field: Field, flexible: bool) -> int:
    short = flexible or message.zigzag
    if field.array:
        return 1 if short else 4
    if field.type in FIXED:
        return FIXED[field.type]
    if field.type in ("string", "string16"):
        return 1 if short and field.type == "string" else 2
    if field.type == "rest":
        return 0
    if field.type in ("bytes", "records"):
        return 1 if short else 4
    return 1
