"""The summary of an analysis on the screen: as wide as the terminal; in a pipe, as wide as needed."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from kwsniff.cli.error_tables import failure_grids
from kwsniff.cli.summary.captures import capture_lines
from kwsniff.cli.summary.connections import connections_line, encrypted_lines, twins_line
from kwsniff.cli.summary.delivery_times import deliveries_grid
from kwsniff.cli.summary.findings import findings_part, reason_of_waits
from kwsniff.cli.summary.places import place_lines
from kwsniff.cli.text_tables import Grid, Prose, fit, plain, wrap
from kwsniff.tables.enums import WORDS
from kwsniff.tables.servers import name_servers
from kwsniff.texts import clean, in_bytes, in_percent, in_time, plural
from kwsniff.zones import UTC_ZONE, Zone

Facts = Mapping[str, Any]
_SLOWEST = 3  # rows per kind of thing
_SLOW = {
    "apis": ("API", "api_name"),
    "clients": ("client", "client_id"),
    "topics": ("topic", "topic"),
    "brokers": ("broker", "broker_address"),
}
_PARTS = {
    "request_transmission_ns": "request transmission",
    "network_ns": "network",
    "broker_ns": "broker",
    "response_transmission_ns": "response transmission",
}
_WAITING = {
    "data": "waiting for data",
    "transaction": "waiting for a transaction",
    "group": "waiting for members",
    "replicas": "waiting for replicas",
    "throttle": "waiting for a quota",
    "authentication_delay": "delayed: failed authentication",
}
_IN_LINE = {
    "none": "earlier calls",
    "data": "a fetch waiting for data",
    "transaction": "a fetch waiting for a transaction",
    "group": "a call waiting for members",
    "replicas": "a call waiting for replicas",
    "throttle": "a throttled call",
    "authentication_delay": "a failed authentication",
}
_SURE = 0.75  # share of the connections that must agree on the capture point
_FAR_NS = 10_000_000  # a shorter round trip is not shown


class LeftOut:
    """Marks the place for the names of columns that did not fit in the grids before it."""


Part = str | Prose | Grid | LeftOut


def show_summary(summary: Facts, out: TextIO, *, top: int, zone: Zone = UTC_ZONE) -> None:
    """Writes the summary to `out`, at most `top` rows per list."""
    show_parts(list(summary_parts(summary, top, zone)), out)


def show_parts(parts: Sequence[Part], out: TextIO) -> None:
    """Writes lines and grids: in the width of a terminal or, in a pipe, at full width."""
    if out.isatty():
        _show_rich(parts, out)
    else:
        out.writelines(f"{line}\n" for part in parts for line in _plain(part))


def summary_parts(summary: Facts, top: int, zone: Zone = UTC_ZONE) -> Iterator[Part]:
    """Lines and grids of the summary, in the order they are shown."""
    unread = summary["unread"]
    yield from capture_lines(summary["captures"][: len(summary["captures"]) - len(unread)], top, zone)
    yield from place_lines(summary.get("places") or [], top)
    yield from (f"{clean(each['capture'])}: not read: {clean(each['reason'])}" for each in unread[:top])
    if len(unread) > top:
        yield f"and {plural(len(unread) - top, 'more file')} not read"
    yield connections_line(summary)
    yield from _servers(summary["servers"])
    yield from twins_line(summary["twins"])
    yield from encrypted_lines(summary["tls_not_opened"], summary["unanswered_hellos"], top)
    yield from _network(summary["transport"])
    slowest = list(_slowest(summary["latency"], reason_of_waits(summary.get("findings") or [])))
    if slowest:
        yield Grid(
            "Slowest calls, without deliberate waits (for data, members, quotas)",
            ("what", "name", "calls", "mean", "max", "mostly"),
            slowest,
            ("name", "what", "max", "mostly", "mean"),
        )
    for grid in _grids(summary):
        if grid.rows:
            more = len(grid.rows) - top
            title = f"{grid.title} (first {top} of {len(grid.rows)})" if more > 0 else grid.title
            yield grid._replace(title=title, rows=grid.rows[:top])
    if summary["tables"]:
        rows = sum(summary["rows"].get(name, 0) for name in summary["tables"])
        (folder, *_) = {str(Path(path).parent) for path in summary["tables"].values()}
        yield ""
        tables = plural(len(summary["tables"]), "table")
        yield f"{tables} with {plural(rows, 'row')} written to {clean(folder)}"
    yield LeftOut()
    # Last, because a terminal shows the end of a long output.
    yield from findings_part(summary, top, zone)


def _servers(servers: Sequence[Facts]) -> Iterator[str]:
    """One line on products and releases, where any is known."""
    if known := name_servers((row["product"], row["version_min"], row["version_max"]) for row in servers):
        yield f"servers: {known}"


def _network(transport: Facts) -> Iterator[str]:
    """One line on the network's effects on the calls, if there were any."""
    told = []
    sent = transport["client_bytes"] + transport["broker_bytes"]
    again = transport["client_retransmitted_bytes"] + transport["broker_retransmitted_bytes"]
    if again and sent:
        told.append(f"{in_percent(again, sent)} retransmitted")
    missing = transport["client_missing_bytes"] + transport["broker_missing_bytes"]
    if missing:
        told.append(f"{in_bytes(missing)} missing from the capture")
    told += [
        f"{side} receive window full for {in_time(full)}"
        for side in ("client", "broker")
        if (full := transport[f"{side}_zero_window_ns"])
    ]
    if transport["max_round_trip_ns"] >= _FAR_NS:
        trip = in_time(transport["max_round_trip_ns"])
        told.append(f"highest RTT {trip}, client {transport['farthest_client']}")
    if told:
        yield f"network: {', '.join(told)}"
    if where := _capture_point(transport["capture_points"]):
        yield f"captured {WORDS['capture_point'][where].partition(':')[0]}"


