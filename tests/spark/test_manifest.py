"""What a run has published: checked before, whole after, of one version and format."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kwsniff.errors import OutputError
from kwsniff.spark import manifest as manifests
from kwsniff.spark.manifest import (
    LISTS,
    NEXT,
    check_files,
    check_same,
    manifest_of,
    parts_of,
    paths_of,
    publish,
    read_published,
)
from kwsniff.spark.parts import Part
from kwsniff.spark.storage import Place
from kwsniff.tables.folder import MANIFEST
from kwsniff.tables.stored_files import files_of_tables


def written(folder: Path, path: str, rows: int) -> Part:
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"n": [*range(rows)]}), target)
    return Part(path.partition("/")[0], path, rows, target.stat().st_size, frozenset())


def test_files_are_listed_by_table_and_path(tmp_path: Path) -> None:
    parts = [written(tmp_path, path, rows) for path, rows in (("b/2", 1), ("a/9", 2), ("b/1", 3))]
    said = manifest_of("run", parts, {"format": "parquet"})
    assert [*said["files"]] == ["a", "b"]
    assert [(each["path"], each["rows"]) for each in said["files"]["b"]] == [("b/1", 3), ("b/2", 1)]
    assert paths_of(said) == {"a/9", "b/1", "b/2"}
    assert paths_of(None) == set()


def test_files_are_as_their_writer_said(tmp_path: Path) -> None:
    place, part = Place(str(tmp_path)), written(tmp_path, "a/1", 5)
    check_files(place, [part])
    for wrong, why in (
        (Part("a", "a/2", 5, part.size, frozenset()), "is not there"),
        (
            Part("a", "a/1", 5, part.size + 1, frozenset()),
            f"has {part.size} bytes in place of {part.size + 1}",
        ),
        (Part("a", "a/1", 6, part.size, frozenset()), "has 5 rows in place of 6"),
    ):
        with pytest.raises(OutputError, match=why):
            check_files(place, [part, wrong])
    (tmp_path / "a/1").write_bytes(bytes(part.size))
    with pytest.raises(OutputError, match="cannot be read again"):
        check_files(place, [part])


def test_what_was_published_last_is_found_and_under_one_name(tmp_path: Path) -> None:
    place = Place(str(tmp_path))
    assert read_published(place) is None
    for run in ("one", "two"):
        publish(place, manifest_of(run, [], {}))
        said = read_published(place)
        assert said is not None
        assert said["run_id"] == run
        assert sorted(path.name for path in tmp_path.iterdir()) == [MANIFEST]


def test_of_a_writer_that_died_one_of_two_is_whole(tmp_path: Path) -> None:
    place = Place(str(tmp_path))
    publish(place, manifest_of("one", [], {}))
    (tmp_path / MANIFEST).write_text("{")
    with pytest.raises(OutputError, match="is damaged"):
        read_published(place)
    (tmp_path / NEXT).write_text(json.dumps(manifest_of("two", [], {})))
    said = read_published(place)
    assert said is not None
    assert said["run_id"] == "two"


def test_a_manifest_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(json.dumps({**manifest_of("one", [], {}), "version": 3}))
    with pytest.raises(OutputError, match="another version"):
        read_published(Place(str(tmp_path)))


def test_tables_of_one_format_are_not_replaced_by_those_of_another() -> None:
    check_same("x", None, "delta")
    check_same("x", {"format": "delta"}, "delta")
    check_same("x", {}, "parquet")
    for manifest, form in (({"format": "delta"}, "parquet"), ({}, "delta")):
        with pytest.raises(OutputError, match="choose another folder"):
            check_same("x", manifest, form)


def appended(place: Place, number: int) -> None:
    """A run that adds two files, of one of which nothing more is known than its name."""
    before = read_published(place) or {"files": {}, "inputs": {}}
    files = [Part("a", f"a/date=2026-11-20/{number:04}-{each}", 1, 1, frozenset()) for each in range(2)]
    kept = parts_of(before)
    inputs = {**before["inputs"], f"run-{number}": [f"capture-{number}"]}
    publish(place, manifest_of(f"run-{number}", [*files, *kept], {"inputs": inputs}))


def test_a_manifest_stays_small_and_names_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 200 runs with two files each; a list is joined with those that are not longer: few are left."""
    monkeypatch.setattr(manifests, "_MOST_NAMED", 20)
    (tmp_path / "a").mkdir()
    place, sizes = Place(str(tmp_path)), []
    for number in range(200):
        appended(place, number)
        sizes.append((tmp_path / MANIFEST).stat().st_size)
        said = read_published(place)
        assert said is not None
        assert len(paths_of(said)) == 2 * (number + 1)
        assert len(said["inputs"]) == number + 1
    assert max(sizes) < 30 * 200
    lists = [*(tmp_path / LISTS).iterdir()]
    assert len(lists) == len(json.loads((tmp_path / MANIFEST).read_text())["lists"]) < 9
    found = files_of_tables(tmp_path)["a"]
    assert [Path(each).name for each in found] == [
        f"{run:04}-{each}" for run in range(200) for each in (0, 1)
    ]


def test_a_list_of_which_a_file_was_replaced_is_not_used_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "_MOST_NAMED", 4)
    place = Place(str(tmp_path))
    for number in range(9):
        appended(place, number)
    before = read_published(place)
    kept = [part for part in parts_of(before) if not part.path.endswith("0003-1")]
    publish(place, manifest_of("last", kept, {"inputs": {}}))
    said = read_published(place)
    assert paths_of(said) == {part.path for part in kept}
    assert {str(path.relative_to(tmp_path)) for path in (tmp_path / LISTS).iterdir()} == {
        *json.loads((tmp_path / MANIFEST).read_text())["lists"]
    }


def test_a_list_that_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "_MOST_NAMED", 1)
    place = Place(str(tmp_path))
    appended(place, 0)
    (path,) = (tmp_path / LISTS).iterdir()
    path.unlink()
    with pytest.raises(OutputError, match="is missing or damaged"):
        read_published(place)
