"""What Hadoop's configuration says of credentials and encryption is done, or refused by its name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from kwsniff.errors import UsageError
from kwsniff.spark import file_systems, s3
from kwsniff.spark.configuration import read_settings
from kwsniff.spark.file_systems import check_written, chosen_settings, file_system
from kwsniff.spark.hadoop import Settings
from tests.spark.store import new_bucket, put
from tests.spark.store import s3 as running_s3

S3 = "s3a://logs/day"
AZURE = "abfss://box@acme.dfs.core.windows.net/day"
KEYS = {"fs.s3a.access.key": "K", "fs.s3a.secret.key": "S", "fs.s3a.session.token": "T"}
HADOOP = "org.apache.hadoop.fs.s3a."
AZUREBFS = "org.apache.hadoop.fs.azurebfs.oauth2."
PROVIDER = "fs.s3a.aws.credentials.provider"
ROLE = {
    PROVIDER: f"{HADOOP}auth.AssumedRoleCredentialProvider",
    "fs.s3a.assumed.role.arn": "arn:aws:iam::123456789012:role/reader",
}


@pytest.fixture(autouse=True)
def no_keys_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)


def opened(stated: dict[str, str], uri: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """With what Arrow is asked for a file system."""
    asked: dict[str, Any] = {}

    def note(*_: Any, **options: Any) -> None:
        asked.update(options)

    monkeypatch.setattr(s3, "make_client", lambda _, given: note(**given))
    monkeypatch.setattr(s3, "_check_reachable", note)
    monkeypatch.setattr(pafs, "AzureFileSystem", note)
    monkeypatch.setattr(pafs, "GcsFileSystem", note)
    file_systems._open.cache_clear()
    file_system(uri, chosen_settings(stated, uri))
    file_systems._open.cache_clear()
    return {name: value for name, value in asked.items() if name not in ("scheme", "account_name")}


@pytest.mark.parametrize(
    ("stated", "wanted"),
    [
        ({}, {}),
        (KEYS, {"access_key": "K", "secret_key": "S", "session_token": "T"}),
        (
            {**KEYS, PROVIDER: f"{HADOOP}SimpleAWSCredentialsProvider"},
            {"access_key": "K", "secret_key": "S"},
        ),
        ({**KEYS, PROVIDER: f"{HADOOP}AnonymousAWSCredentialsProvider"}, {"anonymous": True}),
        ({**KEYS, PROVIDER: f"{HADOOP}auth.IAMInstanceCredentialsProvider"}, {}),
        (
            {
                "fs.s3a.access.key": "K",
                "fs.s3a.secret.key": "S",
                PROVIDER: f"{HADOOP}TemporaryAWSCredentialsProvider, {HADOOP}SimpleAWSCredentialsProvider",
            },
            {"access_key": "K", "secret_key": "S"},
        ),
        (
            {**KEYS, "fs.s3a.bucket.logs.access.key": "L", "fs.s3a.bucket.other.access.key": "M"},
            {"access_key": "L", "secret_key": "S", "session_token": "T"},
        ),
        (
            {**ROLE, "fs.s3a.assumed.role.session.name": "me", "fs.s3a.assumed.role.session.duration": "30m"},
            {"role_arn": ROLE["fs.s3a.assumed.role.arn"], "session_name": "me", "load_frequency": 1800},
        ),
        (
            {"fs.s3a.proxy.host": "proxy", "fs.s3a.proxy.port": "3128"},
            {"proxy_options": {"scheme": "http", "host": "proxy", "port": 3128}},
        ),
        ({"fs.s3a.path.style.access": "false"}, {"force_virtual_addressing": True}),
        ({"fs.s3a.encryption.algorithm": "SSE-KMS", "fs.s3a.encryption.key": "arn:x"}, {}),
        ({"fs.s3a.requester.pays.enabled": "false", "fs.s3a.bucket.other.acl.default": "Private"}, {}),
    ],
)
def test_what_arrow_can_do_of_s3_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, stated: dict[str, str], wanted: dict[str, Any]
) -> None:
    assert opened(stated, S3, monkeypatch) == wanted


@pytest.mark.parametrize(
    ("stated", "name"),
    [
        ({PROVIDER: "com.acme.Vault"}, f"{PROVIDER}=com.acme.Vault"),
        ({PROVIDER: "com.acme.SimpleAWSCredentialsProvider"}, "com.acme.Simple"),
        ({PROVIDER: f"{HADOOP}SimpleAWSCredentialsProvider"}, "has credentials"),
        ({**ROLE, **KEYS}, "fs.s3a.access.key: Arrow assumes roles with AWS_ACCESS_KEY_ID"),
        ({**ROLE, "fs.s3a.assumed.role.arn": ""}, "set fs.s3a.assumed.role.arn"),
        ({**ROLE, "fs.s3a.assumed.role.policy": "{}"}, "fs.s3a.assumed.role.policy"),
        ({**ROLE, "fs.s3a.assumed.role.session.duration": "soon"}, "give it like 30m"),
        ({"fs.s3a.encryption.algorithm": "CSE-KMS"}, "fs.s3a.encryption.algorithm=CSE-KMS"),
        ({"fs.s3a.bucket.logs.server-side-encryption-algorithm": "SSE-C"}, "encryption-algorithm=SSE-C"),
        ({"fs.s3a.delegation.token.binding": "x"}, "fs.s3a.delegation.token.binding"),
        ({"fs.s3a.requester.pays.enabled": "true"}, "fs.s3a.requester.pays.enabled"),
        ({"fs.s3a.bucket.logs.accesspoint.arn": "x"}, "accesspoint.arn"),
        ({"fs.s3a.signing-algorithm": "x"}, "fs.s3a.signing-algorithm"),
    ],
)
def test_what_arrow_cannot_do_of_s3_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, stated: dict[str, str], name: str
) -> None:
    with pytest.raises(UsageError, match=name.replace(".", r"\.")) as told:
        opened(stated, S3, monkeypatch)
    assert "\n" not in str(told.value)


def test_keys_of_the_environment_that_would_go_first_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = {PROVIDER: f"{HADOOP}auth.IAMInstanceCredentialsProvider"}
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "K")
    with pytest.raises(UsageError, match="AWS_ACCESS_KEY_ID is set, which Arrow takes first"):
        opened(provider, S3, monkeypatch)
    assert opened({**ROLE, **KEYS}, S3, monkeypatch)["role_arn"] == ROLE["fs.s3a.assumed.role.arn"]


@pytest.mark.parametrize("algorithm", ["SSE-KMS", "AES256"])
def test_encryption_that_nobody_would_ask_for_is_refused_where_files_are_written(algorithm: str) -> None:
    settings = chosen_settings({"fs.s3a.encryption.algorithm": algorithm}, S3)
    with pytest.raises(
        UsageError, match=f"fs.s3a.encryption.algorithm={algorithm}: .* default of the bucket"
    ):
        check_written(S3, settings)
    check_written(S3, (*settings, ("fs.s3a.bucket.logs.encryption.algorithm", "")))


@pytest.mark.parametrize(
    ("stated", "wanted"),
    [
        ({"fs.azure.account.key.acme.dfs.core.windows.net": "K"}, {"account_key": "K"}),
        ({"fs.azure.account.key.other.dfs.core.windows.net": "K"}, {}),
        (
            {
                "fs.azure.account.key": "K",
                "fs.azure.account.auth.type": "SAS",
                "fs.azure.sas.fixed.token": "T",
            },
            {"sas_token": "T"},
        ),
        (
            {
                "fs.azure.account.auth.type": "OAuth",
                "fs.azure.account.oauth.provider.type": f"{AZUREBFS}MsiTokenProvider",
                "fs.azure.account.oauth2.client.id": "me",
            },
            {"client_id": "me"},
        ),
        (
            {
                "fs.azure.account.auth.type.acme.dfs.core.windows.net": "OAuth",
                "fs.azure.account.oauth2.client.id": "me",
                "fs.azure.account.oauth2.client.secret": "S",
                "fs.azure.account.oauth2.client.endpoint": "https://login.example/tenant/oauth2/token",
            },
            {"client_id": "me", "client_secret": "S", "tenant_id": "tenant"},
        ),
    ],
)
def test_what_arrow_can_do_of_azure_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, stated: dict[str, str], wanted: dict[str, Any]
) -> None:
    assert opened(stated, AZURE, monkeypatch) == wanted


@pytest.mark.parametrize(
    ("uri", "stated", "name"),
    [
        (AZURE, {"fs.azure.account.auth.type": "Custom"}, "fs.azure.account.auth.type=Custom"),
        (AZURE, {"fs.azure.account.auth.type": "SharedKey"}, "has no fs.azure.account.key"),
        (
            AZURE,
            {
                "fs.azure.account.auth.type": "OAuth",
                "fs.azure.account.oauth.provider.type": "x.WorkloadIdentityTokenProvider",
            },
            "fs.azure.account.oauth.provider.type=x.Workload",
        ),
        (
            AZURE,
            {"fs.azure.account.keyprovider": "x.ShellDecryptionKeyProvider"},
            "fs.azure.account.keyprovider",
        ),
        (AZURE, {"fs.azure.account.oauth2.refresh.token": "x"}, "fs.azure.account.oauth2.refresh.token"),
        (AZURE, {"fs.azure.encryption.encoded.client-provided-key": "x"}, "fs.azure.encryption"),
        ("gs://box", {"fs.gs.auth.type": "USER_CREDENTIALS"}, "fs.gs.auth.type=USER_CREDENTIALS"),
        ("gs://box", {"fs.gs.encryption.key": "x"}, "fs.gs.encryption.key"),
        ("gs://box", {"google.cloud.auth.service.account.json.keyfile": "x"}, "google.cloud.auth"),
    ],
)
def test_what_arrow_cannot_do_elsewhere_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, uri: str, stated: dict[str, str], name: str
) -> None:
    with pytest.raises(UsageError, match=name.replace(".", r"\.")):
        opened(stated, uri, monkeypatch)


def test_an_account_to_impersonate_is_one_of_arrows_options(monkeypatch: pytest.MonkeyPatch) -> None:
    stated = {"fs.gs.auth.impersonation.service.account": "robot@acme"}
    assert opened(stated, "gs://box", monkeypatch) == {"target_service_account": "robot@acme"}


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    with running_s3(tmp_path) as found:
        yield found


def test_a_role_is_assumed_before_the_store_is_asked(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The service of tokens is moto's as well, which logs that it was asked."""
    store, endpoint = new_bucket(settings), dict(settings)["fs.s3a.endpoint"]
    uri = put(store, "x", b"12")
    others = {name: value for name, value in settings if "key" not in name}
    chosen = chosen_settings({**others, **ROLE}, uri)
    for name, value in {
        "ACCESS_KEY_ID": "a",
        "SECRET_ACCESS_KEY": "b",
        "EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", endpoint)
    file_systems._open.cache_clear()
    files, path = file_system(uri, chosen)
    assert files.get_file_info(path).size == 2
    assert '"POST / HTTP/1.1" 200' in (tmp_path / "moto.log").read_text("utf-8")


