"""Random filters, each with the SQL that asks the same: written by this module, not by kwsniff's parser."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

NUMBERS = (
    "call_id", "connection_id", "client_port", "broker_port", "api_key", "api_version", "correlation_id",
    "error_code",
    "error_count", "acks", "partition_count", "record_count", "producer_id", "session_id", "generation",
)  # fmt: skip
DURATIONS = {"latency_ns": 1, "throttle_time_ms": 10**6, "max_wait_ms": 10**6, "timeout_ms": 10**6}
SIZES = ("request_bytes", "response_bytes", "record_bytes", "min_bytes")
TEXTS = (
    "client_id", "client_address", "api_name", "status", "reason", "caller", "group_id",
    "client_software_name", "member_id",
    "protocol_type", "error_name", "principal", "transactional_id", "sasl_mechanism",
)  # fmt: skip
CLOSED = ("api_name", "status", "reason", "caller", "error_name")
TIMES = ("request_time", "request_end_time", "response_time", "response_end_time")
ORDERS = ("=", "!=", "<", "<=", ">", ">=")
_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_SIZES = {"": 1, "B": 1, "kB": 10**3, "KiB": 1024, "MB": 10**6}


@dataclass(frozen=True)
class Pair:
    """The same question twice."""

    filter: str
    sql: str


class Writer:
    """`rows`: of api_calls, whose values are compared with."""

    def __init__(self, seed: int, rows: Sequence[dict[str, Any]]) -> None:
        self.dice = random.Random(seed)
        self.rows = rows
        self.first = min(row["request_time"] for row in rows if row["request_time"])

    def pair(self, depth: int = 3) -> Pair:
        kind = self.dice.random()
        if depth == 0 or kind < 0.35:
            return self.condition()
        if kind < 0.5:
            part = self.pair(depth - 1)
            return Pair(f"not ({part.filter})", f"not ({part.sql})")
        parts = [self.pair(depth - 1) for _ in range(self.dice.choice((2, 2, 3)))]
        word = self.dice.choice((" and ", " or ", " AND "))
        return Pair(
            word.join(f"({part.filter})" for part in parts), word.join(f"({part.sql})" for part in parts)
        )

    def condition(self) -> Pair:
        write = self.dice.choice(
            (self.number, self.duration, self.size, self.text, self.text, self.time, self.topics,
            self.errors, self.null,
             self.flag)
        )  # fmt: skip
        return write()

    def value(self, column: str, otherwise: Any) -> Any:
        """One that a row has, mostly."""
        found = self.dice.choice(self.rows)[column]
        return otherwise if found is None or self.dice.random() < 0.1 else found

    def number(self) -> Pair:
        column = self.dice.choice(NUMBERS)
        if self.dice.random() < 0.3:
            return self.listed(column, [str(self.value(column, 7)) for _ in range(self.dice.randint(1, 9))])
        order, value = self.dice.choice(ORDERS), f"{self.value(column, 3)}{self.dice.choice(('', '', '.5'))}"
        return Pair(f"{column}{order}{value}", f"{column} {order} {value}")

    def listed(self, column: str, values: list[str]) -> Pair:
        word = self.dice.choice(("in", "not in"))
        text = f"{column} {word} ({', '.join(values)})"
        return Pair(text, text)

    def duration(self) -> Pair:
        column = self.dice.choice([*DURATIONS])
        unit = self.dice.choice([*_UNITS])
        nanoseconds = self.value(column, 1000) * DURATIONS[column]
        number = nanoseconds // _UNITS[unit] + self.dice.choice((0, 0, 1))
        order = self.dice.choice(ORDERS)
        name = column.removesuffix("_ns").removesuffix("_ms")
        value = f"{number}{self.dice.choice(('', ' '))}{unit}"
        return Pair(
            f"{name} {order} {value}",
            f"{column}::hugeint * {DURATIONS[column]} {order} {number * _UNITS[unit]}::hugeint",
        )

    def size(self) -> Pair:
        column, unit, order = self.dice.choice(SIZES), self.dice.choice([*_SIZES]), self.dice.choice(ORDERS)
        number = self.value(column, 100) // _SIZES[unit]
        return Pair(f"{column} {order} {number}{unit}", f"{column} {order} {number * _SIZES[unit]}")

    def text(self) -> Pair:
        column = self.dice.choice(TEXTS)
        value = str(self.value(column, "Fetch" if column == "api_name" else "answered"))
        if column in CLOSED and value == "answered":
            value = {"status": "answered", "reason": "open_at_end", "caller": "client"}.get(column, "Fetch")
            if column == "error_name":
                value = "NOT_LEADER_OR_FOLLOWER"
        kind = self.dice.random()
        if kind < 0.25:
            return self.listed(column, [f"'{value}'"])
        if kind < 0.5:
            pattern = self.dice.choice(
                (f"{value[:3]}%", f"%{value[1:3]}%", f"_{value[1:]}", "%", value, f"%{value[-1:]}")
            )
            word = self.dice.choice(("like", "not like"))
            return Pair(f"{column} {word} '{pattern}'", f"{column} {word} '{pattern}'")
        if kind < 0.7:
            part, word = value[:4].upper(), self.dice.choice(("~", "!~"))
            sql = f"contains(lower({column}), lower('{part}'))"
            return Pair(f"{column} {word} '{part}'", sql if word == "~" else f"not {sql}")
        order = self.dice.choice(ORDERS)
        written = value if value.replace("-", "").replace("_", "").isalnum() and kind > 0.85 else f"'{value}'"
        return Pair(f"{column} {order} {written}", f"{column} {order} '{value}'")

    def time(self) -> Pair:
        column, order = self.dice.choice(TIMES), self.dice.choice(ORDERS)
        value = self.value(column, self.first)
        if self.dice.random() < 0.4:
            span = (value - self.first).total_seconds()
            if span >= 0:
                microseconds = round(span * 1e6)
                return Pair(
                    f"{column} {order} +{microseconds}us",
                    f"{column} {order} (select min(first_time) from captures) "  # noqa: S608
                    f"+ to_microseconds({microseconds})",
                )
        text = value.strftime("%Y-%m-%d %H:%M:%S.%f")
        return Pair(f"{column} {order} '{text}'", f"{column} {order} '{text}+00'::timestamptz")

    def topics(self) -> Pair:
        named = [topic for row in self.rows for topic in row["topics"] or ()] or ["orders"]
        values = [self.dice.choice([*named, "nowhere"]) for _ in range(self.dice.randint(1, 3))]
        listed = ", ".join(f"'{value}'" for value in values)
        contains = f"list_has_any(topics, [{listed}])"
        if len(values) == 1:
            order = self.dice.choice(("=", "!="))
            return Pair(f"topic {order} {listed}", contains if order == "=" else f"not {contains}")
        word = self.dice.choice(("in", "not in"))
        return Pair(f"topics {word} ({listed})", contains if word == "in" else f"not {contains}")

    def errors(self) -> Pair:
        codes = [self.dice.choice((0, 3, 6, 16, 25, 27, 79, 36, 7)) for _ in range(self.dice.randint(1, 3))]
        listed = ", ".join(map(str, codes))
        of_row = f"call_id in (select call_id from error_codes where error_code in ({listed}))"  # noqa: S608
        none = "or error_count = 0" if 0 in codes else ""
        sql = f"case when error_count is null then null else ({of_row} {none}) end"
        word = self.dice.choice(("in", "not in"))
        return Pair(f"error {word} ({listed})", sql if word == "in" else f"not ({sql})")

    def null(self) -> Pair:
        column = self.dice.choice((*NUMBERS, *DURATIONS, *SIZES, *TEXTS, *TIMES, "topics", "committed"))
        text = f"{column} is {self.dice.choice(('', 'not '))}null"
        return Pair(text, text)

    def flag(self) -> Pair:
        text = self.dice.choice(("committed", "committed = true", "committed = false", "committed != true"))
        return Pair(text, text)
