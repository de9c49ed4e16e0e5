"""`python -m tests.broker.configured [NUMBER [SEED]]`: the table clients, against the settings clients had.

Starts NUMBER clients (librdkafka, Java, kafka-python, aiokafka) with random settings on a real broker, a few
at a time, records them, and prints for each setting how often the table has it, lacks it, or is wrong.
Settings in the bytes have to be equal, intervals within 10 % or 2 ms.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.broker.artifacts import compiled
from tests.broker.brokers import HEAP
from tests.broker.stage import NEWEST, Stage

SECONDS = 24
TOGETHER = 10
LIBRARIES = ("librdkafka", "java", "kafka-python", "aiokafka")
INTERVALS = ("linger_ms", "heartbeat_interval_ms", "commit_interval_ms", "metadata_max_age_ms")
CHOICES: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "producer": {
        "acks": (-1, 1),
        "idempotent": (True, False),
        "compression": ("none", "gzip", "snappy", "lz4", "zstd"),
        "linger_ms": (5, 20, 50, 100, 200),
        "request_timeout_ms": (10_000, 20_000, 31_000),
        "metadata_max_age_ms": (2_000, 3_000, 300_000),
    },
    "consumer": {
        "fetch_min_bytes": (1, 200, 5_000),
        "fetch_max_wait_ms": (100, 333, 500, 900),
        "fetch_max_bytes": (1_500_000, 8_000_000, 52_428_800),
        "isolation_level": (0, 1),
        "session_timeout_ms": (10_000, 20_000, 45_000),
        "rebalance_timeout_ms": (50_000, 120_000, 300_000),
        "heartbeat_interval_ms": (500, 1_000, 2_000, 3_000),
        "commit_interval_ms": (500, 1_000, 2_000),
        "metadata_max_age_ms": (2_000, 3_000, 300_000),
        "rack_id": (None, "rack-a", "rack-b"),
    },
}
_DOTTED = {
    "idempotent": "enable.idempotence", "compression": "compression.type", "rack_id": "client.rack",
    "rebalance_timeout_ms": "max.poll.interval.ms", "commit_interval_ms": "auto.commit.interval.ms",
}  # fmt: skip
NAMES: Mapping[str, Mapping[str, str]] = {
    "librdkafka": {
        **_DOTTED,
        "fetch_max_wait_ms": "fetch.wait.max.ms",
        "metadata_max_age_ms": "topic.metadata.refresh.interval.ms",
    },
    "java": _DOTTED,
    "kafka-python": {
        **{name: dotted.replace(".", "_") for name, dotted in _DOTTED.items()},
        "rebalance_timeout_ms": "max_poll_interval_ms",
    },
    "aiokafka": {
        **{name: dotted.replace(".", "_") for name, dotted in _DOTTED.items()},
        "rebalance_timeout_ms": "rebalance_timeout_ms",
    },
}
_LEVELS = ("read_uncommitted", "read_committed")


def draw(number: int, chance: random.Random) -> dict[str, Any]:
    """A client: its library, what it does, its settings as the table names them."""
    library, role = LIBRARIES[number % len(LIBRARIES)], ("producer", "consumer")[number // 4 % 2]
    chosen = {name: chance.choice(values) for name, values in CHOICES[role].items()}
    if chosen.get("idempotent"):
        chosen["acks"] = -1
    if library == "aiokafka":
        chosen.pop("rack_id", None)
    if library in ("kafka-python", "aiokafka") and chosen.get("compression") in ("snappy", "lz4", "zstd"):
        chosen["compression"] = "gzip"  # the others need packages
    return {"id": f"client-{number:03}", "library": library, "role": role, "settings": chosen}


def given(client: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as the library takes them."""
    library, names = client["library"], NAMES[client["library"]]
    separator = "." if library in ("librdkafka", "java") else "_"
    found = {}
    words = {"isolation_level": _LEVELS.__getitem__, "acks": lambda acks: "all" if acks == -1 else acks}
    if separator == "_":
        words["compression"] = lambda codec: None if codec == "none" else codec
    for name, value in client["settings"].items():
        word = words[name](value) if name in words else value
        if word is not None:
            found[names.get(name, name.replace("_", separator))] = word
    return found


def topic_of(client: Mapping[str, Any]) -> str:
    """Where it produces: nobody reads what some of the readers cannot decompress."""
    return "orders" if client["settings"]["compression"] in ("none", "gzip") else "parcels"


def work(client: Mapping[str, Any], bootstrap: str) -> None:
    """One client in Python, in a process of its own."""
    chance = random.Random(client["id"])
    play = {"librdkafka": _rdkafka, "kafka-python": _kafka_python, "aiokafka": _aiokafka}[client["library"]]
    play(client, {"client_id": client["id"], **given(client)}, bootstrap, chance)


def _until() -> Iterator[None]:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        yield


