"""TLS with real brokers: client certificates, SASL inside, key updates, suites; who logs the secrets."""

from __future__ import annotations

import asyncio
import ctypes
import ssl
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.broker.artifacts import agent
from tests.broker.brokers import Cluster
from tests.broker.clients import read, send, talk, warm
from tests.broker.foreign import at_work
from tests.broker.security import PASSWORD, PLAIN, certificate
from tests.broker.stage import NEWEST, PATIENCE_S, Stage, scenario

KEYS = "keys.log"
SUITES = {
    "TLSv1.3": ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"),
    "TLSv1.2": tuple(
        f"ECDHE-RSA-{name}"
        for name in (
            "AES128-GCM-SHA256",
            "AES256-GCM-SHA384",
            "CHACHA20-POLY1305",
            "AES128-SHA",
            "AES128-SHA256",
            "AES256-SHA384",
        )
    ),
}
# How much Java sends with one key before it takes another: 1 kB in the place of 137 GB.
SOON = "jdk.tls.keyLimits=AES/GCM/NoPadding KeyUpdate 2^10, ChaCha20-Poly1305 KeyUpdate 2^10\n"


def keylog(stage: Stage) -> Path:
    return stage.capture.with_name(KEYS)


def logs_secrets(stage: Stage) -> str:
    """The option of a Java program that has the agent write its secrets."""
    return f"-javaagent:{agent()}={keylog(stage)}"


def sealed(
    stage: Stage,
    more: Mapping[str, object] | None = None,
    *,
    options: Sequence[str] = (),
    protocol: str = "SSL",
) -> Cluster:
    """One broker with a TLS listener for clients and a plain one for itself and the office."""
    listener = f"listener.name.{protocol.lower()}.ssl"
    store = certificate(stage.folder)
    properties = {f"{listener}.keystore.type": "PEM", f"{listener}.keystore.location": store, **(more or {})}
    return stage.brokers(NEWEST, internal=True, protocol=protocol, properties=properties, options=options)


def prepared(cluster: Cluster, partitions: int = 1) -> None:
    """A topic, and the topic of offsets."""
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    admin = AdminClient({"bootstrap.servers": cluster.backstage})
    for future in admin.create_topics([NewTopic("orders", partitions, 1)], request_timeout=60).values():
        future.result(PATIENCE_S)
    warm(cluster.backstage)


def trusting(stage: Stage) -> list[str]:
    """What a Java client needs; it has a certificate, too."""
    stores = {"truststore": "certificate.pem", "keystore": "store.pem"}
    words = [
        "security.protocol=SSL",
        "ssl.enabled.protocols=TLSv1.3",
        *(f"ssl.{name}.type=PEM" for name in stores),
    ]
    return words + [f"ssl.{name}.location={stage.folder / file}" for name, file in stores.items()]


@scenario(
    "Java 4.3.1",
    "A Java client that shows a certificate, inside TLS 1.3; an agent in the client logs the secrets.",
    ["mutual TLS, whose handshake takes several records", "keys.log as extract-tls-secrets writes it"],
    encrypted=True,
    keylog=KEYS,
)
def tls_mutual(stage: Stage) -> None:
    listener = "listener.name.ssl.ssl"
    trust = {
        f"{listener}.client.auth": "required",
        f"{listener}.truststore.type": "PEM",
        f"{listener}.truststore.location": stage.folder / "certificate.pem",
    }
    with sealed(stage, trust) as cluster:
        prepared(cluster)
        with stage.recording():
            stage.java(
                "Clients",
                NEWEST,
                cluster.bootstrap,
                "slow",
                *trusting(stage),
                options=[logs_secrets(stage)],
            )


@scenario(
    "librdkafka (confluent-kafka)",
    "SASL PLAIN inside TLS: a good password and a bad one; an agent in the broker logs the secrets.",
    ["SASL_SSL", "a client that logs no secrets, opened by those of its broker"],
    encrypted=True,
    keylog=KEYS,
)
def tls_sasl(stage: Stage) -> None:
    jaas = {
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": PLAIN,
    }
    with sealed(stage, jaas, options=[logs_secrets(stage)], protocol="SASL_SSL") as cluster:
        prepared(cluster)
        login: dict[str, Any] = {
            "security_protocol": "SASL_SSL",
            "ssl_ca_location": str(stage.folder / "certificate.pem"),
            "sasl_mechanism": "PLAIN",
            "sasl_username": "ann",
        }
        with stage.recording():
            send(stage, cluster.bootstrap, [b"one", b"two"], sasl_password=PASSWORD, **login)
            read(stage, cluster.bootstrap, 2, sasl_password=PASSWORD, **login)
            send(stage, cluster.bootstrap, [b"three"], message_timeout_ms=600, sasl_password="wrong", **login)  # noqa: S106


