"""What brokers counted of their requests, told by JMX, against the tables of `kwsniff live`.

A broker is asked until no request came to its end while it was; of the tables, the calls count that had
ended by then. So both can be equal to the last call, although brokers never stop talking to each other.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from tests.broker.artifacts import compiled

PATIENCE_S = 120
MOST_SHOWN = 20
# Kafka's parts of TotalTimeMs, and what has a column of its own here.
PARTS = (
    "TotalTimeMs", "RequestQueueTimeMs", "LocalTimeMs", "RemoteTimeMs", "ThrottleTimeMs",
    "ResponseQueueTimeMs", "ResponseSendTimeMs",
)  # fmt: skip
# Kafka counts these under a name of its own, and under the API's as well.
NAMES_TWICE = ("FetchConsumer", "FetchFollower")


@dataclass(frozen=True, slots=True)
class Counted:
    """One broker. `until`: microseconds since the epoch, in the middle of a moment without a call's end."""

    ports: tuple[int, ...]
    until: int
    requests: dict[tuple[str, int], int] = field(default_factory=dict)
    """API, version -> requests."""
    errors: dict[tuple[str, str], int] = field(default_factory=dict)
    """API, error -> errors that answers named, without NONE."""
    means: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)
    """API, part of the time -> how many, and the mean in milliseconds."""


def counted(broker_folder: Path, version: str, ports: Iterable[int]) -> Counted:
    """Asks the broker whose server.properties lies in the folder."""
    command = ["java", "-Xmx64m", "-cp", compiled("Counters", version), "Counters", f"{broker_folder}/"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode:
        raise RuntimeError(f"the broker in {broker_folder} told nothing: {done.stderr[-1000:]}")
    return parsed(done.stdout.splitlines(), tuple(ports))


def parsed(lines: list[str], ports: tuple[int, ...]) -> Counted:
    """What java/Counters.java writes."""
    _, begin, end = lines[0].split("\t")
    found = Counted(ports, (int(begin) + int(end)) // 2)
    times: dict[tuple[str, str], dict[str, float]] = {}
    for line in lines[1:]:
        name, api, detail, attribute, value = line.split("\t")
        if api in NAMES_TWICE and name not in PARTS:
            continue
        if name == "RequestsPerSec":
            found.requests[api, int(detail)] = int(value)
        elif name == "ErrorsPerSec" and detail != "NONE":
            found.errors[api, detail] = int(value)
        elif name in PARTS:
            times.setdefault((api, name), {})[attribute] = float(value)
    found.means.update({key: (int(each["Count"]), each["Mean"]) for key, each in times.items()})
    return found


def request_differences(tables: Path, brokers: Iterable[Counted]) -> list[str]:
    """A line for each port's API and version of which the two know different numbers. A broker may count a
    request, too, whose client was gone before its answer (SocketServer.processDisconnected)."""
    query = """select api_name, api_version,
            count(*) filter (status = 'answered' and epoch_us(response_end_time) <= $until),
            count(*) filter (status = 'unanswered' and reason in ('connection_reset', 'connection_closed'))
        from calls where broker_port in (select unnest($ports)) group by all"""
    lines = []
    for broker in brokers:
        ours, given_up = dict[Any, int](), dict[Any, int]()
        for api, version, answered, gone in _rows(tables, query, broker):
            ours |= {(api, version): answered} if answered else {}
            given_up |= {(api, version): gone} if gone else {}
        lines += unlike(f"requests at {broker.ports[0]}", ours, broker.requests, given_up)
    return lines


def error_differences(tables: Path, brokers: Iterable[Counted]) -> list[str]:
    """The same for error codes by API."""
    query = """select errors.api_name, errors.error_name, count(*) from errors join calls using (call_id)
        where calls.broker_port in (select unnest($ports)) and calls.status = 'answered'
        and epoch_us(calls.response_end_time) <= $until group by all"""
    lines = []
    for broker in brokers:
        ours = {(api, error): number for api, error, number in _rows(tables, query, broker)}
        lines += unlike(f"errors at {broker.ports[0]}", ours, broker.errors)
    return lines


def latencies(tables: Path, brokers: Iterable[Counted]) -> list[str]:
    """A row per API, busiest first: means over all brokers in milliseconds, ours beside Kafka's."""
    brokers = list(brokers)
    query = """select case when calls.api_name = 'Fetch' and caller = 'replica' then 'FetchFollower'
            when calls.api_name = 'Fetch' and caller = 'client' then 'FetchConsumer'
            else calls.api_name end,
        count(*), sum(total_ns - queue_wait_ns - request_transmission_ns) / 1e6,
        sum(broker_ns) / 1e6, sum(deliberate_wait_ns) / 1e6
        from calls join times using (call_id)
        where calls.broker_port in (select unnest($ports)) and epoch_us(calls.response_end_time) <= $until
        group by all"""
    numbers: Counter[str] = Counter()
    ours: dict[str, list[float]] = {}
    for broker in brokers:
        for api, number, *sums in _rows(tables, query, broker):
            numbers[api] += number
            ours[api] = [one + other for one, other in zip(ours.get(api, [0.0] * 3), sums, strict=True)]
    lines = [
        "| API | calls | TotalTimeMs | without line and sending | LocalTimeMs + queues | broker"
        " | RemoteTimeMs | deliberate wait |",
        f"|{'---|' * 8}",
    ]
    for api, number in numbers.most_common():
        means = {part: _mean(brokers, api, part) for part in PARTS}
        if means["TotalTimeMs"] is None:
            continue
        total, remote = means["TotalTimeMs"], means["RemoteTimeMs"] or 0.0
        mine = [each / number for each in ours[api]]
        cells = (total, mine[0], total - remote, mine[1], remote, mine[2])
        lines.append(f"| {api} | {number:,} | {' | '.join(f'{each:,.3f}' for each in cells)} |")
    return lines


def _mean(brokers: Iterable[Counted], api: str, part: str) -> float | None:
    found = [broker.means[api, part] for broker in brokers if (api, part) in broker.means]
    number = sum(each for each, _ in found)
    return sum(each * mean for each, mean in found) / number if number else None


def unlike(
    what: str, ours: dict[Any, int], theirs: dict[Any, int], given_up: dict[Any, int] | None = None
) -> list[str]:
    """Controllers count what an envelope of a broker holds, and not the envelope. `given_up`: how many calls
    had no answer to wait for."""
    for key, number in (given_up or {}).items():
        if 0 < theirs.get(key, 0) - ours.get(key, 0) <= number:
            ours = ours | {key: theirs[key]}
    envelopes = sum(number for key, number in ours.items() if key[0] == "Envelope")
    more = {key: theirs[key] - ours.get(key, 0) for key in theirs if theirs[key] > ours.get(key, 0)}
    if envelopes and sum(more.values()) == envelopes:
        ours = {key: number for key, number in ours.items() if key[0] != "Envelope"}
        ours |= {key: theirs[key] for key in more}
    return [
        f"{what}: {' '.join(map(str, key))}: tables {ours.get(key, 0):,}, JMX {theirs.get(key, 0):,}"
        for key in sorted(ours.keys() | theirs.keys(), key=str)
        if ours.get(key, 0) != theirs.get(key, 0)
    ][:MOST_SHOWN]


def _rows(tables: Path, query: str, broker: Counted) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for view, name in (("calls", "api_calls"), ("errors", "error_codes"), ("times", "latencies")):
            connection.execute(f"create view {view} as from '{tables / name}/*.parquet'")
        connection.execute("set timezone = 'UTC'")
        return connection.execute(query, {"ports": list(broker.ports), "until": broker.until}).fetchall()
