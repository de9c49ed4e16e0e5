"""Writes with a condition, where a store answers otherwise than S3 does."""

from __future__ import annotations

import io
from typing import Any

import pytest

pytest.importorskip("boto3", reason="boto3 is not installed")

from botocore.exceptions import ClientError

from kwsniff.errors import OutputError
from kwsniff.spark.conditional_writes import GuardedFile
from kwsniff.spark.storage import Place


class Store:
    """A client of a store that refuses writes with a condition by this error. A real one that does cannot
    be had here."""

    def __init__(self, code: str, there: bytes = b"of another") -> None:
        self._code, self._there = code, there
        self.puts: list[dict[str, Any]] = []

    def head_object(self, **_: Any) -> dict[str, str]:
        return {"ETag": '"1"'}

    def get_object(self, **_: Any) -> dict[str, Any]:
        return {"Body": io.BytesIO(self._there)}

    def put_object(self, **arguments: Any) -> None:
        self.puts.append(arguments)
        if "IfMatch" in arguments:
            raise ClientError({"Error": {"Code": self._code}}, "PutObject")


def test_a_store_that_knows_no_conditions_is_written_without_one() -> None:
    store = Store("NotImplemented")
    GuardedFile(store, "bucket", "key").replace("text")
    assert [put.get("IfMatch") for put in store.puts] == ['"1"', None]
    assert store.puts[-1]["Body"] == b"text"


def test_a_write_that_was_repeated_after_it_was_done_is_done() -> None:
    """The first one's response did not arrive; the second one meets the file that the first one wrote."""
    store = Store("PreconditionFailed", b"text")
    GuardedFile(store, "bucket", "key").replace("text")
    assert len(store.puts) == 1


@pytest.mark.parametrize(
    ("code", "error"), [("PreconditionFailed", OutputError), ("AccessDenied", OSError), ("SlowDown", OSError)]
)
def test_any_other_refusal_is_one(code: str, error: type[Exception]) -> None:
    store = Store(code)
    with pytest.raises(error):
        GuardedFile(store, "bucket", "key").replace("text")
    assert len(store.puts) == 1


@pytest.mark.parametrize(
    "settings",
    [
        {},  # without credentials: Arrow may know others
        {"fs.s3a.aws.credentials.provider": "SomeProvider", "fs.s3a.access.key": "a"},
    ],
    ids=["none", "provider"],
)
def test_where_boto3_does_not_sign_in_as_arrow_does_there_is_no_condition(
    settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    place = Place("s3://bucket/tables", tuple(settings.items()))
    assert GuardedFile.look_at(place, "_kwsniff.json") is None
