"""The manifest of a run: the files of its tables, each with its rows and size.

    _kwsniff.json            {"version": 2, "run_id": "...", "rows": {...}, "files": {"api_calls": [{...}]},
                              "lists": ["_kwsniff.lists/....json"], ...}
    _kwsniff.lists/*.json    {"files": {...}, "inputs": {...}}: of earlier runs, likewise

It is put in its place last, and makes what it names the tables. In a store it is written twice, the first
time under another name: of a writer that dies one of the two is whole. Files that appends leave as they are
move into lists, which never change: a list is joined with those before it that are not longer, so that there
are few, and the manifest stays small however many runs there were.
"""

import json
import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kwsniff.errors import OutputError
from kwsniff.spark.conditional_writes import GuardedFile
from kwsniff.spark.parts import Part
from kwsniff.spark.storage import Place, in_threads
from kwsniff.tables.folder import MANIFEST

NEXT: Final = "_kwsniff.next.json"
LISTS: Final = "_kwsniff.lists"
_VERSION: Final = 2
_KNOWN_VERSIONS: Final = (1, 2)
_MOST_NAMED: Final = 1000
"""Files and runs that the manifest itself names, at most; but those of its own run."""


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


def publish(place: Place, manifest: Mapping[str, Any], guard: GuardedFile | None = None) -> None:
    """Makes its files the tables of this place. `guard`: of the manifest; it is replaced only where it is as
    it was. Raises OSError, OutputError."""
    lists, entries = _find_lists(place, manifest)
    if len(entries) > _MOST_NAMED:
        while lists and len(lists[-1][1]) <= len(entries):
            entries |= lists.pop()[1]
        name = f"{LISTS}/{manifest['run_id']}-{uuid.uuid4().hex[:12]}.json"
        place.write_text(name, json.dumps(_nest(entries)))
        lists, entries = [*lists, (name, entries)], {}
    text = as_text({**manifest, **_nest(entries), "lists": [name for name, _ in lists]})
    if guard:
        guard.replace(text)
    else:
        place.write_text(NEXT, text)
        place.write_text(MANIFEST, text)
    place.remove([NEXT])
    named = {name for name, _ in lists} | kept_for_readers(manifest)
    place.remove(path for path in place.files(LISTS) if path not in named)


def keep_for_readers(
    place: Place, before: Mapping[str, Any] | None, named: Iterable[str], seconds: float
) -> list[dict[str, Any]]:
    """What a manifest says of files that are not in it any more, and stay for those who read by an earlier
    one: for `seconds` more, and what earlier runs left so. Raises OSError."""
    now = time.time()
    left = [each for each in (before or {}).get("old", []) if each["until"] > now]
    if not seconds:
        return left
    gone = sorted((paths_of(before) | {*_names_of_lists(place)}) - {*named})
    return [*left, {"until": now + seconds, "paths": gone}] if gone else left


def kept_for_readers(manifest: Mapping[str, Any] | None) -> set[str]:
    """The files that stay for them, at this time."""
    old = (manifest or {}).get("old", [])
    return {path for each in old if each["until"] > time.time() for path in each["paths"]}


Entries = dict[tuple[str, str, str], Any]
"""What manifests and lists name: files, by their table and path, and captures, by their run."""


def _entries(said: Mapping[str, Any]) -> Entries:
    files = said.get("files", {})
    return {
        **{("files", table, each["path"]): each for table, listed in files.items() for each in listed},
        **{("inputs", run, ""): read for run, read in said.get("inputs", {}).items()},
    }


def _nest(entries: Entries) -> dict[str, Any]:
    said: dict[str, Any] = {"inputs": {}, "files": {}}
    for kind, name, _ in sorted(entries):
        if kind == "inputs":
            said["inputs"][name] = entries[kind, name, ""]
        else:
            said["files"].setdefault(name, [])
    for (kind, name, _), each in sorted(entries.items(), key=lambda pair: pair[0]):
        if kind == "files":
            said["files"][name].append(each)
    return said


def _find_lists(place: Place, manifest: Mapping[str, Any]) -> tuple[list[tuple[str, Entries]], Entries]:
    """The published lists all of which still holds, and what the manifest names besides."""
    left = _entries(manifest)
    lists = []
    for name in _names_of_lists(place):
        held = _entries(_read_list(place, name))
        if all(left.get(key) == each for key, each in held.items()):
            lists.append((name, held))
            for key in held:
                del left[key]
    return lists, left


def _names_of_lists(place: Place) -> list[str]:
    found = _read_newest(place)[0]
    return [*found.get("lists", [])] if found else []


def _read_list(place: Place, name: str) -> dict[str, Any]:
    text = place.read_text(name)
    try:
        said = json.loads(text or "")
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise OutputError(f"{place.display(name)}: is missing or damaged, and names files of the tables")
    return said


def as_text(manifest: Mapping[str, Any]) -> str:
    """As it is written."""
    return json.dumps(manifest, indent=1) + "\n"


def read_published(place: Place) -> dict[str, Any] | None:
    """What was published last, with all files that its lists name; None: nothing was. Raises OSError,
    OutputError."""
    said, is_there = _read_newest(place)
    if said is None:
        if is_there and place.read_text(NEXT) is None:
            raise OutputError(f"{place.display(MANIFEST)}: is damaged, or of another version of kwsniff")
        return None
    names = said.pop("lists", [])
    if not names:
        return said
    entries = _entries(said)
    for name in names:
        entries |= _entries(_read_list(place, name))
    return {**said, **_nest(entries)}


def _read_newest(place: Place) -> tuple[dict[str, Any] | None, bool]:
    """What was published last, and whether anything is there."""
    is_there = False
    for name in (MANIFEST, NEXT):
        text = place.read_text(name)
        is_there |= text is not None
        try:
            said = json.loads(text or "")
        except ValueError:
            continue
        if isinstance(said, dict) and said.get("version", 1) in _KNOWN_VERSIONS and "run_id" in said:
            return said, True
    return None, is_there


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
