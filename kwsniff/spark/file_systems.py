"""Arrow's file system for a URI, with the credentials that Spark's configuration has for Hadoop's.

Sources: the settings of hadoop-aws, hadoop-azure, the Cloud Storage connector, hdfs-default.xml; pyarrow.fs.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow.fs as pafs

from kwsniff.errors import UsageError
from kwsniff.spark.hadoop import Settings, hadoop_file_system, hadoop_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_URI: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<host>[^/]*)(?P<path>/.*)?", re.DOTALL)
_S3: Final = (
    "access.key", "secret.key", "session.token", "endpoint", "endpoint.region",
    "connection.ssl.enabled", "path.style.access", "attempts.maximum",
)  # fmt: skip
_ATTEMPTS: Final = 10
"""Of each request to S3, with growing pauses between them: a store that says SlowDown is asked again."""
_FIRST_ATTEMPTS: Final = 3
"""Of the first request: a user who names a store that is not there waits for seconds, not minutes."""
# With the account's name behind them, or for all accounts.
_AZURE: Final = (
    ("fs.azure.account.key", "account_key"),
    ("fs.azure.sas.fixed.token", "sas_token"),
    ("fs.azure.account.oauth2.client.id", "client_id"),
    ("fs.azure.account.oauth2.client.secret", "client_secret"),
    ("fs.azure.account.oauth2.client.endpoint", "endpoint"),
)
_TENANT: Final = re.compile(r"https://[^/]+/([^/]+)/oauth2/")


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
    """What the session's configuration says that concerns this URI, however it came into it."""
    if spark is None:
        return ()
    address = _address(uri)
    if address.scheme in _HADOOP:
        return hadoop_settings(address.scheme, address.host, partial(_setting, spark))
    found = ((name, _setting(spark, name)) for name in _settings_of(uri))
    return tuple((name, value) for name, value in found if value is not None)


def file_system(uri: str, settings: Settings) -> tuple[Any, str]:
    """A file system of Arrow's, and the URI's path in it. Raises UsageError, OSError."""
    address = _address(uri)
    return _open(address.scheme, address.host, settings, os.getpid()), _path(address)


def attempts_at(uri: str, settings: Settings) -> int:
    """How often a request to this store is made at most. Raises UsageError."""
    return _read_attempts(dict(settings), _address(uri).host)


def _read_attempts(settings: Mapping[str, str], bucket: str) -> int:
    attempts = _of_bucket(settings, bucket, "attempts.maximum") or str(_ATTEMPTS)
    if not attempts.isdecimal() or not int(attempts):
        raise UsageError(f"fs.s3a.attempts.maximum is {attempts!r}; give a number of 1 or more")
    return int(attempts)


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


def _s3(_scheme: str, bucket: str, settings: Mapping[str, str]) -> Any:
    known = {name: _of_bucket(settings, bucket, name) for name in _S3}
    endpoint = known["endpoint"] or ""
    ssl = (known["connection.ssl.enabled"] or "true").lower() != "false"
    scheme, _, address = endpoint.rpartition("://")
    options: dict[str, Any] = {
        "access_key": known["access.key"],
        "secret_key": known["secret.key"],
        "session_token": known["session.token"],
        "region": known["endpoint.region"],
        "endpoint_override": address.rstrip("/") or None,
        "scheme": scheme or ("https" if ssl else "http"),
    }
    if endpoint and not known["endpoint.region"]:
        options["region"] = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION", "us-east-1")
    if options["access_key"] is None:
        options["session_token"] = options["secret_key"] = None
    given = {name: value for name, value in options.items() if value is not None}
    attempts = _read_attempts(settings, bucket)
    _check_reachable(_s3_of(min(attempts, _FIRST_ATTEMPTS), given), bucket)
    return _s3_of(attempts, given)


def _s3_of(attempts: int, given: Mapping[str, Any]) -> Any:
    strategy = pafs.AwsDefaultS3RetryStrategy(max_attempts=attempts)
    return pafs.S3FileSystem(request_timeout=120, connect_timeout=5, retry_strategy=strategy, **given)


