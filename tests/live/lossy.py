"""Two network namespaces, a broker in one and a client in the other, and a cable between them that loses
packets.

    broker's namespace: 10.77.0.1 kwbrk ── TAP ── this process: drops some TCP packets ── TAP ── kwcli
    10.77.0.2

The cable is a thread with a seeded random number generator, so it needs no netem in the kernel. As a program,
this is what runs in the namespaces: `python -m tests.live.lossy broker HOST` and `... client SERVERS
RECORDS`.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import select
import shutil
import struct
import subprocess
import sys
import threading
from typing import IO, Self

from tests.record.mock import MockCluster

BROKER, CLIENT = "10.77.0.1", "10.77.0.2"
_TUNSETIFF, _TAP, _NO_HEADER = 0x400454CA, 0x0002, 0x1000
_MOST = 65_536


def why_not() -> str | None:
    """The reason why no namespaces or TAP devices can be made here, or None."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "network namespaces need root and the ip command"
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        return f"TAP devices cannot be made: {error.strerror}"
    done = subprocess.run(["ip", "netns", "add", "kwsniff-try"], capture_output=True, text=True, check=False)
    if done.returncode:
        return f"network namespaces cannot be made: {done.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", "kwsniff-try"], check=True)
    return None


class LossyLink:
    """While the block runs, `broker` and `client` are command prefixes that run something in the one or the
    other."""

    def __init__(self, loss: float, seed: int) -> None:
        self.lost = 0
        self._loss = loss
        self._random = random.Random(seed)
        mark = os.getpid() % 10_000
        self.broker_interface, self._client_interface = f"kwbrk{mark}", f"kwcli{mark}"
        self._spaces = f"kwsniff-broker-{mark}", f"kwsniff-client-{mark}"
        self.broker, self.client = (["ip", "netns", "exec", space] for space in self._spaces)
        self._ends: list[int] = []
        self._stop, self._stopping = os.pipe()

    def __enter__(self) -> Self:
        names = (self.broker_interface, self._client_interface)
        try:
            for name, space, address in zip(names, self._spaces, (BROKER, CLIENT), strict=True):
                self._ends.append(_open_tap(name))
                _ip("netns", "add", space)
                _ip("link", "set", name, "netns", space)
                _ip("-n", space, "address", "add", f"{address}/24", "dev", name)
                for device in (name, "lo"):
                    _ip("-n", space, "link", "set", device, "up")
        except BaseException:
            self._clean_up()
            raise
        self._thread = threading.Thread(target=self._forward, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.write(self._stopping, b".")
        self._thread.join()
        self._clean_up()

    def _clean_up(self) -> None:
        for end in (*self._ends, self._stop, self._stopping):
            os.close(end)
        for space in self._spaces:
            subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)

    def _forward(self) -> None:
        across = dict(zip(self._ends, reversed(self._ends), strict=True))
        while True:
            ready = select.select([*self._ends, self._stop], [], [])[0]
            if self._stop in ready:
                return
            for end in ready:
                frame = os.read(end, _MOST)
                if _is_tcp(frame) and self._random.random() < self._loss:
                    self.lost += 1
                else:
                    os.write(across[end], frame)


def _is_tcp(frame: bytes) -> bool:
    return frame[12:14] == b"\x08\x00" and frame[23] == 6


def _open_tap(name: str) -> int:
    end = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(end, _TUNSETIFF, struct.pack("16sH", name.encode(), _TAP | _NO_HEADER))
    return end


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


class Broker:
    """The mock cluster in the broker's namespace."""

    def __init__(self, prefix: list[str]) -> None:
        self._process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "tests.live.lossy", "broker", BROKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.ports: list[int] = self._ask(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def requests(self) -> int:
        """How many it has logged."""
        number: int = self._ask("count")
        return number

    def _ask(self, word: str | None) -> object:
        to, out = self._process.stdin, self._process.stdout
        if to is None or out is None:
            raise RuntimeError("no pipes")
        if word:
            to.write(word + "\n")
            to.flush()
        return json.loads(out.readline())


def serve(host: str, questions: IO[str], answers: IO[str]) -> None:
    """Brokers until nobody asks any more."""
    with MockCluster(1, relay="refusing", host=host) as cluster:
        cluster.topic("orders", 1)
        answers.write(json.dumps(cluster.ports) + "\n")
        answers.flush()
        for _ in questions:
            answers.write(json.dumps(cluster.requests().total()) + "\n")
            answers.flush()


def talk(servers: str, records: int) -> None:
    """Writes records, one per request, some of them of several packets, and reads them again."""
    from confluent_kafka import Consumer, Producer

    common = {"bootstrap.servers": servers, "enable.metrics.push": False, "log_level": 0}
    producer = Producer({**common, "client.id": "far-shop", "linger.ms": 0, "batch.num.messages": 1})
    for number in range(records):
        producer.produce("orders", b"x" * (100 if number % 5 else 6000))
        producer.flush(60)
    consumer = Consumer(
        {**common, "client.id": "far-reader", "group.id": "far", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    read = 0
    while read < records:
        read += len(consumer.consume(records - read, 1.0))
    consumer.close()


if __name__ == "__main__":
    if sys.argv[1] == "broker":
        serve(sys.argv[2], sys.stdin, sys.stdout)
    else:
        talk(sys.argv[2], int(sys.argv[3]))
