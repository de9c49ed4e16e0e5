"""Arrow's S3 by the settings of hadoop-aws. What Arrow cannot do as they say is refused by name.

Sources: "Hadoop-AWS module: Integration with Amazon Web Services", "Working with IAM Assumed Roles",
"Working with Encrypted S3 Data"; pyarrow.fs.S3FileSystem.
"""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow.fs as pafs

from kwsniff.errors import UsageError
from kwsniff.spark.configuration import explain_refusal, refuse_unused

_USED: Final = (
    "access.key", "secret.key", "session.token", "endpoint", "endpoint.region",
    "connection.ssl.enabled", "path.style.access", "attempts.maximum",
    "aws.credentials.provider", "assumed.role.arn", "assumed.role.session.name",
    "assumed.role.session.duration", "assumed.role.external.id", "assumed.role.credentials.provider",
    "encryption.algorithm", "encryption.key", "server-side-encryption-algorithm",
    "server-side-encryption.key", "security.credential.provider.path",
    "proxy.host", "proxy.port", "proxy.username", "proxy.password", "proxy.ssl.enabled",
)  # fmt: skip
_CONCERNS: Final = re.compile(
    r"fs\.s3a\.(aws|assumed|encryption|server-side-|cse|security|delegation|sign|custom\.sign|http\.sign"
    r"|accesspoint|access\.grants|requester|proxy|acl|s3\.client|endpoint\.fips)"
)
_ATTEMPTS: Final = 10
"""Of each request to S3, with growing pauses between them: a store that says SlowDown is asked again."""
_FIRST_ATTEMPTS: Final = 3
"""Of the first request: a user who names a store that is not there waits for seconds, not minutes."""
_ENCRYPTED_BY_STORE: Final = ("AES256", "SSE-S3", "SSE-KMS", "DSSE-KMS")
"""To be read without a word about it."""

_PROVIDER: Final = "aws.credentials.provider"
_PACKAGES: Final = (
    "org.apache.hadoop.fs.s3a", "org.apache.hadoop.fs.s3a.auth", "com.amazonaws.auth",
    "com.amazonaws.auth.profile", "software.amazon.awssdk.auth.credentials",
)  # fmt: skip
_ROLE: Final = "AssumedRoleCredentialProvider"
_ANONYMOUS: Final = ("AnonymousAWSCredentialsProvider", "AnonymousCredentialsProvider")
_OF_KEYS: Final = {
    "SimpleAWSCredentialsProvider": ("access.key", "secret.key"),
    "TemporaryAWSCredentialsProvider": ("access.key", "secret.key", "session.token"),
}
_ENVIRONMENT: Final = "EnvironmentVariableCredentialsProvider"
_WHOLE_CHAIN: Final = ("DefaultCredentialsProvider", "DefaultAWSCredentialsProviderChain")
_OF_CHAIN: Final = (
    "IAMInstanceCredentialsProvider", "InstanceProfileCredentialsProvider", "ContainerCredentialsProvider",
    "EC2ContainerCredentialsProviderWrapper", "ProfileAWSCredentialsProvider", "ProfileCredentialsProvider",
    "WebIdentityTokenFileCredentialsProvider", "WebIdentityTokenCredentialsProvider",
)  # fmt: skip
"""Arrow asks these in AWS's order, behind the environment."""
_DURATION: Final = re.compile(r"(\d+)\s*([smhd]?)")
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def chosen_settings(stated: Mapping[str, str], bucket: str) -> Iterator[tuple[str, str]]:
    """Those that concern a bucket. Raises UsageError for one that would be ignored."""
    own, every = f"fs.s3a.bucket.{bucket}.", "fs.s3a."
    common = {name: value for name, value in stated.items() if not name.startswith("fs.s3a.bucket.")}
    special = {every + name[len(own) :]: value for name, value in stated.items() if name.startswith(own)}
    names = [every + name for name in _USED]
    refuse_unused({**common, **special}, names, _CONCERNS)
    for name in names:
        if name in common:
            yield name, common[name]
        if name in special:
            yield own + name[len(every) :], special[name]


def check_encryption(settings: Mapping[str, str], bucket: str, *, is_written: bool) -> None:
    """Raises UsageError where files of this bucket are to be encrypted in a way that Arrow cannot ask for."""
    for name in ("encryption.algorithm", "server-side-encryption-algorithm"):
        algorithm = of_bucket(settings, bucket, name)
        if algorithm and is_written:
            why = "Arrow asks for no encryption; make it the default of the bucket"
            raise explain_refusal(f"fs.s3a.{name}", algorithm, why)
        if algorithm and algorithm.upper() not in _ENCRYPTED_BY_STORE:
            raise explain_refusal(f"fs.s3a.{name}", algorithm, "Arrow cannot read what is encrypted so")


def s3_file_system(_scheme: str, bucket: str, settings: Mapping[str, str]) -> Any:
    """A file system of Arrow's. Raises UsageError, OSError."""
    known = {name: of_bucket(settings, bucket, name) for name in _USED}
    check_encryption(settings, bucket, is_written=False)
    endpoint = known["endpoint"] or ""
    ssl = (known["connection.ssl.enabled"] or "true").lower() != "false"
    scheme, _, address = endpoint.rpartition("://")
    options: dict[str, Any] = {
        "region": known["endpoint.region"],
        "endpoint_override": address.rstrip("/") or None,
        "scheme": scheme or ("https" if ssl else "http"),
        "force_virtual_addressing": (known["path.style.access"] or "").lower() == "false" or None,
        "proxy_options": _proxy(known),
        **_credentials(known),
    }
    if endpoint and not known["endpoint.region"]:
        options["region"] = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION", "us-east-1")
    given = {name: value for name, value in options.items() if value is not None}
    attempts = read_attempts(settings, bucket)
    _check_reachable(make_client(min(attempts, _FIRST_ATTEMPTS), given), bucket)
    return make_client(attempts, given)