def _check_reachable(files: Any, bucket: str) -> None:
    """Raises OSError where nothing listens. What else the store says is for those who ask it for more."""
    try:
        files.get_file_info(bucket)
    except OSError as error:
        if "NETWORK_CONNECTION" in str(error):
            raise


def _of_bucket(settings: Mapping[str, str], bucket: str, name: str) -> str | None:
    return settings.get(f"fs.s3a.bucket.{bucket}.{name}", settings.get(f"fs.s3a.{name}")) or None


def _gs(_scheme: str, _bucket_name: str, settings: Mapping[str, str]) -> Any:
    options: dict[str, Any] = {}
    root = settings.get("fs.gs.storage.root.url")
    if root:
        scheme, _, address = root.rpartition("://")
        options = {"endpoint_override": address.rstrip("/"), "scheme": scheme or "https"}
    keyfile = settings.get("fs.gs.auth.service.account.json.keyfile")
    if keyfile:  # Arrow takes it from nowhere else
        os.environ["GOOGLE_APPLICATION_CREDENTIALS"] = keyfile
    if settings.get("fs.gs.auth.type") == "UNAUTHENTICATED":
        options["anonymous"] = True
    return pafs.GcsFileSystem(**options)


def _abfs(_scheme: str, host: str, settings: Mapping[str, str]) -> Any:
    account = host.partition("@")[2]
    name, _, domain = account.partition(".")
    known = {
        option: settings.get(f"{setting}.{account}", settings.get(setting)) for setting, option in _AZURE
    }
    tenant = _TENANT.search(known.pop("endpoint") or "")
    options: dict[str, Any] = {"account_name": name, **known, "tenant_id": tenant and tenant[1]}
    if emulator := settings.get("fs.azure.abfs.endpoint"):
        options |= dict.fromkeys(("blob_storage_authority", "dfs_storage_authority"), emulator)
        options |= dict.fromkeys(("blob_storage_scheme", "dfs_storage_scheme"), "http")
    elif domain and domain != "dfs.core.windows.net":  # a cloud of its own
        options["dfs_storage_authority"] = f".{domain}"
        options["blob_storage_authority"] = f".{domain.replace('dfs.', 'blob.', 1)}"
    return pafs.AzureFileSystem(**{name: value for name, value in options.items() if value is not None})


_OPENED: Final[dict[str, Callable[[str, str, Mapping[str, str]], Any]]] = {
    "s3a": _s3, "s3": _s3, "s3n": _s3, "gs": _gs, "abfs": _abfs, "abfss": _abfs,
    "hdfs": hadoop_file_system, "viewfs": hadoop_file_system,
}  # fmt: skip
_HADOOP: Final = ("hdfs", "viewfs")


def _settings_of(uri: str) -> Iterable[str]:
    address = _address(uri)
    if _OPENED.get(address.scheme) is _s3:
        return [
            *(f"fs.s3a.{name}" for name in _S3),
            *(f"fs.s3a.bucket.{address.host}.{name}" for name in _S3),
        ]
    if address.scheme == "gs":
        names = ("storage.root.url", "auth.service.account.json.keyfile", "auth.type")
        return [f"fs.gs.{name}" for name in names]
    if address.scheme.startswith("abfs"):
        account = address.host.partition("@")[2]
        common = [setting for setting, _ in _AZURE]
        return [*common, *(f"{name}.{account}" for name in common), "fs.azure.abfs.endpoint"]
    return []


def _setting(spark: "SparkSession", name: str) -> str | None:
    """Of Hadoop's configuration, which has core-site.xml's as well; Spark Connect shows Spark's only."""
    value = spark.conf.get(f"spark.hadoop.{name}", None)
    if value is None and hasattr(spark, "_jsparkSession"):
        value = spark._jsparkSession.sessionState().newHadoopConf().get(name)
    return None if value is None else str(value)
