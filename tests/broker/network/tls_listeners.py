"""TLS handshakes that fail. In each scene another client, with the right settings, works at the same time."""

from __future__ import annotations

from tests.broker.certificates import Authority, Issued, authority, issue
from tests.broker.network.clocks import OLD
from tests.broker.network.incidents import incident
from tests.broker.network.site import Role, Site

HOST = "10.88.0.1"
BROKER = f"{HOST}:9092"
TLS = {"protocol": "SSL"}
LISTENER = "listener.name.ssl.ssl"
SLOW = {"reconnect_backoff_ms": 700, "max_block_ms": 4500, "x_count": 1}


def _keys(site: Site) -> tuple[Authority, Issued]:
    """The CA that everybody should know, and the broker's certificate."""
    ca = authority(site.folder, "ca")
    return ca, issue(ca, site.folder, "broker", HOST)


def _served(issued: Issued, **more: object) -> dict[str, object]:
    """Properties of a broker with this certificate."""
    return {
        f"{LISTENER}.keystore.type": "PEM",
        f"{LISTENER}.keystore.location": issued.store,
        **{f"{LISTENER}.{name.replace('_', '.')}": value for name, value in more.items()},
    }


def _right(site: Site) -> dict[str, object]:
    ca, broker = _keys(site)
    issue(ca, site.folder, "client", "shop")
    return _served(broker)


def _expired(site: Site) -> dict[str, object]:
    ca = authority(site.folder, "ca")
    return _served(issue(ca, site.folder, "broker", HOST, expired=True))


def _elsewhere(site: Site) -> dict[str, object]:
    ca = authority(site.folder, "ca")
    return _served(issue(ca, site.folder, "broker", "kafka.example.com"))


def _asking(site: Site, **more: object) -> dict[str, object]:
    """The broker wants certificates of the same CA."""
    ca, broker = _keys(site)
    issue(ca, site.folder, "client", "shop")
    issue(authority(site.folder, "other-ca"), site.folder, "stranger", "shop")
    trust = {"client_auth": "required", "truststore_type": "PEM", "truststore_location": ca.path}
    return _served(broker, **trust, **more)


def _trusting(site: Site, *, client: bool = False) -> dict[str, object]:
    """Settings of a Java client."""
    words: dict[str, object] = {
        "security_protocol": "SSL",
        "ssl_truststore_type": "PEM",
        "ssl_truststore_location": site.folder / "ca.pem",
    }
    if client:
        words |= {"ssl_keystore_type": "PEM", "ssl_keystore_location": site.folder / "client.store.pem"}
    return words


def _neighbour(site: Site, *, client: bool = False) -> Role:
    """franz-go, which takes any certificate, and has one of its own where the broker asks for it."""
    own = {"cert": site.folder / "client.certificate.pem", "secret": site.folder / "client.key.pem"}
    settings = {"client_id": "till", "tls": 1, **(own if client else {})}
    return site.foreign("near", "franz", "produce", count=12, every_ms=400, **settings)


