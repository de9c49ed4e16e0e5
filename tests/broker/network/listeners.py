"""Wrong listeners: servers and clients that do not speak Kafka, PROXY headers.

In each scene another client, with the right settings, works at the same time.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.broker.certificates import authority, issue
from tests.broker.network.clocks import OLD
from tests.broker.network.incidents import incident
from tests.broker.network.namespaces import OFFICE, Way, inside
from tests.broker.network.site import Role, Site

HOST = "10.88.0.1"
BROKER = f"{HOST}:9092"
TLS = {"protocol": "SSL"}
LISTENER = "listener.name.ssl.ssl"
SLOW = {"reconnect_backoff_ms": 700, "max_block_ms": 4500, "x_count": 1}


# -- servers that are no brokers ---------------------------------------------------------------------------


@contextmanager
def _beside(site: Site, command: Sequence[str], seconds: float = 1.5, *, at: str = "") -> Iterator[None]:
    """Another server on the broker's host, or at a client's place; it has so long to begin."""
    place = inside(site.net.client(at) if at else site.net.broker(1))
    process = subprocess.Popen([*place, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(seconds)
        if process.poll() is not None:
            raise RuntimeError(f"{command[0]} ended with {process.returncode}")
        yield
    finally:
        process.terminate()
        process.wait(20)


def _plain(site: Site) -> Role:
    return site.start("near", "kp_produce", client_id="till", count=12, every_s=0.4)


@incident(
    "configuration",
    "broker",
    f"{HOST}:8080",
    "a Java client 4.3.1 has the port of an HTTP server (Python's) in bootstrap.servers",
    finding="not_kafka",
    more_ports=[8080],
)
def http_server_java(site: Site) -> None:
    site.create(orders=1)
    web = [sys.executable, "-m", "http.server", "8080", "--bind", HOST, "-d", str(site.folder / "none")]
    with _beside(site, web), site.recording():
        neighbour = _plain(site)
        site.counted(site.work("near", "produce", x_bootstrap=f"{HOST}:8080", client_id="shop", **SLOW))
        site.counted(neighbour)


@incident(
    "configuration",
    "broker",
    f"{HOST}:6379",
    "KafkaJS has the port of Redis in bootstrap.servers",
    finding="not_kafka",
    more_ports=[6379],
)
def redis_kafkajs(site: Site) -> None:
    site.create(orders=1)
    redis = ["redis-server", "--port", "6379", "--bind", HOST, "--save", "", "--dir", str(site.folder)]
    with _beside(site, redis), site.recording():
        neighbour = _plain(site)
        words = {"count": 1, "retries": 2, "request_timeout_ms": 2000}
        site.counted(site.foreign("near", "kafkajs", "produce", x_bootstrap=f"{HOST}:6379", **words))
        site.counted(neighbour)


@incident(
    "configuration",
    "broker",
    f"{HOST}:3306",
    "sarama has the port of MariaDB in bootstrap.servers",
    finding="not_kafka",
    more_ports=[3306],
)
def mysql_sarama(site: Site) -> None:
    site.create(orders=1)
    data = site.folder / "mariadb"
    subprocess.run(
        ["mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={data}"],
        check=True,
        capture_output=True,
        timeout=120,
    )
    server = ["mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", f"--bind-address={HOST}"]
    server += ["--port=3306", f"--socket={data}/socket", "--skip-name-resolve"]
    with _beside(site, server, 8), site.recording():
        neighbour = _plain(site)
        for _ in range(3):
            site.counted(site.foreign("near", "sarama", "produce", x_bootstrap=f"{HOST}:3306", count=1))
        site.counted(neighbour)


@incident(
    "configuration",
    "broker",
    f"{HOST}:22",
    "librdkafka has the port of OpenSSH in bootstrap.servers",
    finding="not_kafka",
    more_ports=[22],
)
def ssh_rdkafka(site: Site) -> None:
    site.create(orders=1)
    key = site.folder / "host_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True, timeout=30)
    Path("/run/sshd").mkdir(exist_ok=True)
    server = ["/usr/sbin/sshd", "-D", "-f", "/dev/null", "-h", str(key), "-p", "22"]
    server += ["-o", f"ListenAddress={HOST}", "-o", "PidFile=none"]
    with _beside(site, server), site.recording():
        neighbour = _plain(site)
        settings = {"message.timeout.ms": 4000, "reconnect.backoff.ms": 500, "socket.timeout.ms": 2000}
        settings["api.version.request.timeout.ms"] = 1500
        site.run("near", "produce", bootstrap=f"{HOST}:22", count=1, settings=settings)
        site.counted(neighbour)


@incident(
    "configuration",
    "broker",
    f"{HOST}:8443",
    "aiokafka speaks plain text to a TLS server (nginx) that is not a broker: HTTP's answer 400",
    finding="not_kafka",
    more_ports=[8443],
)
def nginx_aiokafka(site: Site) -> None:
    site.create(orders=1)
    ca = authority(site.folder, "ca")
    web = issue(ca, site.folder, "web", HOST)
    config = site.folder / "nginx.conf"
    config.write_text(
        f"daemon off; pid {site.folder}/nginx.pid; error_log /dev/null; events {{}}\n"
        f"http {{ access_log off; server {{ listen {HOST}:8443 ssl; ssl_certificate {web.certificate};"
        f" ssl_certificate_key {web.key}; }} }}\n"
    )
    with _beside(site, ["nginx", "-c", str(config)]), site.recording():
        neighbour = _plain(site)
        for _ in range(3):
            site.run("near", "aio_produce", bootstrap=f"{HOST}:8443", count=1)
        site.counted(neighbour)


@incident(
    "configuration",
    "broker",
    f"{HOST}:5672",
    "franz-go has the port of an AMQP server in bootstrap.servers, which names its own version and closes",
    finding="not_kafka",
    more_ports=[5672],
)
def amqp_franz(site: Site) -> None:
    site.create(orders=1)
    script = site.folder / "amqp.py"
    script.write_text(
        "import socketserver\n"
        "class Server(socketserver.BaseRequestHandler):\n"
        "    def handle(self):\n"
        "        if not self.request.recv(8).startswith(b'AMQP'):\n"
        "            self.request.sendall(b'AMQP\\x00\\x00\\x09\\x01')\n"
        f"socketserver.ThreadingTCPServer(('{HOST}', 5672), Server).serve_forever()\n"
    )
    with _beside(site, [sys.executable, str(script)]), site.recording():
        neighbour = _plain(site)
        words = {"client_id": "go-shop", "count": 1, "delivery_ms": 4000}
        site.counted(site.foreign("near", "franz", "produce", x_bootstrap=f"{HOST}:5672", **words))
        site.counted(neighbour)


@incident(
    "configuration",
    "broker",
    f"{OFFICE}:9095",
    "franz-go and kafka-python have ZooKeeper's port in bootstrap.servers; ZooKeeper closes",
    finding="not_kafka",
    version=OLD,
    options={"zookeeper": True},
)
def zookeeper_franz(site: Site) -> None:
    site.create(orders=1)
    port = site.cluster.zookeeper_port
    there = f"{OFFICE}:{port}"
    with site.recording(port):
        neighbour = _plain(site)
        words = {"client_id": "go-shop", "count": 1, "delivery_ms": 4000}
        go = site.foreign("near", "franz", "produce", x_bootstrap=there, **words)
        settings = {"request_timeout_ms": 3000, "max_block_ms": 3500}
        site.run("near", "kp_produce", bootstrap=there, count=1, settings=settings)
        site.counted(go)
        site.counted(neighbour)


@incident(
    "client",
    "client",
    "10.88.0.11",
    "curl asks the broker for HTTP's /metrics; kafka-python works",
    finding="not_kafka",
)
def http_client(site: Site) -> None:
    site.create(orders=1)
    with site.recording():
        neighbour = _plain(site)
        for _ in range(4):
            command = ["curl", "-s", "-m", "2", f"http://{BROKER}/metrics"]
            subprocess.run([*inside(site.net.client("near")), *command], check=False, timeout=10)
            time.sleep(0.5)
        site.counted(neighbour)


# -- the PROXY protocol ------------------------------------------------------------------------------------

PROXY = "10.88.0.12"
PLACES = {"near": Way(), "proxy": Way()}


def _haproxy(site: Site, name: str, listen: str, server: str) -> list[str]:
    config = site.folder / f"{name}.cfg"
    config.write_text(
        "defaults\n  mode tcp\n  timeout connect 2s\n  timeout client 30s\n  timeout server 30s\n"
        f"listen kafka\n  bind {listen}\n  server one {server}\n"
    )
    return ["haproxy", "-db", "-f", str(config)]


def _proxied(name: str, version: int) -> None:
    word = "send-proxy" if version == 1 else "send-proxy-v2"

    def play(site: Site) -> None:
        site.create(orders=1)
        command = _haproxy(site, "outer", f"{PROXY}:9999", f"{BROKER} {word}")
        with _beside(site, command, at="proxy"), site.recording():
            neighbour = _plain(site)
            settings = {"message.timeout.ms": 4000, "reconnect.backoff.ms": 500}
            site.run("near", "produce", bootstrap=f"{PROXY}:9999", count=1, settings=settings)
            site.counted(neighbour)

    play.__name__ = name
    incident(
        "configuration",
        "broker",
        BROKER,
        f"HAProxy puts a PROXY header (version {version}) in front of what it sends to the broker; "
        "kafka-python connects directly",
        finding="proxy_protocol",
        clients=PLACES,
        more_ports=[9999],
        also=["backend_down", "connection_limit", "not_kafka"],
    )(play)


_proxied("proxy_header_1", 1)
_proxied("proxy_header_2", 2)


@incident(
    "configuration",
    "broker",
    f"{HOST}:9999",
    "HAProxy expects a PROXY header: librdkafka connects to it directly and is cut off; who comes through "
    "another HAProxy is served",
    finding="proxy_protocol",
    clients=PLACES,
    more_ports=[9999, 9998],
)
def proxy_header_missing(site: Site) -> None:
    site.create(orders=1)
    inner = _haproxy(site, "inner", f"{HOST}:9999 accept-proxy", BROKER)
    outer = _haproxy(site, "outer", f"{PROXY}:9998", f"{HOST}:9999 send-proxy-v2")
    with _beside(site, inner), _beside(site, outer, at="proxy"), site.recording():
        # Metadata names the broker itself: what is asked through the proxies is enough
        settings = {"message.timeout.ms": 4000, "reconnect.backoff.ms": 500}
        through = site.start("near", "produce", bootstrap=f"{PROXY}:9998", client_id="till", count=12)
        site.run("near", "produce", bootstrap=f"{HOST}:9999", count=1, settings=settings)
        site.counted(through)
