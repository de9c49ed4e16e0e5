"""Captures in HDFS, Google's and Azure's stores, and tables there: the rows of analyze."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("kwsniff.core.capture.file_splits", reason="the core is not built")

from kwsniff.errors import OutputError, UsageError
from kwsniff.spark import output_lock, staging, stored_captures
from kwsniff.spark.file_systems import file_system
from kwsniff.spark.hadoop import hadoop_settings
from kwsniff.spark.manifest import paths_of, read_published
from kwsniff.spark.pipeline import run_pipeline
from kwsniff.spark.storage import Place
from kwsniff.tables.folder import MANIFEST
from kwsniff.tables.schema import TABLES
from tests.spark.cluster import cluster
from tests.spark.compare import analyzed, rotated
from tests.spark.emulators import azure, google
from tests.spark.hdfs import hdfs
from tests.spark.store import as_if_local, put
from tests.spark.test_cluster import rows_of, run_on

ONE, OTHER = (
    Path(__file__).parents[2] / "captures" / name / "capture.pcap" for name in ("transactions", "first_steps")
)


@pytest.fixture(scope="module", params=[hdfs, google, azure], ids=["hdfs", "gs", "abfs"])
def somewhere(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with request.param(tmp_path_factory.mktemp("store")) as place:
        yield place


@pytest.fixture
def store(somewhere: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_process: None) -> Place:
    monkeypatch.setattr(output_lock, "BEAT_S", 0.2)
    monkeypatch.setattr(output_lock, "PATIENCE_S", 1.5)
    monkeypatch.setattr(output_lock, "_LOOK_S", 0.1)
    for module in (staging, stored_captures):
        monkeypatch.setattr(module, "settings_for", lambda *_: somewhere.settings)
    return somewhere.inside(tmp_path.name)


@pytest.fixture
def rotated_in_store(store: Place, tmp_path: Path) -> list[Path]:
    """Captures in a folder, and under the same names in the store."""
    (tmp_path / "in").mkdir()
    paths = rotated(ONE.read_bytes(), 4, tmp_path / "in")
    for path in paths:
        put(store, f"in/{path.name}", path.read_bytes())
    return paths


def run(paths: Any, output: Place, **options: Any) -> Any:
    return run_pipeline(paths, output.root, spark=None, tables=tuple(TABLES), num_buckets=2, **options)  # type: ignore[arg-type]


@pytest.mark.slow
def test_tables_of_captures_there_are_those_of_analyze(
    store: Place, rotated_in_store: list[Path], tmp_path: Path
) -> None:
    output = store.inside("deep/tables")
    run([f"{store.root}/in"], output, split_bytes=30_000)
    assert as_if_local(rows_of(output), store, tmp_path) == analyzed(*rotated_in_store)
    assert set(output.files()) == {MANIFEST, *paths_of(read_published(output))}


@pytest.mark.slow
def test_a_run_takes_the_place_of_the_one_before(store: Place) -> None:
    output = store.inside("tables")
    for capture in (ONE, OTHER):
        run(capture, output)
        assert rows_of(output) == analyzed(capture)
        assert set(output.files()) == {MANIFEST, *paths_of(read_published(output))}


def test_files_are_written_anew_copied_and_removed(store: Place) -> None:
    """`#` is what it is elsewhere in a path."""
    store.write_text("a/b=1/x#y.txt", "one")
    store.write_text("a/b=1/x#y.txt", "another")
    store.copy("a/b=1/x#y.txt", "c/copied")
    assert store.files() == ["a/b=1/x#y.txt", "c/copied"]
    assert (store.read_text("c/copied"), store.size("c/copied")) == ("another", 7)
    store.remove(["c/copied", "never"])
    store.remove_folder("a")
    store.remove_folder("never")
    assert (store.files(), store.size("c/copied"), store.read_text("never")) == ([], None, None)


def test_files_of_others_are_let_be(store: Place) -> None:
    store.write_text("letter.txt", "dear")
    with pytest.raises(OutputError, match="did not write"):
        run(ONE, store)
    assert store.files() == ["letter.txt"]


@pytest.mark.slow
def test_workers_that_share_nothing_read_it_and_fill_it(spark: Any, capture: Path, tmp_path: Path) -> None:
    """The driver's captures and session lie where each worker has an empty folder of its own."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    paths = rotated(capture.read_bytes(), 4, hidden)
    with hdfs(tmp_path) as store, cluster(tmp_path, hidden=hidden, workers=2) as master:
        for path in paths:
            put(store, path.name, path.read_bytes())
        (done,) = run_on(master, hidden, [[f"{store.root}/rotated.pcap*", "-o", f"{store.root}/tables"]])
        assert done[0] == 0, done[2]
        assert as_if_local(rows_of(store.inside("tables")), store, hidden) == analyzed(*paths)
    for number in range(2):
        assert [*(tmp_path / f"work-{number}").glob("app-*/*/stderr")], "a worker had nothing to do"


@pytest.mark.parametrize(
    ("uri", "words"),
    [("hdfs://nowhere-at-all/x", "No NameNode hosts found"), ("hdfs:///x", "No fs.defaultFS setting found")],
)
def test_an_address_that_is_none_is_one_line(monkeypatch: pytest.MonkeyPatch, uri: str, words: str) -> None:
    pytest.importorskip("hdfs_native", reason="hdfs-native is not installed")
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    with pytest.raises(UsageError, match=words) as raised:
        Place(uri).files()
    assert "\n" not in str(raised.value)


def test_the_name_nodes_of_a_service_come_out_of_the_configuration() -> None:
    """hdfs-site.xml of "HDFS High Availability Using the Quorum Journal Manager"."""
    known = {
        "fs.defaultFS": "hdfs://mycluster",
        "dfs.nameservices": "mycluster",
        "dfs.ha.namenodes.mycluster": "nn1,nn2",
        "dfs.namenode.rpc-address.mycluster.nn1": "machine1.example.com:8020",
        "dfs.namenode.rpc-address.mycluster.nn2": "machine2.example.com:8020",
    }
    others = {"dfs.replication": "3", "fs.s3a.secret.key": "secret"}
    assert dict(hadoop_settings("hdfs", "mycluster", {**known, **others}.get)) == known


@pytest.mark.slow
def test_a_configuration_without_services_says_where_the_name_node_is() -> None:
    known = {"dfs.namenode.rpc-address": "machine1.example.com:8020"}
    assert dict(hadoop_settings("hdfs", "", known.get)) == known


def test_of_azure_the_accounts_own_settings_go_before_those_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """hadoop-azure: a setting with the account's name behind it."""
    asked: dict[str, str] = {}
    monkeypatch.setattr(pafs, "AzureFileSystem", lambda **options: asked.update(options))
    account = "traffic.dfs.core.chinacloudapi.cn"
    settings = (
        ("fs.azure.account.oauth2.client.id", "all"),
        (f"fs.azure.account.oauth2.client.id.{account}", "this"),
        ("fs.azure.account.oauth2.client.secret", "secret"),
        ("fs.azure.account.oauth2.client.endpoint", "https://login.chinacloudapi.cn/tenant-1/oauth2/token"),
    )
    file_system(f"abfss://captures@{account}/day1", settings)
    assert asked == {
        "account_name": "traffic",
        "client_id": "this",
        "client_secret": "secret",
        "tenant_id": "tenant-1",
        "dfs_storage_authority": ".dfs.core.chinacloudapi.cn",
        "blob_storage_authority": ".blob.core.chinacloudapi.cn",
    }