def _capture_point(capture_points: Mapping[str, int]) -> str | None:
    """The capture point, if at least half of the connections show one and nearly all of these agree."""
    word = max(capture_points.keys() - {"unknown"}, key=capture_points.__getitem__, default=None)
    known = sum(capture_points.values()) - capture_points.get("unknown", 0)
    if word is None or 2 * known < sum(capture_points.values()) or capture_points[word] < _SURE * known:
        return None
    return word


def _mostly(most: Facts | None, reason: str) -> str:
    """The largest part of the calls' time. `reason`: the finding that explains their wait in the queue, if
    any."""
    if most is None:
        return ""
    part, wait = most["part"], most["wait"]
    if part == "queue_wait_ns":
        what = f"queued behind {_IN_LINE[wait]}"
        if reason and wait == "none":
            what = f"queued: {reason}"
    elif part == "deliberate_wait_ns":
        what = _WAITING[wait]
    elif most["possible"]:
        what = "broker, or its replicas"
    else:
        what = _PARTS[part]
    possibly = "possibly " if most["possible"] and part == "deliberate_wait_ns" else ""
    return f"{in_percent(most['share'])} {possibly}{what}"


def _slowest(latency: Facts, reason: str) -> Iterator[tuple[str, ...]]:
    for dimension, (what, column) in _SLOW.items():
        everything = sum(item["total_ns"] for item in latency[dimension])
        for item in latency[dimension][:_SLOWEST]:
            why = (
                reason if 2 * item["total_ns"] >= everything else ""
            )  # other calls may have had another cause
            name = clean(str(item[column])) if item[column] is not None else "(none)"
            if dimension == "brokers":
                name = f"{name}:{item['broker_port']}"
            times = in_time(item["mean_active_ns"]), in_time(item["max_active_ns"])
            yield (what, name, f"{item['calls']:,}", *times, _mostly(item["mostly"], why))


def _calls(calls: Sequence[Facts]) -> Grid:
    names = ("api", "version", "calls", "errors", "unanswered", "p50", "p95", "p99", "max")
    rows = [_call_row(item) for item in sorted(calls, key=lambda item: -item["calls"])]
    return Grid(
        "Calls", names, rows, ("api", "version", "calls", "p95", "errors", "max", "unanswered", "p50")
    )


def _grids(summary: Facts) -> Iterator[Grid]:
    errors = [
        (f"{item['count']:,}", _error(item), clean(item["api_name"]), clean(item["topic"]), _partitions(item))
        for item in summary["errors"]
    ]
    yield Grid(
        "Error codes", ("count", "error", "api", "topic", "partitions"), errors, ("error", "count", "topic")
    )
    yield from failure_grids(summary)
    incomplete = [
        (
            f"{item['count']:,}",
            item["status"],
            WORDS["reason"].get(item["reason"] or "", ""),
            _few([api["api_name"] or "(unknown)" for api in item["apis"]]),
        )
        for item in summary["statuses"]
        if item["reason"] or item["status"] not in ("answered", "no_response_expected")
    ]
    yield Grid("Incomplete calls", ("count", "status", "reason", "apis"), incomplete, ("status",))
    yield from _timelines(summary)
    yield deliveries_grid(summary.get("deliveries") or [])
    yield _calls(summary["calls"])
    clients = [
        (f"{item['connections']:,}", clean(item["client_id"]), _software(item)) for item in summary["clients"]
    ]
    yield Grid("Clients", ("connections", "client id", "software"), clients, ("client id",))
    other = [
        (f"{item['count']:,}", item["protocol"], WORDS["protocol"][item["protocol"]])
        for item in summary["connections"]
        if item["protocol"] != "kafka"
    ]
    yield Grid("Connections without Kafka", ("count", "protocol", "meaning"), other, ("protocol",))
    anomalies = [
        (f"{item['count']:,}", item["name"], WORDS["anomaly"][item["name"]]) for item in summary["anomalies"]
    ]
    yield Grid("Anomalies", ("count", "name", "meaning"), anomalies, ("name",))


