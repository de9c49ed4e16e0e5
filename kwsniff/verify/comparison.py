"""kwsniff's calls beside what tshark says of the same capture: message by message, with frames.

A message is the same where packet, direction and correlation id are; one that ends in another packet for one
of them is found by connection, direction, correlation id and size. What only one of them saw is explained by
what the connection was, where that explains it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kwsniff.analysis.analyze import analyze
from kwsniff.findings.api_purposes import names_of
from kwsniff.findings.views import open_folder
from kwsniff.temporary import temporary_folder
from kwsniff.verify.tshark import TsharkMessage, messages

if TYPE_CHECKING:
    import duckdb

_BATCH: Final = 10_000
_MOST: Final = 100_000
"""Messages of one side alone that are looked at one by one."""

REASONS: Final[Mapping[str, str]] = {
    "inside_tls": "inside TLS, for which this tshark was given no keys",
    "in_tunnel": "inside a tunnel",
    "behind_proxy": "behind the greeting of a proxy",
    "bytes_missing": "on connections of which the capture lacks bytes",
    "began_earlier": "on connections that are older than the capture",
    "sent_again": "on connections with packets out of order, sent again or captured twice",
    "not_kafka": "on connections that carry something else, for kwsniff",
    "sasl_tokens": "on connections with bare SASL tokens, which have no header",
    "reused": "on connections whose addresses and ports were used more than once",
}
"""Why one of them sees a message that the other does not: what is known of the connection."""

_ERRORS_UNCLEAR: Final = "is_group_wait"
"""The purpose of APIs whose error codes tshark 4.0 reads from another place."""
_LAST: Final = "last packet"


class Message(NamedTuple):
    """One of ours. ``peer_frame``: where the request of a response ended."""

    frame: int
    to_broker: bool
    correlation_id: int | None
    connection_id: int
    call_id: int
    api_key: int | None
    api_name: str | None
    api_version: int | None
    client_id: str | None
    size: int | None
    peer_frame: int | None
    error_code: int | None


@dataclass(frozen=True, slots=True)
class Difference:
    """Something on which they do not agree."""

    frame: int
    to_broker: bool
    call_id: int | None
    what: str
    kwsniff: Any
    tshark: Any


@dataclass(slots=True)
class Agreement:
    """What a comparison found."""

    both: Counter[str] = field(default_factory=Counter)
    """Requests and responses that both saw."""
    compared: Counter[str] = field(default_factory=Counter)
    """Facts that were compared and are the same, by name."""
    undecoded: Counter[tuple[str, int | None, str]] = field(default_factory=Counter)
    """API, version, what tshark says of them: messages of which it read the header alone."""
    elsewhere: Counter[str] = field(default_factory=Counter)
    """Reason -> messages that are complete with another packet for tshark."""
    paired_otherwise: int = 0
    """Responses whose correlation id the connection had used before: tshark takes the first request that had
    it."""
    ours_alone: Counter[str] = field(default_factory=Counter)
    theirs_alone: Counter[str] = field(default_factory=Counter)
    """Reason -> messages."""
    differences: list[Difference] = field(default_factory=list)
    left_out: int = 0
    """Differences beyond those that are listed."""
    captures: Sequence[Mapping[str, Any]] = ()
    """What was read, as an analysis has it in its summary: whether to its end, among others."""
    absent_ports: Sequence[int] = ()
    """Those of `ports` that no connection has."""

    @property
    def agree(self) -> bool:
        """Whether nothing is unexplained."""
        return not self.differences and not self.left_out

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "agree": self.agree,
            "both": dict(self.both),
            "compared": dict(self.compared),
            "header_alone": [
                {"api_name": api, "api_version": version, "why": why, "messages": number}
                for (api, version, why), number in self.undecoded.most_common()
            ],
            "complete_elsewhere": dict(self.elsewhere),
            "paired_otherwise": self.paired_otherwise,
            "only_kwsniff": dict(self.ours_alone),
            "only_tshark": dict(self.theirs_alone),
            "differences": [
                {
                    "frame": each.frame,
                    "message": "request" if each.to_broker else "response",
                    "call_id": each.call_id,
                    "what": each.what,
                    "kwsniff": each.kwsniff,
                    "tshark": each.tshark,
                }
                for each in self.differences
            ],
            "differences_not_listed": self.left_out,
        }

    def differ(self, difference: Difference) -> None:
        """One more."""
        if len(self.differences) < _MOST:
            self.differences.append(difference)
        else:
            self.left_out += 1


def compare_with_tshark(capture: str, **options: Any) -> Agreement:
    """Reads a capture with both. `options`: as `analyze` takes them.

    Raises UsageError where tshark or pyshark is missing, CaptureError for what cannot be read.
    """
    with temporary_folder() as folder:
        tables = ("api_calls", "connections", "anomalies", "error_codes", "tcp_events")
        read = analyze(capture, output=folder, tables=tables, **options).summary
        with open_folder(folder) as database:
            ports = [row[0] for row in database.execute(_PORTS).fetchall()]
            comparison = _Comparison()
            comparison.agreement.captures = read["captures"]
            comparison.agreement.absent_ports = read["absent_ports"]
            comparison.pair(_ours(database), messages(capture, ports) if ports else iter(()))
            comparison.explain(database)
            return comparison.agreement


_PORTS: Final = "select distinct broker_port from connections where calls > 0 order by 1"
_OURS: Final = """
    select request_end_frame, true, correlation_id, connection_id, call_id, api_key, api_name, api_version,
        client_id, request_bytes, null, null
    from api_calls where request_end_frame is not null
    union all
    select response_end_frame, false, correlation_id, connection_id, call_id, api_key, api_name, api_version,
        null, response_bytes, request_end_frame, error_code
    from api_calls where response_end_frame is not null
    order by 1, 5, 2