def _rdkafka(client: Mapping[str, Any], settings: dict[str, Any], bootstrap: str, chance: Any) -> None:
    from confluent_kafka import Consumer, Producer

    settings |= {"bootstrap.servers": bootstrap, "client.id": settings.pop("client_id")}
    if client["role"] == "producer":
        producer = Producer(settings)
        for _ in _until():
            producer.produce(topic_of(client), b"x" * 100)
            producer.poll(chance.uniform(0.02, 0.2))
        producer.flush(5)
        return
    consumer = Consumer({**settings, "group.id": client["id"], "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    for _ in _until():
        consumer.poll(0.1)
    consumer.close()


def _kafka_python(client: Mapping[str, Any], settings: dict[str, Any], bootstrap: str, chance: Any) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    settings["bootstrap_servers"] = bootstrap
    if client["role"] == "producer":
        producer = KafkaProducer(**settings)
        for _ in _until():
            producer.send("orders", b"x" * 100)
            time.sleep(chance.uniform(0.02, 0.2))
        producer.close(timeout=5)
        return
    consumer = KafkaConsumer("orders", group_id=client["id"], auto_offset_reset="earliest", **settings)
    for _ in _until():
        consumer.poll(100)
    consumer.close()


def _aiokafka(client: Mapping[str, Any], settings: dict[str, Any], bootstrap: str, chance: Any) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def play() -> None:
        settings["bootstrap_servers"] = bootstrap
        if client["role"] == "producer":
            async with AIOKafkaProducer(**settings) as producer:
                for _ in _until():
                    await producer.send("orders", b"x" * 100)
                    await asyncio.sleep(chance.uniform(0.02, 0.2))
            return
        fixed = {"group_id": client["id"], "auto_offset_reset": "earliest"}
        async with AIOKafkaConsumer("orders", **fixed, **settings) as consumer:
            for _ in _until():
                await consumer.getmany(timeout_ms=100)

    asyncio.run(play())


def command(client: Mapping[str, Any], bootstrap: str) -> list[str]:
    """What starts a client."""
    if client["library"] != "java":
        return [sys.executable, "-m", "tests.broker.configured", "play", json.dumps(client), bootstrap]
    settings = {"client.id": client["id"], "enable.metrics.push": "false", **given(client)}
    if client["role"] == "producer":
        play = ["flood", f"x.count={SECONDS * 10}", "x.every_ms=90", f"x.topic={topic_of(client)}"]
    else:
        play = ["consume", f"x.seconds={SECONDS}"]
        settings["group.id"] = client["id"]
    told = [
        f"{key}={str(value).lower() if value is True or value is False else value}"
        for key, value in settings.items()
    ]
    return ["java", *HEAP, "-cp", compiled("Work", NEWEST), "Work", bootstrap, *play, *told]


def record(clients: list[dict[str, Any]], folder: Path) -> list[Path]:
    """Plays all of them; captures of TOGETHER clients each."""
    found = []
    stage = Stage(folder / "servers", folder / "capture.pcap")
    stage.folder.mkdir()
    with stage.brokers(NEWEST, 1, internal=True, lifetime_s=3600) as cluster:
        stage.office("create", "orders:1", "parcels:1")
        for number in range(0, len(clients), TOGETHER):
            stage.capture = folder / f"{number:02}.pcap"
            with stage.recording():
                running = [
                    subprocess.Popen(
                        command(each, cluster.bootstrap),
                        stdout=subprocess.DEVNULL,
                        stderr=(folder / f"{each['id']}.log").open("wb"),
                    )
                    for each in clients[number : number + TOGETHER]
                ]
                for process in running:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(SECONDS + 40)
                    process.kill()
            found.append(stage.capture)
    return found


def compare(clients: list[dict[str, Any]], captures: list[Path]) -> Iterator[tuple[str, str, str, str]]:
    """Library, setting, `right`, `null` or `wrong`, and what was told."""
    import kwsniff

    rows = [row for path in captures for row in kwsniff.analyze(path, tables="clients").clients.to_pylist()]
    told = {row["client_id"]: row for row in rows}
    for client in clients:
        row = told.get(client["id"])
        if row is None:
            yield client["library"], "(client)", "null", client["id"]
            continue
        for name, value in {"role": client["role"], **client["settings"]}.items():
            seen = row[name]
            near = name in INTERVALS and None not in (seen, value) and abs(seen - value) <= max(value / 10, 2)
            kind = "right" if near or seen == value else "null" if seen is None else "wrong"
            yield client["library"], name, kind, f"{client['id']} {name}: had {value}, told {seen}"


def main() -> None:
    if sys.argv[1:2] == ["play"]:
        work(json.loads(sys.argv[2]), sys.argv[3])
        return
    number, seed = (int(each) for each in (*sys.argv[1:3], *("100", "1")[len(sys.argv) - 1 :]))
    chance = random.Random(seed)
    clients = [draw(place, chance) for place in range(number)]
    with tempfile.TemporaryDirectory(prefix="kwsniff-") as folder:
        found = list(compare(clients, record(clients, Path(folder))))
        lines = [f"{name}\t{_share(found, name)}" for name in dict.fromkeys(each[1] for each in found)]
        lines += [f"wrong\t{library}\t{what}" for library, _, kind, what in found if kind == "wrong"]
        sys.stdout.write("\n".join([*lines, f"all\t{_share(found)}", ""]))


def _share(found: list[tuple[str, str, str, str]], setting: str = "") -> str:
    told = Counter(kind for _, name, kind, _ in found if setting in ("", name))
    return "\t".join(f"{kind}={told[kind]}" for kind in ("right", "null", "wrong"))


if __name__ == "__main__":
    main()
