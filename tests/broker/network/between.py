"""Balancers and firewalls between clients and brokers: incidents, and a healthy one beside them."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

from tests.broker.network.calm import calm
from tests.broker.network.clocks import OLD
from tests.broker.network.incidents import EACH, incident
from tests.broker.network.machines import OPEN, RESET, filtered, open_ports, serving
from tests.broker.network.namespaces import Way
from tests.broker.network.others import JAVA_2
from tests.broker.network.site import Site

DOOR = 29092
"""Where HAProxy listens, which clients know as the broker."""
QUICK = {"reconnect.backoff.ms": 100, "reconnect.backoff.max.ms": 500}
BALANCED = {
    "prepared": lambda site: {
        "advertised.listeners": f"PLAINTEXT://10.88.0.1:{DOOR},"
        f"INTERNAL://10.88.0.1:{site.cluster.internal_ports[0]}"
    },
    "more_ports": [DOOR],
    "witnessed": False,
}
STARTED_S = 9
"""By then a client is at work, on a busy machine too."""


def _balancer(site: Site, *lines: str, check: str = "", idle: str = "60s") -> list[str]:
    """What starts HAProxy in front of the broker; clients begin there."""
    site.door = f"10.88.0.1:{DOOR}"
    said = [
        "defaults",
        " mode tcp",
        " timeout connect 2s",
        f" timeout client {idle}",
        f" timeout server {idle}",
        "listen kafka",
        f" bind 10.88.0.1:{DOOR}",
        *(f" {line}" for line in lines),
        f" server one 10.88.0.1:{site.cluster.ports[0]} {check}",
    ]
    path = Path(site.folder, "haproxy.cfg")
    path.write_text("\n".join(said) + "\n")
    return ["haproxy", "-f", str(path)]


@incident(
    "broker",
    "broker",
    f"10.88.0.1:{DOOR}",
    "HAProxy with health checks in front of the only broker, which is killed; HAProxy still accepts",
    finding="backend_down",
    sides=("client",),
    **BALANCED,
)
def backend_down(site: Site) -> None:
    site.create(orders=1)
    with serving(site, *_balancer(site, check="check inter 200ms")), site.recording():
        times = {"delivery_timeout_ms": 4000, "request_timeout_ms": 2000, "linger_ms": 0}
        java = site.work("near", "produce", client_id="shop", x_count=40, x_every_ms=500, **times)
        other = site.foreign("near", "sarama", "produce", client_id="till", count=40, every_ms=500)
        time.sleep(STARTED_S)
        site.brokers[0].stop(9)
        time.sleep(5)
        java.kill()
        other.kill()


@incident(
    "broker",
    "broker",
    f"10.88.0.1:{DOOR}",
    "HAProxy without health checks in front of the only broker, 3.9.2, which is killed: it tries the broker "
    "for three seconds before it closes",
    finding="backend_down",
    version=OLD,
    sides=("client",),
    **BALANCED,
)
def backend_down_retries(site: Site) -> None:
    site.create(orders=1)
    with serving(site, *_balancer(site)), site.recording():
        go = site.foreign("near", "franz", "produce", client_id="go-shop", count=60, every_ms=300, acks=1)
        time.sleep(STARTED_S)
        site.brokers[0].stop(9)
        time.sleep(16)
        go.kill()


@incident(
    "configuration",
    "broker",
    f"10.88.0.1:{DOOR}",
    "a proxy accepts every connection and closes it: nothing is behind it; KafkaJS and sarama",
    finding="backend_down",
    sides=("client",),
    **BALANCED,
)
def backend_never(site: Site) -> None:
    proxy = _balancer(site, "tcp-request connection reject")
    with serving(site, *proxy), site.recording():
        js = site.foreign("near", "kafkajs", "produce", client_id="js-shop", count=2, retries=6)
        go = site.foreign("near", "sarama", "produce", client_id="sarama-shop", count=2)
        time.sleep(5)
        js.kill()
        go.kill()


@calm(
    "HAProxy in front of a broker that is there: producers come and go, a group reads",
    sides=("client",),
    **BALANCED,
)
def healthy_balancer(site: Site) -> None:
    site.create(orders=1)
    with serving(site, *_balancer(site, check="check inter 200ms")), site.recording():
        reader = site.start("near", "consume", seconds=7)
        for number in range(4):
            site.run("near", "kp_produce", client_id=f"py-{number}", count=3, every_s=0.2)
        site.counted(reader)


@incident(
    "configuration",
    "client",
    "cron",
    "HAProxy with idle timeouts of 2 s; a client asks every 4 s on one connection",
    finding="idle_closed",
    sides=("client",),
    **BALANCED,
)
def idle_balancer(site: Site) -> None:
    site.create(orders=1)
    with serving(site, *_balancer(site, idle="2s")), site.recording():
        site.run("near", "ask", client_id="cron", times=4, every_s=4)


@incident(
    "configuration",
    "client",
    "cron",
    "a firewall forgets connections after some seconds, and answers the next packet with a reset",
    finding="idle_closed",
    version=OLD,
    clients={"near": Way(), "till": Way()},
    sides=("client",),
    witnessed=False,
)
def idle_reset(site: Site) -> None:
    site.create(orders=1)
    with site.recording(), ExitStack() as stack:
        other = site.start("till", "kp_produce", client_id="till", count=30, every_s=0.5)
        cron = site.start("near", "ask", client_id="cron", times=4, every_s=4)
        known: set[str] = set()
        for _ in range(2):
            (port,) = open_ports(site, "near", known)
            known.add(port)
            time.sleep(1)
            stack.enter_context(filtered(site, f"tcp sport {port} {RESET}", table=f"kw{port}"))
        site.counted(cron)
        site.counted(other)


@incident(
    "network",
    "client",
    "shop",
    "a firewall resets the connections of shop three times, for 0.4 s each; till is not affected",
    finding="middlebox_reset",
    clients={"near": Way(), "till": Way()},
    sides=("client",),
    witnessed=False,
)
def middlebox_reset(site: Site) -> None:
    site.create(orders=1)
    rule = f"ip saddr {site.net.address('near')} tcp dport {site.cluster.ports[0]} {OPEN} {RESET}"
    with site.recording():
        other = site.start("till", "produce", client_id="till", count=30, every_s=0.3, settings=EACH)
        shop = site.start(
            "near", "produce", client_id="shop", count=60, every_s=0.15, settings={**EACH, **QUICK}
        )
        for _ in range(3):
            time.sleep(2)
            with filtered(site, rule):
                time.sleep(0.4)
        site.counted(shop)
        site.counted(other)


@incident(
    "network",
    "client",
    "shop",
    "the same twice with a Java client 2.3.1 and 3.9.2; the broker is three routers behind the firewall",
    finding="middlebox_reset",
    version=OLD,
    clients={"near": Way(), "till": Way()},
    sides=("client",),
    witnessed=False,
)
def middlebox_reset_java(site: Site) -> None:
    site.create(orders=1)
    port = site.cluster.ports[0]
    # as if the broker were three routers behind the firewall
    behind = f"tcp sport {port} tcp flags & (rst) == 0 ip ttl set 61"
    with filtered(site, behind, hook="output", table="behind"), site.recording():
        java = site.work("near", "produce", x_version=JAVA_2, client_id="shop", x_count=60, x_every_ms=150)
        other = site.start("till", "kp_produce", client_id="till", count=24, every_s=0.5)
        time.sleep(STARTED_S)
        rule = f"ip saddr {site.net.address('near')} tcp dport {port} {OPEN} {RESET}"
        for _ in range(2):
            with filtered(site, rule):
                time.sleep(0.4)
            time.sleep(2)
        site.counted(java)
        site.counted(other)
