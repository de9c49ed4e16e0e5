"""Hadoop's file system, as Arrow's: its own protocol is spoken by hdfs-native, without Java and libhdfs.

Where the cluster's configuration is at hand (`HADOOP_CONF_DIR`, `HADOOP_HOME`) it is read; what Spark's
configuration says of name nodes goes before it. Tokens that YARN gives to tasks
(`HADOOP_TOKEN_FILE_LOCATION`), Kerberos tickets and `HADOOP_USER_NAME` count as for Hadoop's own clients.
Sources: hdfs-default.xml, core-default.xml; "HDFS High Availability Using the Quorum Journal Manager".
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pyarrow.fs as pafs

from kwsniff.errors import UsageError

Settings = tuple[tuple[str, str], ...]
"""Names and values of Hadoop's settings, `fs.s3a.endpoint` and the like."""

_COMMON: Final = (
    "fs.defaultFS", "dfs.nameservices", "hadoop.security.authentication", "hadoop.rpc.protection",
    "dfs.data.transfer.protection", "dfs.encrypt.data.transfer", "dfs.client.use.datanode.hostname",
)  # fmt: skip
# Who named a cluster that is not there waits seconds for the answer; Hadoop's own tries take four minutes.
_PATIENCE: Final = {"dfs.client.failover.max.attempts": "3", "dfs.client.failover.sleep.max.millis": "4000"}
_ADDRESS: Final = "dfs.namenode.rpc-address"


def hadoop_settings(scheme: str, host: str, get: Callable[[str], str | None]) -> Settings:
    """What a configuration says of the name nodes behind a URI's host. `get`: the value of a name."""
    found = {name: get(name) for name in (*_COMMON, *_PATIENCE, *_of_mount_table(scheme, host))}
    for service in (found["dfs.nameservices"] or "").split(","):
        nodes = f"dfs.ha.namenodes.{service}"
        found[nodes] = get(nodes)
        for node in (found[nodes] or "").split(","):
            name = ".".join(filter(None, (_ADDRESS, service, node)))
            found[name] = get(name)
    return tuple((name, value) for name, value in found.items() if value)


def _of_mount_table(scheme: str, host: str) -> Iterator[str]:
    """Of a viewfs, what can be asked for by name: where all that has no link of its own lies."""
    if scheme == "viewfs":
        yield f"fs.viewfs.mounttable.{host or 'default'}.linkFallback"


def hadoop_file_system(scheme: str, host: str, settings: Mapping[str, str]) -> Any:
    """A file system of Arrow's. Raises UsageError where hdfs-native is missing, or the address is none."""
    try:
        from hdfs_native.fsspec import HdfsFileSystem, ViewfsFileSystem
    except ImportError as error:
        raise UsageError(f"{scheme}://: needs hdfs-native; pip install hdfs-native") from error

    class FileSystem(HdfsFileSystem if scheme == "hdfs" else ViewfsFileSystem):  # type: ignore[misc]
        """Paths are paths: `#` and `?` in a name are nothing else."""

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return path or cls.root_marker

        def cp_file(self, path1: str, path2: str, **_options: Any) -> None:
            raise NotImplementedError  # Hadoop has no copies; who asks reads and writes

    name, _, port = host.partition(":")
    options = {**_PATIENCE, **settings}
    try:
        opened = FileSystem(name or None, int(port) if port else None, skip_instance_cache=True, **options)
    except (RuntimeError, ValueError) as error:
        why = " ".join(str(error).split())
        raise UsageError(f"{scheme}://{host} is not an address of a Hadoop file system ({why})") from error
    return pafs.PyFileSystem(pafs.FSSpecHandler(opened))