@incident(
    "configuration",
    "broker",
    BROKER,
    "the broker's certificate has expired: a Java client 4.3.1 (TLS 1.3) refuses it; franz-go takes any",
    finding="tls_handshake_failed",
    options=TLS,
    prepared=_expired,
    also=["encrypted"],
)
def cert_expired_java(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        neighbour = _neighbour(site)
        site.counted(site.work("near", "produce", client_id="shop", **_trusting(site), **SLOW))
        site.counted(neighbour)


@incident(
    "configuration",
    "broker",
    BROKER,
    "sarama (TLS 1.3) does not know the CA of the broker's certificate (3.9.2); franz-go takes any",
    finding="tls_handshake_failed",
    version=OLD,
    options=TLS,
    prepared=_right,
    also=["encrypted"],
)
def unknown_ca_sarama(site: Site) -> None:
    site.create(orders=1)
    other = authority(site.folder, "other-ca")
    with site.recording():
        neighbour = _neighbour(site)
        for _ in range(3):
            site.counted(site.foreign("near", "sarama", "produce", count=1, ca=other.path))
        site.counted(neighbour)


@incident(
    "configuration",
    "broker",
    BROKER,
    "the broker's certificate is for another name: KafkaJS refuses it; franz-go takes any",
    finding="tls_handshake_failed",
    options=TLS,
    prepared=_elsewhere,
    also=["encrypted"],
)
def wrong_host_kafkajs(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        neighbour = _neighbour(site)
        site.counted(
            site.foreign("near", "kafkajs", "produce", count=1, ca=site.folder / "ca.pem", retries=3)
        )
        site.counted(neighbour)


@incident(
    "configuration",
    "broker",
    BROKER,
    "a Java client 4.3.1 (TLS 1.2) does not know the CA of the broker's certificate (3.9.2)",
    finding="tls_handshake_failed",
    version=OLD,
    options=TLS,
    prepared=_right,
    also=["encrypted"],
)
def unknown_ca_java_12(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        neighbour = _neighbour(site)
        words = {"security_protocol": "SSL", "ssl_enabled_protocols": "TLSv1.2", **SLOW}
        site.counted(site.work("near", "produce", client_id="shop", **words))
        site.counted(neighbour)


@incident(
    "client",
    "broker",
    BROKER,
    "the broker requires certificates of clients; kafka-python (TLS 1.3) has none, franz-go has one",
    finding="tls_handshake_failed",
    options=TLS,
    prepared=_asking,
    also=["encrypted"],
)
def no_certificate_python(site: Site) -> None:
    site.create(orders=1)
    settings = {
        "security_protocol": "SSL",
        "ssl_cafile": str(site.folder / "ca.pem"),
        "request_timeout_ms": 4000,
        "max_block_ms": 5000,
        "reconnect_backoff_ms": 500,
    }
    with site.recording():
        neighbour = _neighbour(site, client=True)
        site.run("near", "kp_produce", count=1, settings=settings)
        site.counted(neighbour)


@incident(
    "client",
    "broker",
    BROKER,
    "the broker (TLS 1.3) requires certificates of clients; a Java client 4.3.1 has none, franz-go has one",
    finding="tls_handshake_failed",
    options=TLS,
    prepared=_asking,
    also=["encrypted"],
)
def no_certificate_java(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        neighbour = _neighbour(site, client=True)
        site.counted(site.work("near", "produce", client_id="shop", **_trusting(site), **SLOW))
        site.counted(neighbour)


@incident(
    "client",
    "broker",
    BROKER,
    "the broker (TLS 1.2, 3.9.2) requires certificates of clients; librdkafka has one of another CA",
    finding="tls_handshake_failed",
    version=OLD,
    options=TLS,
    prepared=lambda site: _asking(site, enabled_protocols="TLSv1.2"),
    also=["encrypted"],
)
def foreign_certificate_12(site: Site) -> None:
    site.create(orders=1)
    settings = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(site.folder / "ca.pem"),
        "ssl.certificate.location": str(site.folder / "stranger.certificate.pem"),
        "ssl.key.location": str(site.folder / "stranger.key.pem"),
        "reconnect.backoff.ms": 500,
        "message.timeout.ms": 4000,
    }
    with site.recording():
        neighbour = _neighbour(site, client=True)
        site.run("near", "produce", count=1, settings=settings)
        site.counted(neighbour)


@incident(
    "configuration",
    "broker",
    BROKER,
    "the broker takes TLS 1.2 alone, a Java client 4.3.1 TLS 1.3 alone; franz-go takes both",
    finding="tls_handshake_failed",
    options=TLS,
    prepared=lambda site: _served(_keys(site)[1], enabled_protocols="TLSv1.2"),
    also=["encrypted"],
)
def no_version_in_common(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        neighbour = _neighbour(site)
        words = {**_trusting(site), "ssl_enabled_protocols": "TLSv1.3", "ssl_protocol": "TLSv1.3", **SLOW}
        site.counted(site.work("near", "produce", client_id="shop", **words))
        site.counted(neighbour)


@incident(
    "configuration",
    "broker",
    BROKER,
    "client and broker (TLS 1.2) have no cipher suite in common: librdkafka wants one with AES-256-CBC",
    finding="tls_handshake_failed",
    version=OLD,
    options=TLS,
    prepared=lambda site: _served(
        _keys(site)[1],
        enabled_protocols="TLSv1.2",
        cipher_suites="TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    ),
    also=["encrypted"],
)
def no_suite_in_common(site: Site) -> None:
    site.create(orders=1)
    settings = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(site.folder / "ca.pem"),
        "ssl.cipher.suites": "ECDHE-ECDSA-AES256-SHA",
        "reconnect.backoff.ms": 500,
        "message.timeout.ms": 4000,
    }
    with site.recording():
        neighbour = _neighbour(site)
        site.run("near", "produce", count=1, settings=settings)
        site.counted(neighbour)
