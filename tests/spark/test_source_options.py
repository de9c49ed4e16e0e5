"""What the options of the data source mean, and which files they choose."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

import kwsniff
import kwsniff.spark
from kwsniff.errors import CaptureError, UsageError
from kwsniff.spark.hadoop import Settings
from kwsniff.spark.source_files import Choice, find_files
from kwsniff.spark.source_options import check_options, options_of_table
from tests.spark.store import new_bucket, put

FILES = (
    "a.pcap",
    "b.pcap.gz",
    "date=2026-11-20/c.pcap",
    "date=2026-11-20/hour=3/d.pcapng",
    "nested/e.pcap",
    "nested/deep/f.pcap",
    "_temporary/date=1/g.pcap",
    ".hidden/h.pcap",
    "nested/.i.pcap",
)
CASES = [
    ({}, "abcd"),
    ({"recursiveFileLookup": "true"}, "abcdef"),
    ({"pathGlobFilter": "*.pcap"}, "ac"),
    ({"pathGlobFilter": "[ad].*"}, "ad"),
    ({"pathGlobFilter": "*.{gz,pcapng}"}, "bd"),
    ({"pathGlobFilter": "*.pcap", "recursiveFileLookup": "TRUE"}, "acef"),
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in FILES:
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return tmp_path / "in"


def letters(paths: list[str], options: dict[str, str], stores: Any = ()) -> str:
    found = find_files(paths, Choice.read(check_options(options)), stores)
    return "".join(sorted(each.base[0] for each in found))


@pytest.mark.parametrize(("options", "wanted"), CASES)
def test_options_choose_files_of_a_folder(tree: Path, options: dict[str, str], wanted: str) -> None:
    assert letters([str(tree)], options) == wanted


@pytest.mark.sample(2)
@pytest.mark.parametrize(("options", "wanted"), CASES)
def test_options_choose_files_of_a_store_alike(
    settings: Settings, options: dict[str, str], wanted: str
) -> None:
    store = new_bucket(settings)
    for name in FILES:
        put(store, f"in/{name}", b"x")
    assert letters([f"{store.root}/in"], options, ((store.root, settings),)) == wanted


def test_a_folder_with_nothing_to_choose_stays_one(tree: Path) -> None:
    """Other files in it are reported, as elsewhere."""
    found = find_files([str(tree / "nested")], Choice.read({}), ())
    assert [each.name for each in found] == [str(tree / "nested")]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"modifiedAfter": "2026-11-20T10:00:00"}, "b"),
        ({"modifiedBefore": "2026-11-20T10:00:00Z"}, "d"),
        ({"modifiedAfter": "2026-11-20T10:00:00+01:00"}, "abc"),
        ({"modifiedAfter": "2026-11-20T09:59:59", "modifiedBefore": "2026-11-20T10:00:01"}, "ac"),
    ],
)
def test_files_are_chosen_by_their_times(tree: Path, options: dict[str, str], wanted: str) -> None:
    """Before and after leave out what is of that very moment, as Spark has it."""
    ten = 1_795_168_800
    for name, time in zip(FILES, (ten, ten + 1, ten, ten - 3600), strict=False):
        os.utime(tree / name, (time, time))
    assert letters([str(tree)], options) == wanted


def test_a_file_is_given_once_and_one_that_is_left_out_not_at_all(tree: Path) -> None:
    path = str(tree / "a.pcap")
    assert letters([path, str(tree), f"{tree}/*.pcap"], {}) == "abcd"
    with pytest.raises(CaptureError, match="none of the files"):
        letters([path], {"pathGlobFilter": "b*"})


@pytest.mark.parametrize("name", ["tlsKeylog", "tls_keylog", "TLSKEYLOG", "TLS_Keylog"])
def test_names_in_camel_case_and_with_underscores_are_the_same(name: str) -> None:
    assert check_options({name: "keys"}) == {"tlskeylog": "keys"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"runid": "a", "run_id": "b"}, "option runId is given twice"),
        ({"runId": "a", "tlsKeylogs": "b"}, "unknown option 'tlsKeylogs' .*; did you mean tlsKeylog"),
        ({"mergeSchema": "true"}, "unknown option 'mergeSchema' .*; known: table, port,"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_options(options)


def test_settings_of_stores_are_no_options_of_a_table_that_is_kept() -> None:
    assert check_options({"fs.s3a.secret.key": "x", "spark.hadoop.fs.gs.auth.type": "y"}) == {}
    with pytest.raises(UsageError, match="would be kept with the table"):
        options_of_table({"provider": "kafka_capture", "option.fs.s3a.secret.key": "x"})


@pytest.mark.slow
def test_a_store_is_read_with_the_settings_of_the_session_or_of_the_read(
    spark: Any, capture: Path, settings: Settings
) -> None:
    store = new_bucket(settings)
    uri = put(store, "in/date=2026-11-20/a.pcap", capture.read_bytes())
    wanted = kwsniff.analyze(capture).api_calls.num_rows

    def rows(path: str, options: dict[str, str]) -> Any:
        return spark.read.format("kafka_capture").options(**options).load(path).select("capture").toArrow()

    with pytest.raises(Exception, match="cannot read"):
        rows(uri, {"fs.s3a.endpoint": "http://127.0.0.1:9"})
    found = rows(f"{store.root}/in", dict(settings))
    assert found["capture"].to_pylist() == [uri] * wanted
    try:
        for name, value in settings:
            spark.conf.set(f"spark.hadoop.{name}", value)
        kwsniff.spark.register(spark)
        assert rows(f"{store.root}/*/date=*", {}).num_rows == wanted
    finally:
        for name, _ in settings:
            spark.conf.unset(f"spark.hadoop.{name}")
        kwsniff.spark.register(spark)