def context(stage: Stage, protocol: str = "TLSv1.3", suite: str = "") -> ssl.SSLContext:
    """What a Python client needs; it writes its key log itself. `suite`: the only one that it offers."""
    made = ssl.create_default_context(cafile=str(stage.folder / "certificate.pem"))
    made.minimum_version = made.maximum_version = ssl.TLSVersion[protocol.replace(".", "_")]
    made.keylog_filename = str(keylog(stage))
    if suite.startswith("ECDHE"):
        made.set_ciphers(f"{suite}:@SECLEVEL=0")
    elif suite:
        offer(made, suite)
    return made


def offer(made: ssl.SSLContext, suite: str) -> None:
    """One cipher suite of TLS 1.3, which Python cannot choose: asked of OpenSSL itself."""
    import _ssl

    # PyObject_HEAD, then SSL_CTX*: CPython's PySSLContext.
    inner = ctypes.c_void_p.from_address(id(made) + object.__basicsize__)
    choose = ctypes.CDLL(_ssl.__file__).SSL_CTX_set_ciphersuites
    choose.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    if choose(inner, suite.encode()) != 1:
        raise RuntimeError(f"OpenSSL does not know {suite}")


@scenario(
    "aiokafka",
    "A broker that changes its keys after every kilobyte, and has the client change its own.",
    ["KeyUpdate of TLS 1.3: Java's, and OpenSSL's in answer to them"],
    encrypted=True,
    keylog=KEYS,
)
def tls_key_update(stage: Stage) -> None:
    limits = stage.folder / "limits.properties"
    limits.write_text(SOON)
    with sealed(stage, options=[f"-Djava.security.properties={limits}"]) as cluster:
        prepared(cluster)
        secure = {"security_protocol": "SSL", "ssl_context": context(stage)}
        with stage.recording():
            asyncio.run(asyncio.wait_for(talk(stage, cluster.bootstrap, **secure), PATIENCE_S))


@scenario(
    "aiokafka",
    "A client with one cipher suite after the other: all that OpenSSL, Java and kwsniff have in common.",
    [f"{protocol}: {', '.join(names)}" for protocol, names in SUITES.items()],
    encrypted=True,
    keylog=KEYS,
)
def tls_suites(stage: Stage) -> None:
    with sealed(stage) as cluster:
        prepared(cluster)
        made = [(name, context(stage, each, name)) for each, names in SUITES.items() for name in names]
        with stage.recording():
            for name, secure in made:
                asyncio.run(asyncio.wait_for(brief(stage, cluster.bootstrap, name, secure), PATIENCE_S))


async def brief(stage: Stage, bootstrap: str, name: str, secure: ssl.SSLContext) -> None:
    """A record, and back."""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    words = {"bootstrap_servers": bootstrap, "client_id": name, "security_protocol": "SSL"}
    async with AIOKafkaProducer(ssl_context=secure, **words) as producer:
        await producer.send_and_wait("orders", name.encode() * 20)
        stage.add("produced")
    async with AIOKafkaConsumer(
        "orders", auto_offset_reset="earliest", ssl_context=secure, **words
    ) as consumer:
        await consumer.getone()
        stage.add("consumed")


@scenario(
    "franz-go",
    "A Go client, franz-go, that writes its key log itself.",
    ["tls.Config.KeyLogWriter of Go"],
    encrypted=True,
    keylog=KEYS,
)
def tls_go(stage: Stage) -> None:
    with sealed(stage) as cluster:
        prepared(cluster)
        words = ["tls=yes", f"keylog={keylog(stage)}", "count=5", "every_ms=20"]
        with stage.recording():
            command = [*at_work("franz", "produce", cluster.bootstrap), *words]
            subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)
            stage.add("produced", 5)