@pytest.mark.slow
def test_secrets_in_a_file_of_a_credential_provider_are_read(spark: Any, tmp_path: Path) -> None:
    """As Hadoop itself wrote it; a file that is not there, or damaged, is named where it is needed."""
    jceks = tmp_path / "keys.jceks"
    path = f"localjceks://file{jceks}"
    name = "spark.hadoop.hadoop.security.credential.provider.path"
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    conf.set("hadoop.security.credential.provider.path", path)
    alias = spark._jvm.org.apache.hadoop.security.alias
    (provider,) = alias.CredentialProviderFactory.getProviders(conf)
    for setting, text in {"fs.s3a.access.key": "from", "fs.s3a.secret.key": "a file", "other": "not"}.items():
        letters = spark.sparkContext._gateway.new_array(spark._jvm.char, len(text))
        for number, letter in enumerate(text):
            letters[number] = letter
        provider.createCredentialEntry(setting, letters)
    provider.flush()
    try:
        spark.conf.set(name, path)
        stated = read_settings(spark)
        assert (stated["fs.s3a.access.key"], stated["fs.s3a.secret.key"]) == ("from", "a file")
        assert "other" not in stated
        jceks.write_bytes(b"damaged")
        with pytest.raises(UsageError, match=f"credential.provider.path={path}: Java cannot open it"):
            chosen_settings(read_settings(spark), S3)
        chosen_settings(read_settings(spark), "hdfs://name/x")
    finally:
        spark.conf.unset(name)


@pytest.mark.slow
def test_defaults_of_hadoop_say_nothing(spark: Any) -> None:
    assert PROVIDER not in read_settings(spark)
    assert chosen_settings(read_settings(spark), S3) == ()
