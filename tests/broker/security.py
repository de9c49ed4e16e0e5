"""Who may talk, and as whom: SASL in its forms, delegation tokens, access control, TLS."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.broker.brokers import HOST, Cluster
from tests.broker.clients import quiet, read, send, talk, warm
from tests.broker.stage import NEWEST, PATIENCE_S, Stage, scenario

PASSWORD = "not-a-secret"  # noqa: S105 (recorded for everybody to read)
MODULES = "org.apache.kafka.common.security"
PLAIN = f'{MODULES}.plain.PlainLoginModule required user_ann="{PASSWORD}";'
SCRAM = f"{MODULES}.scram.ScramLoginModule required;"
BEARER = f'{MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
VALIDATOR = f"{MODULES}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def guarded(stage: Stage, **more: Any) -> Cluster:
    """One broker with a SASL listener for clients and a plain one for itself and the office."""
    listener = "listener.name.sasl_plaintext"
    properties = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
        f"{listener}.plain.sasl.jaas.config": PLAIN,
        f"{listener}.scram-sha-256.sasl.jaas.config": SCRAM,
        f"{listener}.oauthbearer.sasl.jaas.config": BEARER,
        f"{listener}.oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
        **more,
    }
    users = [f"SCRAM-SHA-256=[name=ann,password={PASSWORD}]"]
    return stage.brokers(NEWEST, internal=True, protocol="SASL_PLAINTEXT", properties=properties, scram=users)


def login(mechanism: str, password: str = PASSWORD) -> dict[str, str]:
    """What a confluent-kafka client needs to authenticate."""
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_username": "ann",
        "sasl_password": password,
    }


def _prepared(stage: Stage, cluster: Cluster) -> None:
    stage.office("create", "orders:1")
    warm(cluster.backstage)


@scenario(
    "librdkafka (confluent-kafka)",
    "SASL PLAIN: a good password and a bad one.",
    ["SaslHandshake, SaslAuthenticate with secrets that must be hidden", "SASL_AUTHENTICATION_FAILED (58)"],
)
def sasl_plain(stage: Stage) -> None:
    with guarded(stage) as cluster:
        _prepared(stage, cluster)
        with stage.recording():
            send(stage, cluster.bootstrap, [b"one", b"two"], **login("PLAIN"))
            read(stage, cluster.bootstrap, 2, **login("PLAIN"))
            send(stage, cluster.bootstrap, [b"three"], message_timeout_ms=600, **login("PLAIN", "wrong"))


@scenario(
    "librdkafka (confluent-kafka)",
    "SASL SCRAM-SHA-256: a good password and a bad one.",
    ["SaslAuthenticate in several steps", "SASL_AUTHENTICATION_FAILED (58)"],
)
def sasl_scram(stage: Stage) -> None:
    with guarded(stage) as cluster:
        _prepared(stage, cluster)
        with stage.recording():
            send(stage, cluster.bootstrap, [b"one", b"two"], **login("SCRAM-SHA-256"))
            read(stage, cluster.bootstrap, 2, **login("SCRAM-SHA-256"))
            wrong = login("SCRAM-SHA-256", "wrong")
            send(stage, cluster.bootstrap, [b"three"], message_timeout_ms=600, **wrong)


@scenario(
    "librdkafka (confluent-kafka)",
    "SASL OAUTHBEARER with unsecured tokens, and a broker that wants clients to authenticate again.",
    ["SaslHandshake and SaslAuthenticate in the middle of connections (KIP-368)", "session lifetimes"],
)
def sasl_oauth(stage: Stage) -> None:
    from confluent_kafka import Producer

    bearer = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "enable_sasl_oauthbearer_unsecure_jwt": True,
        "sasl_oauthbearer_config": "principal=ann lifeSeconds=3600",
    }
    with guarded(stage, **{"connections.max.reauth.ms": 3000}) as cluster:
        _prepared(stage, cluster)
        with stage.recording():
            producer = Producer(quiet(cluster.bootstrap, "shop-producer", **bearer))
            for number in range(8):
                producer.produce("orders", f"order {number}".encode())
                stage.add("failed" if producer.flush(PATIENCE_S) else "produced")
                time.sleep(0.7)


@scenario(
    "Java 4.3.1",
    "A Java client that authenticates again on a living connection.",
    ["SaslHandshake and SaslAuthenticate on a connection in use, with correlation ids of their own range"],
)
def sasl_again(stage: Stage) -> None:
    with guarded(stage, **{"connections.max.reauth.ms": 2000}) as cluster:
        _prepared(stage, cluster)
        with stage.recording():
            stage.java("Clients", NEWEST, cluster.bootstrap, "slow", *java_login())


def java_login(mechanism: str = "PLAIN") -> list[str]:
    """What a Java client needs to authenticate."""
    module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    user = f'{MODULES}.{module}LoginModule required username="ann" password="{PASSWORD}";'
    return ["security.protocol=SASL_PLAINTEXT", f"sasl.mechanism={mechanism}", f"sasl.jaas.config={user}"]


@scenario(
    "Java 4.3.1 administrator",
    "Delegation tokens made, described, renewed, expired.",
    ["CreateDelegationToken, DescribeDelegationToken, RenewDelegationToken, ExpireDelegationToken", "HMACs"],
)
def delegation_tokens(stage: Stage) -> None:
    with guarded(stage, **{"delegation.token.secret.key": PASSWORD}) as cluster, stage.recording():
        stage.java("Admin", NEWEST, cluster.bootstrap, "tokens", *java_login("SCRAM-SHA-256"))


@scenario(
    "librdkafka (confluent-kafka)",
    "A user who may do nothing.",
    [
        "TOPIC_AUTHORIZATION_FAILED (29), GROUP_AUTHORIZATION_FAILED (30),",
        "CLUSTER_AUTHORIZATION_FAILED (31), TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53)",
    ],
)
def acl_denials(stage: Stage) -> None:
    from confluent_kafka import KafkaException, Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    with guarded(stage, **AUTHORIZER) as cluster:
        stage.office("create", "orders:1")
        with stage.recording():
            send(stage, cluster.bootstrap, [b"one"], message_timeout_ms=2000, **login("PLAIN"))
            admin = AdminClient(quiet(cluster.bootstrap, "office", **login("PLAIN")))
            for future in admin.create_topics([NewTopic("mine", 1, 1)]).values():
                _tolerated(stage, lambda future=future: future.result(PATIENCE_S))  # type: ignore[misc]
            _tolerated(stage, lambda: admin.list_consumer_groups().result(PATIENCE_S))
            read_for_a_moment(stage, cluster)
            till = Producer(quiet(cluster.bootstrap, "till", transactional_id="till-9", **login("PLAIN")))
            try:
                till.init_transactions(5)
            except KafkaException as error:
                stage.notes.append(error.args[0].name())


def _tolerated(stage: Stage, act: Any) -> None:
    from confluent_kafka import KafkaException

    try:
        act()
    except KafkaException as error:
        stage.notes.append(error.args[0].name())


def read_for_a_moment(stage: Stage, cluster: Cluster) -> None:
    """A consumer that gets nothing but errors."""
    from confluent_kafka import Consumer

    consumer = Consumer(quiet(cluster.bootstrap, "spy", group_id="billing", **login("PLAIN")))
    consumer.subscribe(["orders"])
    end = time.monotonic() + 3
    while time.monotonic() < end:
        message = consumer.poll(0.5)
        if message is not None and message.error():
            stage.notes.append(message.error().name())
    consumer.close()


@scenario(
    "Java 4.3.1 administrator",
    "Access control lists made, described, deleted.",
    ["CreateAcls, DescribeAcls, DeleteAcls"],
)
def admin_access(stage: Stage) -> None:
    with stage.brokers(NEWEST, properties=AUTHORIZER) as cluster, stage.recording():
        stage.java("Admin", NEWEST, cluster.bootstrap, "access")


def certificate(folder: Path) -> Path:
    """A key and a certificate for loopback, in one PEM file."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650"]
    command += ["-subj", f"/CN={HOST}", "-addext", f"subjectAltName=IP:{HOST}"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True, timeout=30)
    store = folder / "store.pem"
    store.write_text(key.read_text() + certificate.read_text())
    return store


def _tls(name: str, version: str) -> None:
    @scenario(
        "aiokafka",
        f"A producer and a group inside TLS {version}, with the keys.",
        ["connections named as TLS, no calls invented", "keys.log opens it"],
        name=name,
        encrypted=True,
        keylog="keys.log",
    )
    def play(stage: Stage) -> None:
        store = certificate(stage.folder)
        listener = "listener.name.ssl.ssl"
        properties = {f"{listener}.keystore.type": "PEM", f"{listener}.keystore.location": store}
        with stage.brokers(NEWEST, internal=True, protocol="SSL", properties=properties) as cluster:
            _prepared(stage, cluster)
            context = ssl.create_default_context(cafile=str(stage.folder / "certificate.pem"))
            context.minimum_version = context.maximum_version = ssl.TLSVersion[
                f"TLSv{version.replace('.', '_')}"
            ]
            context.keylog_filename = str(stage.capture.with_name("keys.log"))
            secure = {"security_protocol": "SSL", "ssl_context": context}
            with stage.recording():
                asyncio.run(asyncio.wait_for(talk(stage, cluster.bootstrap, **secure), PATIENCE_S))


_tls("tls_1_2", "1.2")
_tls("tls_1_3", "1.3")