def read_attempts(settings: Mapping[str, str], bucket: str) -> int:
    """How often a request is made at most. Raises UsageError."""
    attempts = of_bucket(settings, bucket, "attempts.maximum") or str(_ATTEMPTS)
    if not attempts.isdecimal() or not int(attempts):
        raise UsageError(f"fs.s3a.attempts.maximum is {attempts!r}; give a number of 1 or more")
    return int(attempts)


def of_bucket(settings: Mapping[str, str], bucket: str, name: str) -> str | None:
    """A bucket's own setting goes before that of all."""
    return settings.get(f"fs.s3a.bucket.{bucket}.{name}", settings.get(f"fs.s3a.{name}")) or None


def make_client(attempts: int, given: Mapping[str, Any]) -> Any:
    """Arrow's, with these options, and with our patience."""
    strategy = pafs.AwsDefaultS3RetryStrategy(max_attempts=attempts)
    return pafs.S3FileSystem(request_timeout=120, connect_timeout=5, retry_strategy=strategy, **given)


def _check_reachable(files: Any, bucket: str) -> None:
    """Raises OSError where nothing listens. What else the store says is for those who ask it for more."""
    try:
        files.get_file_info(bucket)
    except OSError as error:
        if "NETWORK_CONNECTION" in str(error):
            raise


def _proxy(known: Mapping[str, str | None]) -> dict[str, Any] | None:
    if not known["proxy.host"]:
        return None
    ssl = (known["proxy.ssl.enabled"] or "").lower() == "true"
    options = {
        "scheme": "https" if ssl else "http",
        "host": known["proxy.host"],
        "port": int(known["proxy.port"] or (443 if ssl else 80)),
        "username": known["proxy.username"],
        "password": known["proxy.password"],
    }
    return {name: value for name, value in options.items() if value is not None}


def _credentials(known: Mapping[str, str | None]) -> dict[str, Any]:
    """As the first provider has them that is able to; without providers keys, else AWS's own chain."""
    providers = [_simple_name(each) for each in _words(known[_PROVIDER])]
    if _ROLE in providers:
        return _role(known, providers)
    for each in providers or [
        "TemporaryAWSCredentialsProvider",
        "SimpleAWSCredentialsProvider",
        *_WHOLE_CHAIN,
    ]:
        if each in _OF_KEYS and all(known[name] for name in _OF_KEYS[each]):
            return {name.replace(".", "_"): known[name] for name in _OF_KEYS[each]}
        if each in _ANONYMOUS:
            return {"anonymous": True}
        if each in _WHOLE_CHAIN or (each == _ENVIRONMENT and "AWS_ACCESS_KEY_ID" in os.environ):
            return {}
        if each in _OF_CHAIN:
            if "AWS_ACCESS_KEY_ID" in os.environ and _ENVIRONMENT not in providers:
                raise explain_refusal(
                    f"fs.s3a.{_PROVIDER}", each, "AWS_ACCESS_KEY_ID is set, which Arrow takes first"
                )
            return {}
    raise UsageError(f"none of the providers in fs.s3a.{_PROVIDER} has credentials: {known[_PROVIDER]}")


def _role(known: Mapping[str, str | None], providers: list[str]) -> dict[str, Any]:
    """Arrow assumes roles with what AWS's own chain has."""
    if len(providers) > 1:
        raise explain_refusal(f"fs.s3a.{_PROVIDER}", ",".join(providers), f"{_ROLE} works alone")
    if not known["assumed.role.arn"]:
        raise UsageError(f"fs.s3a.{_PROVIDER} is {_ROLE}: set fs.s3a.assumed.role.arn to the role")
    base = "assumed.role.credentials.provider"
    others = [each for each in map(_simple_name, _words(known[base])) if each in _OF_KEYS]
    is_key_used = known["access.key"] and (others or not known[base])
    if is_key_used and known["access.key"] != os.environ.get("AWS_ACCESS_KEY_ID"):
        raise explain_refusal(
            "fs.s3a.access.key", None, "Arrow assumes roles with AWS_ACCESS_KEY_ID and its like only"
        )
    options = {
        "role_arn": known["assumed.role.arn"],
        "session_name": known["assumed.role.session.name"],
        "external_id": known["assumed.role.external.id"],
        "load_frequency": _seconds(known["assumed.role.session.duration"]),
    }
    return {name: value for name, value in options.items() if value is not None}


def _seconds(duration: str | None) -> int | None:
    if duration is None:
        return None
    found = _DURATION.fullmatch(duration.strip().lower())
    if found is None:
        raise UsageError(f"fs.s3a.assumed.role.session.duration is {duration!r}; give it like 30m")
    return int(found[1]) * _SECONDS[found[2]]


def _simple_name(provider: str) -> str:
    package, _, name = provider.rpartition(".")
    known = (_ROLE, _ENVIRONMENT, *_ANONYMOUS, *_OF_KEYS, *_WHOLE_CHAIN, *_OF_CHAIN)
    if package not in _PACKAGES or name not in known:
        raise explain_refusal(
            f"fs.s3a.{_PROVIDER}", provider, "kwsniff knows no such provider, and runs no Java for it"
        )
    return name


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]
