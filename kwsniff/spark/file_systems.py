"""Arrow's file system for a URI, with the credentials that Spark's configuration has for Hadoop's.

Sources: the settings of hadoop-aws, hadoop-azure, the Cloud Storage connector, hdfs-default.xml; pyarrow.fs.
"""

import os
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow.fs as pafs

from kwsniff.errors import UsageError
from kwsniff.spark import azure, s3
from kwsniff.spark.configuration import check_secrets, explain_refusal, read_settings, refuse_unused
from kwsniff.spark.hadoop import Settings, hadoop_file_system, hadoop_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_URI: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<host>[^/]*)(?P<path>/.*)?", re.DOTALL)
_GS: Final = (
    "fs.gs.storage.root.url", "fs.gs.auth.service.account.json.keyfile", "fs.gs.auth.type",
    "fs.gs.auth.impersonation.service.account", "fs.gs.auth.service.account.enable",
)  # fmt: skip
_GS_CONCERNS: Final = re.compile(
    r"fs\.gs\.(auth|encryption|proxy|requester|delegation)\.|google\.cloud\.auth\."
)
_GS_TYPES: Final = (
    None,
    "COMPUTE_ENGINE",
    "APPLICATION_DEFAULT",
    "SERVICE_ACCOUNT_JSON_KEYFILE",
    "UNAUTHENTICATED",
)


class _Address(NamedTuple):
    scheme: str
    host: str
    path: str


def is_uri(name: str | os.PathLike[str]) -> bool:
    """Whether it names a place that is not a path; `file:` URIs mean paths."""
    match = _URI.fullmatch(name) if isinstance(name, str) else None
    return match is not None and match["scheme"].lower() != "file"


def check_uri(uri: str) -> str:
    """The URI, without a slash at its end. Raises UsageError for one that is of no store we know."""
    address = _address(uri)
    if address.scheme not in _OPENED:
        raise UsageError(f"{uri}: kwsniff knows no {address.scheme}://; it knows {', '.join(_OPENED)}")
    if not address.host and address.scheme not in _HADOOP:
        raise UsageError(f"{uri}: names no bucket or container")
    return uri.rstrip("/")


def settings_for(spark: "SparkSession | None", uri: str) -> Settings:
    """What the session's configuration says that concerns this URI, however it came into it.

    Raises UsageError for what says how to sign in or to encrypt and would be ignored.
    """
    return () if spark is None else chosen_settings(read_settings(spark), uri)


def chosen_settings(stated: Mapping[str, str], uri: str) -> Settings:
    """Those of all that concern this URI. Raises UsageError."""
    address = _address(uri)
    if address.scheme in _HADOOP:
        return hadoop_settings(address.scheme, address.host, stated.get)
    check_secrets(stated)
    if address.scheme in _S3:
        return tuple(s3.chosen_settings(stated, address.host))
    if address.scheme == "gs":
        refuse_unused(stated, _GS, _GS_CONCERNS)
        return tuple((name, stated[name]) for name in _GS if name in stated)
    return tuple(azure.chosen_settings(stated, address.host))


def check_written(uri: str, settings: Settings) -> None:
    """Raises UsageError where files are to be encrypted in a way that Arrow cannot ask for."""
    address = _address(uri)
    if address.scheme in _S3:
        s3.check_encryption(dict(settings), address.host, is_written=True)


def file_system(uri: str, settings: Settings) -> tuple[Any, str]:
    """A file system of Arrow's, and the URI's path in it. Raises UsageError, OSError."""
    address = _address(uri)
    return _open(address.scheme, address.host, settings, os.getpid()), _path(address)


def split_uri(uri: str) -> tuple[str, str, str]:
    """Scheme, host (of S3: the bucket), and the path inside; empty for a path of this machine."""
    if not is_uri(uri):
        return "", "", uri
    address = _address(uri)
    return address.scheme, address.host, address.path.strip("/")


def attempts_at(uri: str, settings: Settings) -> int:
    """How often a request to this store is made at most. Raises UsageError."""
    return s3.read_attempts(dict(settings), _address(uri).host)


def _address(uri: str) -> _Address:
    match = _URI.fullmatch(uri)
    if match is None:
        raise UsageError(f"{uri} is not a URI")
    return _Address(match["scheme"].lower(), match["host"], match["path"] or "")


def _path(address: _Address) -> str:
    """Where Arrow's file system has it: behind the name of the bucket or container, where there is one."""
    if address.scheme in _HADOOP:
        return address.path.rstrip("/")
    return (address.host.partition("@")[0] + address.path).rstrip("/")


@lru_cache(maxsize=16)
def _open(scheme: str, host: str, settings: Settings, _process: int) -> Any:
    """One for each process: clients of stores do not live through a fork."""
    opened = _OPENED.get(scheme)
    if opened is None:
        raise UsageError(f"kwsniff knows no {scheme}://; it knows {', '.join(_OPENED)}")
    try:
        return opened(scheme, host, dict(settings))
    except AttributeError as error:
        raise UsageError(f"{scheme}://: this pyarrow was built without it; install a newer one") from error


def _gs(_scheme: str, _bucket_name: str, settings: Mapping[str, str]) -> Any:
    options: dict[str, Any] = {}
    root = settings.get("fs.gs.storage.root.url")
    if root:
        scheme, _, address = root.rpartition("://")
        options = {"endpoint_override": address.rstrip("/"), "scheme": scheme or "https"}
    kind, keyfile = settings.get("fs.gs.auth.type"), settings.get("fs.gs.auth.service.account.json.keyfile")
    if kind not in _GS_TYPES:
        raise explain_refusal("fs.gs.auth.type", kind)
    if kind == "SERVICE_ACCOUNT_JSON_KEYFILE" and not keyfile:
        raise UsageError(
            f"fs.gs.auth.type is {kind}: set fs.gs.auth.service.account.json.keyfile to the file"
        )
    if keyfile:  # Arrow takes it from nowhere else
        os.environ["GOOGLE_APPLICATION_CREDENTIALS"] = keyfile
    if kind == "UNAUTHENTICATED":
        options["anonymous"] = True
    if account := settings.get("fs.gs.auth.impersonation.service.account"):
        options["target_service_account"] = account
    return pafs.GcsFileSystem(**options)


_OPENED: Final[dict[str, Callable[[str, str, Mapping[str, str]], Any]]] = {
    "s3a": s3.s3_file_system, "s3": s3.s3_file_system, "s3n": s3.s3_file_system,
    "gs": _gs, "abfs": azure.azure_file_system, "abfss": azure.azure_file_system,
    "hdfs": hadoop_file_system, "viewfs": hadoop_file_system,
}  # fmt: skip
_HADOOP: Final = ("hdfs", "viewfs")
_S3: Final = ("s3a", "s3", "s3n")
