"""The layouts as they stood before a release, cut out of today's: for the tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kwsniff.layout.catalog import Catalog
from kwsniff.layout.meaning import Meaning
from kwsniff.layout.model import OPEN, Field, Message
from tests.layout.release.tables import order


def write_earlier(
    catalog: Catalog, folder: Path, release: str, schemas: Mapping[str, Sequence[int]] | None = None
) -> None:
    """What releases up to this one speak. `schemas`: versions that those have, where they had others."""
    for path in catalog.folder.iterdir():
        if path.suffix in (".txt", ".tsv"):
            shutil.copy(path, folder)
    older = [name for name in catalog.releases.names if order(name) <= order(release)]
    for key, api in catalog.apis.items():
        spans = [catalog.releases.speaks(name).get(key) for name in older]
        last = max((span[1] for span in spans if span), default=None)
        if last is not None:
            head = f"api {key} {api.name} {api.min_version}-{last}" + _flexible(api.flexible_from, last)
            lines = [head]
            for message in (catalog.message(key, 0), catalog.message(key, 1)):
                assert message is not None
                lines += [message.section, *_lines(message.fields, range(last + 1), 1)]
            (folder / api.file).write_text("\n".join(lines) + "\n", "utf-8")
    for path in catalog.folder.glob("[a-z]*.layout"):
        _write_schemas(catalog, path.name, folder, schemas or {})
    _cut_tables(folder, older, release)


def _flexible(first: int, last: int) -> str:
    return f" flexible {first}+" if first <= last and first != OPEN else ""


def _write_schemas(catalog: Catalog, file: str, folder: Path, schemas: Mapping[str, Sequence[int]]) -> None:
    if file == "headers.layout":
        shutil.copy(catalog.folder / file, folder)
        return
    lines = []
    for name in [each for each, found in catalog.schemas.items() if f"{found.module}.layout" == file]:
        message = catalog.schema_message(name)
        assert message is not None
        versions = [version for version in message.versions if version in schemas.get(name, message.versions)]
        if versions:
            lines += ["", _schema_head(message, versions), *_lines(message.fields, versions, 1)]
    (folder / file).write_text("\n".join(lines) + "\n", "utf-8")


def _schema_head(message: Message, versions: Sequence[int]) -> str:
    head = f"schema {message.name} {','.join(map(str, versions))}" + _flexible(
        message.flexible_from, versions[-1]
    )
    head += "" if message.number is None else f" type {message.number}"
    return head + (" zigzag" if message.zigzag else "")


def _lines(fields: Sequence[Field], versions: Sequence[int], depth: int) -> Iterator[str]:
    """Without columns, and with an end only where a field ended before the last version."""
    for field in fields:
        live = [version for version in versions if version in field.versions]
        if not live:
            continue
        words = [field.name, field.text() + _null(field, live)]
        if field.meaning is not Meaning.NONE:
            words.append(
                f"enum.{field.enum}" if field.meaning is Meaning.ENUM else field.meaning.name.lower()
            )
        words.append(f"{live[0]}+" if live[-1] == versions[-1] else f"{live[0]}-{live[-1]}")
        if field.tag is not None:
            words += ["tag", str(field.tag)] + ([] if field.default is None else ["=", field.default])
        yield "    " * depth + " ".join(words)
        yield from _lines(field.children, live, depth + 1)


def _null(field: Field, live: Sequence[int]) -> str:
    nulls = [version for version in live if field.nullable is not None and version in field.nullable]
    if not nulls or nulls == list(live):
        return ""
    return f"{nulls[0]}+" if nulls[-1] == live[-1] else f"{nulls[0]}-{nulls[-1]}"


def _cut_tables(folder: Path, older: Sequence[str], release: str) -> None:
    path = folder / "releases.tsv"
    lines = []
    for line in path.read_text("utf-8").splitlines():
        key, *words = line.split("\t")
        if key == "release" or key.isdigit():
            words = [word for word in words if word.partition(":")[0] in older]
            if words:
                lines.append("\t".join([key, *words]))
    path.write_text("\n".join(lines) + "\n", "utf-8")
    path = folder / "errors.txt"
    rows = path.read_text("utf-8").splitlines(keepends=True)
    kept = [row for row in rows if row.startswith("#") or not row.strip() or _since(row) <= order(release)]
    path.write_text("".join(kept), "utf-8")


def _since(row: str) -> tuple[int, ...]:
    return order(row.split()[3])