def _timelines(summary: Facts) -> Iterator[Grid]:
    rebalances = [
        (
            f"{item['rebalances']:,}",
            in_time(item["max_duration_ns"]),
            clean(item["group_id"]),
            item["kind"],
            _words(item["reasons"]),
        )
        for item in summary["groups"]
    ]
    yield Grid(
        "Rebalances",
        ("rebalances", "longest", "group", "kind", "reasons"),
        rebalances,
        ("group", "rebalances", "longest", "reasons"),
    )
    transactions = [
        (
            f"{item['transactions']:,}",
            in_time(item["max_duration_ns"]),
            clean(item["transactional_id"]),
            _words(item["outcomes"]),
        )
        for item in summary["transactions"]
    ]
    yield Grid(
        "Transactions",
        ("transactions", "longest", "transactional id", "outcomes"),
        transactions,
        ("transactional id",),
    )
    throttled = [
        (
            f"{item['calls']:,}",
            in_time(item["throttle_time_ns"]),
            in_time(item["max_throttle_time_ns"]),
            clean(item["client_id"]),
            clean(item["api_name"]),
        )
        for item in summary["throttling"]
    ]
    yield Grid(
        "Throttled by quotas",
        ("throttled", "sum", "longest", "client id", "api"),
        throttled,
        ("client id", "sum", "api", "throttled"),
    )


def _words(counts: Mapping[str, int]) -> str:
    """3 member_joined, 1 member_left."""
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{number:,} {word}" for word, number in ordered)


def _few(words: Sequence[str], most: int = 4) -> str:
    """The first words, and the number of the others."""
    more = f" and {len(words) - most:,} more" if len(words) > most else ""
    return ", ".join(map(clean, words[:most])) + more


def _partitions(item: Facts) -> str:
    return _few([str(one["partition"]) for one in item["partitions"]], most=8)


def _call_row(item: Facts) -> tuple[str, ...]:
    unanswered = item["statuses"].get("unanswered", 0)
    api = item["api_name"] or ("(unknown)" if item["api_key"] is None else f"api {item['api_key']}")
    version = "" if item["api_version"] is None else str(item["api_version"])
    times = [in_time(item[key]) for key in ("p50_ns", "p95_ns", "p99_ns", "max_ns")]
    return (api, version, f"{item['calls']:,}", f"{item['calls_with_errors']:,}", f"{unanswered:,}", *times)


def _error(item: Facts) -> str:
    return f"{item['error_name'] or 'unknown'} ({item['error_code']})"


def _software(item: Facts) -> str:
    return clean(" ".join(filter(None, (item["client_software_name"], item["client_software_version"]))))


def _plain(part: Part) -> Iterator[str]:
    if isinstance(part, str):
        yield part
        return
    if isinstance(part, Prose):
        yield from part.lines()
        return
    if isinstance(part, LeftOut):
        return
    yield ""
    yield part.title
    yield from plain(part)


def _show_rich(parts: Sequence[Part], out: TextIO) -> None:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.text import Text

    console = Console(file=out)

    def show(text: str, style: str = "") -> None:
        console.print(Text(text, style), soft_wrap=True)

    left_out: dict[str, None] = {}

    def show_left_out() -> None:
        if left_out:
            show("")
            names = ", ".join(left_out)
            note = f"columns that do not fit in {console.width} characters: {names}; use a pipe to see all"
            for line in wrap(note, console.width, cell_len, indent="    "):
                show(line, "dim")
            left_out.clear()

    for part in parts:
        if isinstance(part, LeftOut):
            show_left_out()
            continue
        if isinstance(part, str):
            for line in wrap(part, console.width, cell_len, indent="    "):
                show(line)
            continue
        if isinstance(part, Prose):
            for line in part.lines(console.width, cell_len):
                show(line)
            continue
        grid = fit(part, console.width, cell_len)
        left_out.update(dict.fromkeys(grid.left_out))
        show("")
        for line in wrap(grid.title, console.width, cell_len, indent="  "):
            show(line, "bold")
        head, *rows = grid.lines
        show(head, "bold")
        show("  " + "─" * (max(map(cell_len, grid.lines)) - 2))
        for line in rows:
            show(line)
    show_left_out()