"""
_CONNECTION: Final = """
    select client_address, client_port, broker_address, broker_port, protocol, handshake, encapsulation,
        proxied_address, sasl_mechanism, tls_version,
        client_missing_bytes > 0 or broker_missing_bytes > 0 or exists (from anomalies a
            where a.connection_id = c.connection_id
            and a.name in ('packet_cut', 'segment_lost', 'segment_not_captured')) as lossy,
        duplicate_packets > 0 or client_out_of_order > 0 or broker_out_of_order > 0
            or exists (from tcp_events e where e.kind = 'retransmission'
                and e.connection_id = c.connection_id) as again
    from connections c where {0} limit 10
"""


_USED_BEFORE: Final = """
    select 1 from api_calls where connection_id = $1 and correlation_id = $2 and request_end_frame = $3
"""


def _ours(database: "duckdb.DuckDBPyConnection") -> Iterator[Message]:
    found = database.execute(_OURS)
    while rows := found.fetchmany(_BATCH):
        yield from (Message(*row) for row in rows)


class _Comparison:
    def __init__(self) -> None:
        self.agreement = Agreement()
        self._ours: list[Message] = []
        self._theirs: list[TsharkMessage] = []
        self._paired: list[tuple[Message, TsharkMessage]] = []

    def pair(self, ours: Iterable[Message], theirs: Iterable[Sequence[TsharkMessage]]) -> None:
        """Both in the order of their packets."""
        mine = groupby(ours, key=lambda each: each.frame)
        frame, group = _next(mine)
        for seen in theirs:
            at = seen[0].frame if seen else 0
            while frame is not None and frame < at:
                self._keep(group, ())
                frame, group = _next(mine)
            if frame == at:
                self._match(group, seen)
                frame, group = _next(mine)
            else:
                self._keep((), seen)
        while frame is not None:
            self._keep(group, ())
            frame, group = _next(mine)

    def _match(self, ours: Sequence[Message], theirs: Sequence[TsharkMessage]) -> None:
        left = [*theirs]
        alone = []
        for message in ours:
            found = next((seen for seen in left if _is_same(message, seen)), None)
            if found is None:
                alone.append(message)
            else:
                left.remove(found)
                self._compare(message, found)
        self._keep(alone, left)

    def _keep(self, ours: Iterable[Message], theirs: Iterable[TsharkMessage]) -> None:
        for message in ours:
            if len(self._ours) < _MOST:
                self._ours.append(message)
            else:
                self.agreement.left_out += 1
        for seen in theirs:
            if len(self._theirs) < _MOST:
                self._theirs.append(seen)
            else:
                self.agreement.left_out += 1

    def _compare(self, message: Message, seen: TsharkMessage, *, any_packet: bool = False) -> None:
        told = self.agreement
        told.both["requests" if message.to_broker else "responses"] += 1
        if seen.undecoded:
            told.undecoded[message.api_name or "", message.api_version, seen.undecoded] += 1
        if not message.to_broker and seen.request_frame not in (None, message.peer_frame):
            self._paired.append((message, seen))
            return
        self._differ(message, seen, any_packet=any_packet)

    def _differ(self, message: Message, seen: TsharkMessage, *, any_packet: bool = False) -> None:
        told = self.agreement
        for what, ours, theirs in _facts(message, seen):
            if any_packet and what == _LAST:
                continue
            if ours == theirs:
                told.compared[what] += 1
            else:
                told.differ(Difference(message.frame, message.to_broker, message.call_id, what, ours, theirs))

    def explain(self, database: "duckdb.DuckDBPyConnection") -> None:
        """What only one of them saw."""
        connections = _Connections(database)
        waiting: dict[tuple[Any, ...], list[TsharkMessage]] = defaultdict(list)
        for seen in self._theirs:
            waiting[seen.to_broker, seen.correlation_id, seen.size].append(seen)
        for message in self._ours:
            facts = connections.find_connection(message.connection_id)
            place = (
                message.to_broker,
                message.correlation_id,
                None if message.size is None else message.size - 4,
            )
            ends = _ends(facts, to_broker=message.to_broker)
            found = next((each for each in waiting[place] if (each.sender, each.receiver) == ends), None)
            if found is not None:
                waiting[place].remove(found)
                self._theirs.remove(found)
                reason = _why([facts])
                if reason:
                    self.agreement.elsewhere[reason] += 1
                self._compare(message, found, any_packet=reason is not None)
            elif reason := _why([facts]):
                self.agreement.ours_alone[reason] += 1
            else:
                what = "message" if message.api_name is None else message.api_name
                self.agreement.differ(
                    Difference(
                        message.frame, message.to_broker, message.call_id, "only kwsniff sees it", what, None
                    )
                )
        for message, seen in self._paired:
            if connections.used_before(message, seen):
                self.agreement.paired_otherwise += 1
            else:
                self._differ(message, seen)
        for seen in self._theirs:
            if reason := connections.reason(seen):
                self.agreement.theirs_alone[reason] += 1
            else:
                self.agreement.differ(
                    Difference(
                        seen.frame, seen.to_broker, None, "only tshark sees it", None, f"API {seen.api_key}"
                    )
                )


def _next(groups: Iterator[tuple[int, Iterator[Message]]]) -> tuple[int | None, list[Message]]:
    frame, group = next(groups, (None, iter(())))
    return frame, [*group]


def _is_same(message: Message, seen: TsharkMessage) -> bool:
    return (message.to_broker, message.correlation_id) == (seen.to_broker, seen.correlation_id)


def _facts(message: Message, seen: TsharkMessage) -> Iterator[tuple[str, Any, Any]]:
    """Name, ours and theirs of what both of them tell."""
    if seen.size is not None and message.size is not None:
        yield "size", message.size, seen.size + 4
    if message.frame != seen.frame:
        yield _LAST, message.frame, seen.frame
    if message.to_broker or seen.api_key is not None:
        yield "API", message.api_key, seen.api_key
        yield "version", message.api_version, seen.api_version
    if message.to_broker:
        yield "client id", message.client_id, seen.client_id
        return
    if seen.request_frame is not None:
        yield "packet of the request", message.peer_frame, seen.request_frame
    if not seen.undecoded and seen.errors is not None and message.api_name not in names_of(_ERRORS_UNCLEAR):
        yield "first error", message.error_code or None, next(iter(seen.errors), None)


def _ends(facts: Mapping[str, Any], *, to_broker: bool) -> tuple[tuple[str, int], tuple[str, int]]:
    client = facts["client_address"], facts["client_port"]
    broker = facts["broker_address"], facts["broker_port"]
    return (client, broker) if to_broker else (broker, client)


def _why(facts: Sequence[Mapping[str, Any]]) -> str | None:
    """The first reason that one of the connections gives."""
    for name, holds in _SIGNS.items():
        if any(holds(each) for each in facts):
            return name
    return "reused" if len(facts) > 1 else None


_SIGNS: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    "inside_tls": lambda c: c["tls_version"] is not None or c["protocol"] == "tls",
    "in_tunnel": lambda c: c["encapsulation"] is not None,
    "behind_proxy": lambda c: c["proxied_address"] is not None,
    "not_kafka": lambda c: c["protocol"] != "kafka",
    "bytes_missing": lambda c: c["lossy"],
    "began_earlier": lambda c: not c["handshake"],
    "sent_again": lambda c: c["again"],
    "sasl_tokens": lambda c: c["sasl_mechanism"] is not None,
}


class _Connections:
    def __init__(self, database: "duckdb.DuckDBPyConnection") -> None:
        self._database = database
        self._known: dict[int, Mapping[str, Any]] = {}

    def find_connection(self, connection_id: int) -> Mapping[str, Any]:
        if connection_id not in self._known:
            (found,) = self._ask("c.connection_id = $1", [connection_id])
            self._known[connection_id] = found
        return self._known[connection_id]

    def reason(self, seen: TsharkMessage) -> str | None:
        """Why only tshark has a message."""
        ends = [*seen.sender, *seen.receiver] if seen.to_broker else [*seen.receiver, *seen.sender]
        facts = self._ask(
            "c.client_address = $1 and c.client_port = $2 and c.broker_address = $3 and c.broker_port = $4",
            ends,
        )
        if not facts:
            return "in_tunnel"
        if seen.retransmitted:
            return "sent_again"
        return _why(facts)

    def used_before(self, message: Message, seen: TsharkMessage) -> bool:
        """Whether the request that tshark names had the same correlation id on the same connection."""
        values = [message.connection_id, message.correlation_id, seen.request_frame]
        return bool(self._database.execute(_USED_BEFORE, values).fetchall())

    def _ask(self, condition: str, values: Sequence[Any]) -> list[Mapping[str, Any]]:
        found = self._database.execute(_CONNECTION.format(condition), values)
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
