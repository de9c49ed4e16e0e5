"""Writes that a store does only where a file is as it was when it was looked at: S3's `If-Match`.

Arrow cannot ask for that; boto3 can, where it is installed. Source: "Amazon S3 User Guide".
"""

from collections.abc import Mapping
from typing import Any, Final, Self

from kwsniff.errors import OutputError
from kwsniff.spark.file_systems import split_uri
from kwsniff.spark.s3 import of_bucket
from kwsniff.spark.storage import Place

_ELSEWHERE: Final = ("aws.credentials.provider", "assumed.role.arn", "proxy.host")
_CHANGED: Final = ("PreconditionFailed", "ConditionalRequestConflict", "404", "NoSuchKey")
_MISSING: Final = ("404", "NoSuchKey", "NotFound")
_UNKNOWN: Final = ("NotImplemented", "501")
"""A store with S3's protocol that knows no conditions: there the claim alone guards."""


class GuardedFile:
    """A file of S3, and its tag at the time when this was made; None: there was no file."""

    def __init__(self, client: Any, bucket: str, key: str) -> None:
        from botocore.exceptions import ClientError

        self._client, self._bucket, self._key = client, bucket, key
        self.tag: str | None = None
        try:
            self.tag = client.head_object(Bucket=bucket, Key=key)["ETag"]
        except ClientError as error:
            if _code(error) not in _MISSING:
                raise OSError(str(error)) from error

    @classmethod
    def look_at(cls, place: Place, path: str) -> Self | None:
        """None: the store cannot, boto3 is not here, or does not sign in as Arrow does. Raises OSError."""
        scheme, bucket, inside = split_uri(place.root)
        if scheme not in ("s3", "s3a", "s3n"):
            return None
        try:
            from botocore.exceptions import BotoCoreError, NoCredentialsError, NoRegionError
        except ImportError:
            return None
        try:
            client = _client(dict(place.settings), bucket)
            return cls(client, bucket, f"{inside}/{path}".lstrip("/")) if client is not None else None
        except (NoCredentialsError, NoRegionError):
            return None  # Arrow knows more ways to sign in, and asks for the region
        except BotoCoreError as error:
            raise OSError(str(error)) from error

    def replace(self, text: str) -> None:
        """Writes the file. Raises OutputError where it is another one than it was, OSError."""
        from botocore.exceptions import BotoCoreError, ClientError

        condition = {"IfMatch": self.tag} if self.tag else {"IfNoneMatch": "*"}
        try:
            self._put(text, condition)
        except ClientError as error:
            if _code(error) in _UNKNOWN:
                self._put(text, {})
                return
            if _code(error) in _CHANGED and self._holds(text):
                return
            if _code(error) in _CHANGED:
                raise OutputError(
                    f"s3://{self._bucket}/{self._key}: another kwsniff has published there meanwhile; "
                    "nothing of this run was; run it again"
                ) from error
            raise OSError(str(error)) from error
        except BotoCoreError as error:
            raise OSError(str(error)) from error

    def _holds(self, text: str) -> bool:
        """Whether the file is this one: boto3 repeats a write whose response did not arrive."""
        from botocore.exceptions import ClientError

        try:
            found = self._client.get_object(Bucket=self._bucket, Key=self._key)["Body"].read()
        except ClientError:
            return False
        return bool(found == text.encode())

    def _put(self, text: str, condition: Mapping[str, str]) -> None:
        self._client.put_object(Bucket=self._bucket, Key=self._key, Body=text.encode(), **condition)


def _client(settings: Mapping[str, str], bucket: str) -> Any:
    import boto3
    from botocore.config import Config

    known = {name: of_bucket(settings, bucket, name) for name in _NAMES}
    if any(known[name] for name in _ELSEWHERE):
        return None
    endpoint = known["endpoint"]
    if endpoint and "://" not in endpoint:
        ssl = (known["connection.ssl.enabled"] or "true").lower() != "false"
        endpoint = f"{'https' if ssl else 'http'}://{endpoint}"
    path_style = (known["path.style.access"] or "").lower() == "true"
    return boto3.session.Session().client(
        "s3",
        endpoint_url=endpoint,
        region_name=known["endpoint.region"] or ("us-east-1" if endpoint else None),
        aws_access_key_id=known["access.key"],
        aws_secret_access_key=known["secret.key"],
        aws_session_token=known["session.token"],
        config=Config(
            s3={"addressing_style": "path" if path_style else "auto"},
            # Stores of others know no trailing checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


_NAMES: Final = (
    *_ELSEWHERE, "access.key", "secret.key", "session.token", "endpoint", "endpoint.region",
    "connection.ssl.enabled", "path.style.access",
)  # fmt: skip


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code"))
