"""What a run has published: checked before, whole after, of one version and format."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kwsniff.errors import OutputError
from kwsniff.spark.manifest import (
    NEXT,
    check_files,
    check_same,
    manifest_of,
    paths_of,
    publish,
    read_published,
)
from kwsniff.spark.parts import Part
from kwsniff.spark.storage import Place
from kwsniff.tables.folder import MANIFEST


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
    (tmp_path / MANIFEST).write_text(json.dumps({**manifest_of("one", [], {}), "version": 2}))
    with pytest.raises(OutputError, match="another version"):
        read_published(Place(str(tmp_path)))


def test_tables_of_one_format_are_not_replaced_by_those_of_another() -> None:
    check_same("x", None, "delta")
    check_same("x", {"format": "delta"}, "delta")
    check_same("x", {}, "parquet")
    for manifest, form in (({"format": "delta"}, "parquet"), ({}, "delta")):
        with pytest.raises(OutputError, match="choose another folder"):
            check_same("x", manifest, form)
