"""What a session's configuration says of stores, by Hadoop's names: all that someone has set.

Hadoop's own defaults are left out: they say nothing about what a user wants. Secrets may lie in files of
Hadoop's credential providers (JCEKS), which Java opens; Spark Connect has no Java here.
Source: Hadoop's "CredentialProvider API Guide".
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kwsniff.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OF_SPARK: Final = "spark.hadoop."
_OF_STORES: Final = re.compile(
    r"fs\.(s3a|gs|azure|viewfs)\.|fs\.defaultFS$|dfs\.|hadoop\.(security|rpc)\.|google\.cloud\.auth\."
)
_DEFAULTS: Final = ("core-default.xml", "hdfs-default.xml")
_PROVIDERS: Final = "hadoop.security.credential.provider.path"
_OF_PROVIDERS: Final = "security.credential.provider.path"
_UNREAD: Final = "hadoop.security.credential.provider.unread"
_OFF: Final = ("", "false", "none")


def read_settings(spark: "SparkSession") -> dict[str, str]:
    """Names and values, however they came into the configuration.

    Where secrets cannot be read, `check_secrets` says so to those who need them.
    """
    stated = _of_hadoop(spark) if hasattr(spark, "_jsparkSession") else {}
    for name in _names_of_spark(spark):
        if (value := spark.conf.get(name, None)) is not None:
            stated[name.removeprefix(_OF_SPARK)] = value
    paths = [stated[name] for name in sorted(stated, key=len) if name.endswith(_OF_PROVIDERS)]
    return {**stated, **_secrets(spark, ",".join(filter(None, paths)))}


def is_of_stores(name: str) -> bool:
    """Whether it is a setting of Hadoop's that concerns a store."""
    return _OF_STORES.match(name) is not None


def refuse_unused(stated: Mapping[str, str], used: Iterable[str], concerns: "re.Pattern[str]") -> None:
    """Raises UsageError for a setting that says how to sign in or to encrypt, and that would not be used."""
    known = set(used)
    for name, value in stated.items():
        if concerns.match(name) and name not in known and value.strip().lower() not in _OFF:
            raise explain_refusal(name, value=None)


def explain_refusal(
    name: str, value: str | None, why: str = "Arrow's file systems, which kwsniff uses, do not"
) -> UsageError:
    """What to say of a setting that cannot be done. `value`: none for what may be secret."""
    said = f"{name}={value}" if value else name
    return UsageError(
        f"Hadoop's configuration has {said}: {why}; set it to nothing for kwsniff, or remove it"
    )


def _names_of_spark(spark: "SparkSession") -> list[str]:
    every = getattr(spark.conf, "getAll", None)  # Spark 3.5 has none
    names = [row["key"] for row in spark.sql("set").collect()] if every is None else list(every)
    return [name for name in names if name.startswith(_OF_SPARK) and is_of_stores(name[len(_OF_SPARK) :])]


def _of_hadoop(spark: "SparkSession") -> dict[str, str]:
    conf, jvm = _java(spark)
    written = jvm.java.io.StringWriter()
    jvm.org.apache.hadoop.conf.Configuration.dumpConfiguration(conf, written)  # without secrets
    listed = json.loads(written.toString())["properties"]
    names = [
        each["key"] for each in listed if each["resource"] not in _DEFAULTS and is_of_stores(each["key"])
    ]
    return {name: value for name in names if (value := conf.get(name)) is not None}


def check_secrets(stated: Mapping[str, str]) -> None:
    """Raises UsageError where files of credential providers could not be read."""
    if _UNREAD in stated:
        raise UsageError(stated[_UNREAD])


def _secrets(spark: "SparkSession", paths: str) -> dict[str, str]:
    """What files of credential providers hold about stores."""
    if not paths:
        return {}
    if not hasattr(spark, "_jsparkSession"):
        return {_UNREAD: str(explain_refusal(_PROVIDERS, paths, "Spark Connect has no Java here to open it"))}
    conf, jvm = _java(spark)
    conf.set(_PROVIDERS, paths)
    try:
        providers = jvm.org.apache.hadoop.security.alias.CredentialProviderFactory.getProviders(conf)
        names = {alias for provider in providers for alias in provider.getAliases() if is_of_stores(alias)}
        return {name: "".join(conf.getPassword(name)) for name in sorted(names)}
    except Exception as error:
        why = str(getattr(error, "java_exception", error)).strip().splitlines()[0]
        return {_UNREAD: str(explain_refusal(_PROVIDERS, paths, f"Java cannot open it ({why})"))}


def _java(spark: "SparkSession") -> tuple[Any, Any]:
    """A copy of Hadoop's configuration, which has core-site.xml's settings as well; and Java's classes."""
    return spark._jsparkSession.sessionState().newHadoopConf(), spark._jvm
