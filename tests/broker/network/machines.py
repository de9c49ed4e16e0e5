"""What stands between clients and brokers: firewalls, balancers, and what may be asked of a namespace."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.broker.network.namespaces import inside
from tests.broker.network.site import PATIENCE_S, Site

OPEN = "tcp flags & (syn) == 0"
"""Of a rule of nftables: segments of connections that are there already."""
RESET = "reject with tcp reset"


def command(namespace: str, *words: str) -> None:
    """Runs a command there, and waits for it."""
    there = [*inside(namespace), *words]
    done = subprocess.run(there, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} failed: {done.stderr}")


@contextmanager
def filtered(site: Site, rule: str, hook: str = "input", table: str = "kw") -> Iterator[None]:
    """A rule of nftables in the first broker's namespace, while the block runs."""
    there = site.net.broker(1)
    command(there, "nft", "add", "table", "ip", table)
    chain = f"{{ type filter hook {hook} priority -300 ; }}"
    command(there, "nft", "add", "chain", "ip", table, hook, chain)
    command(there, "nft", "add", "rule", "ip", table, hook, *rule.split())
    try:
        yield
    finally:
        command(there, "nft", "delete", "table", "ip", table)


@contextmanager
def serving(site: Site, *words: str) -> Iterator[None]:
    """A program beside the first broker, while the block runs."""
    there = [*inside(site.net.broker(1)), *words]
    process = subprocess.Popen(there, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        yield
    finally:
        process.kill()
        process.wait(10)


def open_ports(site: Site, client: str, known: set[str], seconds: float = 30) -> set[str]:
    """Local ports of the client's connections, as soon as there is one that is not known."""
    asked = [*inside(site.net.client(client)), "ss", "-Htn", "state", "established"]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        said = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10).stdout
        if found := {line.split()[2].rsplit(":", 1)[1] for line in said.splitlines()} - known:
            return found
        time.sleep(0.1)
    raise RuntimeError(f"{client} opens no connection")
