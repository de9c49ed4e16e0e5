"""The manifest of a run: the files of its tables, each with its rows and size.

    _kwsniff.json    {"version": 1, "run_id": "...", "rows": {...}, "files": {"api_calls": [{...}]}, ...}

It is put in its place last, and makes what it names the tables. In a store it is written twice, the first
time under another name: of a writer that dies one of the two is whole.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kwsniff.errors import OutputError
from kwsniff.spark.parts import Part
from kwsniff.spark.storage import Place, in_threads
from kwsniff.tables.folder import MANIFEST

NEXT: Final = "_kwsniff.next.json"
_VERSION: Final = 1


def manifest_of(run: str, parts: Iterable[Part], facts: Mapping[str, Any]) -> dict[str, Any]:
    """What it says of a run."""
    files: dict[str, list[dict[str, Any]]] = {}
    for part in sorted(parts, key=lambda part: part.path):
        files.setdefault(part.table, []).append({"path": part.path, "rows": part.rows, "size": part.size})
    return {"version": _VERSION, "run_id": run, **facts, "files": files}


def check_files(place: Place, parts: Iterable[Part]) -> None:
    """Raises OutputError unless each file is there, of its size, and a table of its rows."""
    for part, why in in_threads(lambda part: (part, _wrong(place, part)), parts):
        if why:
            raise OutputError(
                f"{place.display(part.path)}: {why}; nothing was published; look at the storage of the output"
            )


def _wrong(place: Place, part: Part) -> str | None:
    size = place.size(part.path)
    if size != part.size:
        return "is not there" if size is None else f"has {size} bytes in place of {part.size}"
    try:
        with place.open_parquet(part.path) as file:
            rows = file.metadata.num_rows
    except (OSError, ValueError) as error:
        return f"cannot be read again ({error})"
    return None if rows == part.rows else f"has {rows} rows in place of {part.rows}"


def publish(place: Place, manifest: Mapping[str, Any]) -> None:
    """Makes its files the tables of this place. Raises OSError."""
    text = as_text(manifest)
    place.write_text(NEXT, text)
    place.write_text(MANIFEST, text)
    place.remove([NEXT])


def as_text(manifest: Mapping[str, Any]) -> str:
    """As it is written."""
    return json.dumps(manifest, indent=1) + "\n"


def read_published(place: Place) -> dict[str, Any] | None:
    """What was published last; None: nothing was. Raises OSError, OutputError."""
    found = False
    for name in (MANIFEST, NEXT):
        text = place.read_text(name)
        found |= text is not None
        try:
            said = json.loads(text or "")
        except ValueError:
            continue
        if isinstance(said, dict) and said.get("version", _VERSION) == _VERSION and "run_id" in said:
            return said
    if found and place.read_text(NEXT) is None:
        raise OutputError(f"{place.display(MANIFEST)}: is damaged, or of another version of kwsniff")
    return None


def check_same(place: str, manifest: Mapping[str, Any] | None, form: str) -> None:
    """Raises OutputError where tables of one format would be replaced by those of another."""
    found = (manifest or {}).get("format", "parquet")
    if manifest is not None and found != form:
        raise OutputError(
            f"{place}: its tables are {found}; say --format {found}, or choose another folder with -o"
        )


def paths_of(manifest: Mapping[str, Any] | None) -> set[str]:
    """The files that it names."""
    files = (manifest or {}).get("files", {})
    return {each["path"] for listed in files.values() for each in listed}


def parts_of(manifest: Mapping[str, Any] | None) -> list[Part]:
    """The files that it names, as parts."""
    files = (manifest or {}).get("files", {})
    return [Part(table, **each) for table, listed in files.items() for each in listed]
