"""`python -m tests.broker.network.sockets [three_places] [windows]`: small recordings of programs by hand.

Both ends are sockets that send Kafka's messages; the way between them is that of the other recordings.
`three_places`: client, bridge and broker captured at once; the relays hold packets back on both legs and
drop some on the second. `windows`: a receiver with a small buffer, then one that pauses; beside the capture
`ss -ti` says what its sender waited for.
"""

from __future__ import annotations

import re
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.broker.network.namespaces import HUB, ROOT, Network, Way, inside, network

FOLDER = ROOT / "tests" / "data" / "sockets"
PORT = 9092
HEARTBEAT, PRODUCE = 12, 0
LEGS = {"shop": Way(20), "kafka": Way(6, 0.2)}
"""From the client to the bridge, and from there to the broker."""
TALKS = 12
BUFFER = 8192
"""Bytes that the receiver asks for: SO_RCVBUF."""
PAUSE_S = 0.7
SAMPLE_S = 0.03
COUNTERS = ("busy", "rwnd_limited", "sndbuf_limited")
CUT = 128


def text(word: str) -> bytes:
    return struct.pack(">h", len(word)) + word.encode()


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def request(key: int, version: int, number: int, body: bytes) -> bytes:
    return framed(struct.pack(">hhi", key, version, number) + text("shop") + body)


def heartbeat(number: int) -> bytes:
    return request(HEARTBEAT, 0, number, text("g") + struct.pack(">i", 1) + text("m"))


def produce(number: int, size: int) -> bytes:
    head = struct.pack(">hhii", -1, 1, 30_000, 1) + text("orders") + struct.pack(">iii", 1, 0, size)
    return request(PRODUCE, 3, number, head + bytes(size))


def response(key: int, number: int) -> bytes:
    if key == HEARTBEAT:
        return framed(struct.pack(">ih", number, 0))
    body = struct.pack(">i", 1) + text("orders") + struct.pack(">iihqq", 1, 0, 0, number, -1)
    return framed(struct.pack(">i", number) + body + struct.pack(">i", 0))


def read_exactly(connection: socket.socket, num: int) -> bytes:
    data = b""
    while len(data) < num:
        part = connection.recv(num - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def serve(connections: int, buffer: int) -> None:
    """Answers what comes. With a small buffer, a request with an even number is read after a pause."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if buffer:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        listener.bind(("", PORT))
        listener.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        for _ in range(connections):
            connection = listener.accept()[0]
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                try:
                    while True:
                        answer(connection, paused=bool(buffer))
                except EOFError:
                    continue


def answer(connection: socket.socket, *, paused: bool) -> None:
    (size,) = struct.unpack(">i", read_exactly(connection, 4))
    head = read_exactly(connection, 8)
    key, _, number = struct.unpack(">hhi", head)
    if paused and number % 2 == 0:
        time.sleep(PAUSE_S)
    read_exactly(connection, size - 8)
    connection.sendall(response(key, number))


def talk(host: str) -> None:
    """One heartbeat behind the other."""
    with socket.create_connection((host, PORT)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(1, TALKS + 1):
            connection.sendall(heartbeat(number))
            read_exactly(connection, len(response(HEARTBEAT, number)))
            time.sleep(0.001 * (number % 5))


def write(host: str) -> None:
    """A heartbeat and two requests, larger than the receiver's buffer, on each of two connections."""
    for _ in range(2):
        with socket.create_connection((host, PORT)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for number, size in ((1, 0), (3, 30_000), (4, 12_000)):
                connection.sendall(produce(number, size) if size else heartbeat(number))
                (length,) = struct.unpack(">i", read_exactly(connection, 4))
                read_exactly(connection, length)
                time.sleep(4 * SAMPLE_S)


@contextmanager
def captured(namespace: str, device: str, path: Path, snaplen: int = 262_144) -> Iterator[None]:
    command = ["tcpdump", "-i", device, "-s", str(snaplen), "-U", "-w", str(path), f"tcp port {PORT}"]
    with subprocess.Popen([*inside(namespace), *command], stderr=subprocess.PIPE, text=True) as tcpdump:
        if tcpdump.stderr is None or not any("listening" in line for line in tcpdump.stderr):
            raise RuntimeError("tcpdump does not listen")
        yield
        time.sleep(1)
        tcpdump.terminate()


@contextmanager
def served(namespace: str, *words: str) -> Iterator[None]:
    command = [*inside(namespace), sys.executable, "-m", "tests.broker.network.sockets", "serve", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        if server.stdout is None or server.stdout.readline() != "ready\n":
            raise RuntimeError("the server does not start")
        yield
        server.wait(30)


def run(namespace: str, *words: str) -> None:
    command = [*inside(namespace), sys.executable, "-m", "tests.broker.network.sockets", *words]
    subprocess.run(command, check=True, timeout=60, cwd=ROOT)


def counters(line: str) -> tuple[int, Mapping[str, int]] | None:
    """The local port of a line of `ss -tiHOn`, and milliseconds since its connection began."""
    ends = re.findall(r"\S+:(\d+)\s", line)
    if len(ends) < 2 or ends[1] != str(PORT):
        return None
    told = {name: re.search(rf"\b{name}:(\d+)ms", line) for name in COUNTERS}
    return int(ends[0]), {name: int(found[1]) if found else 0 for name, found in told.items()}


def sample(namespace: str, path: Path, stop: threading.Event) -> None:
    """Writes what `ss` says, where it has changed."""
    latest: dict[int, Mapping[str, int]] = {}
    with path.open("w") as out:
        out.write("\t".join(("time_ns", "client_port", *(f"{name}_ms" for name in COUNTERS))) + "\n")
        while not stop.wait(SAMPLE_S):
            now = time.time_ns()
            command = [*inside(namespace), "ss", "-tiHOn"]
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
            for told in filter(None, map(counters, done.stdout.splitlines())):
                port, values = told
                if latest.get(port) != values:
                    latest[port] = values
                    out.write("\t".join(map(str, (now, port, *values.values()))) + "\n")


def record_three_places(net: Network, folder: Path) -> None:
    client, broker = net.client("shop"), net.client("kafka")
    places = {"client": (client, "eth0"), "between": (HUB, net.taps("shop")[1]), "broker": (broker, "eth0")}
    host = net.address("kafka")
    with served(broker, "1", "0"):
        one, two, three = (captured(*place, folder / f"{name}.pcap") for name, place in places.items())
        with one, two, three:
            run(client, "talk", host)


def record_windows(net: Network, folder: Path) -> None:
    client, broker = net.client("far"), net.client("kafka")
    stop = threading.Event()
    sampler = threading.Thread(target=sample, args=(client, folder / "ss.tsv", stop))
    with served(broker, "2", str(BUFFER)), captured(client, "eth0", folder / "client.pcap", CUT):
        sampler.start()
        run(client, "write", net.address("kafka"))
        stop.set()
        sampler.join()


def main() -> None:
    match sys.argv[1:]:
        case ["serve", connections, buffer]:
            serve(int(connections), int(buffer))
        case ["talk", host]:
            talk(host)
        case ["write", host]:
            write(host)
        case names:
            for name in names or ("three_places", "windows"):
                folder = FOLDER / name
                folder.mkdir(parents=True, exist_ok=True)
                ways = LEGS if name == "three_places" else {"far": Way(60), "kafka": Way()}
                with network(0, ways) as net:
                    (record_three_places if name == "three_places" else record_windows)(net, folder)


if __name__ == "__main__":
    main()
