"""One message at a time taken out of recorded captures, as if the capture had missed it.

    python -m tests.pipeline.removal [folder ...]      every message of every capture there, with every ending
    python -m tests.pipeline.removal --step 13         every thirteenth of them
    python -m tests.pipeline.removal --as-recorded     without endings: the conversation goes on as it did

Without folders: the project's captures, and ../shared/incidents where they are.

Where messages lie is found without kwsniff: by TCP's numbers and the size in front of every message. The
packets of the message go, with their acknowledgements; those of the other side stay. What must come out is
arithmetic: the verdict on the removed message, every other call as it was, and as many bytes missing as were
taken out.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any

from tests.pipeline.endings import endings, selective
from tests.pipeline.messages import Message, messages_of
from tests.pipeline.running import analyzer, rows_of
from tests.pipeline.segments import ACK, FIN, RST, SYN, Segment, ahead, conversations, frames_of, read
from tests.traffic.files import pcap

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "captures", ROOT.parent / "shared" / "incidents")
JUDGED = ("api_calls", "connections", "anomalies")
KEPT = (
    "status", "reason", "api_key", "api_version", "correlation_id", "client_id", "request_bytes",
    "response_bytes", "request_time", "request_end_time", "response_time", "response_end_time", "latency_ns",
    "error_code",
)  # fmt: skip
SILENCE = ("unanswered", "whatever ended the connection")
Row = dict[str, Any]
Tables = dict[str, list[Row]]


def tables_of(link: int, segments: Iterable[Segment], **options: Any) -> Tables:
    engine = analyzer(**options)
    engine.open_capture("capture")
    engine.feed(pcap(frames_of(segments), link, nanoseconds=True))
    facts = engine.close_capture()
    engine.finish()
    bins = engine.accounting(0)
    if sum(bins.values()) != facts["tcp_payload_bytes"]:
        raise AssertionError(f"the bins do not add up: {bins}, not {facts['tcp_payload_bytes']}")
    return rows_of({name: engine.drain(name) for name in JUDGED}) | {"bins": [bins]}


def without(segments: list[Segment], message: Message, client: bytes) -> list[Segment]:
    """The segments with the message's bytes gone. One that carries more than the message is cut."""
    out: list[Segment] = []
    end = len(message.data)
    for segment in segments:
        start = ahead(segment.seq, message.seq)
        if (
            (segment.ends[0] == client) != message.from_client
            or not segment.payload
            or start >= end
            or start + len(segment.payload) <= 0
        ):
            out.append(segment)
            continue
        left = segment.payload[: max(-start, 0)]
        right = segment.payload[end - start :] if start + len(segment.payload) > end else b""
        if left:
            out.append(segment.again(left, segment.seq, segment.flags & ~FIN if not right else segment.flags))
        if right:
            out.append(segment.again(right, message.seq + end))
        elif segment.flags & FIN:  # a FIN of its own
            out.append(segment.again(b"", segment.end - 1))
    return out


def numbered(segments: Iterable[Segment]) -> list[Segment]:
    return [replace(segment, frame=number) for number, segment in enumerate(segments, 1)]


def selective_capture(path: Path) -> bytes:
    """A recorded capture, every conversation of it without its last answer, which its client acknowledged
    selectively, and nothing behind it."""
    link, segments = read(path)
    out: list[Segment] = []
    for talk in conversations(segments):
        client = next((s.ends[0] for s in talk if s.flags & (SYN | ACK) == SYN), talk[0].ends[0])
        answers = [message for message in messages_of(talk, client) if not message.from_client]
        if len(answers) > 1:
            end = answers[-1].seq + len(answers[-1].data)
            cut = next(n for n, s in enumerate(talk) if s.ends[0] == client and ahead(s.ack, end) >= 0)
            head = selective(talk[: cut + 1], answers[-1].seq, client, of_client=False)
            out += without(head, answers[-1], client)
    return pcap(frames_of(numbered(sorted(out, key=lambda s: s.time_ns))), link, nanoseconds=True)


# -- verdicts -------------------------------------------------------------------------------------------


def is_proven(segments: list[Segment], message: Message, client: bytes) -> bool:
    """Whether the message's receiver acknowledged its last byte in what is left."""
    end = message.seq + len(message.data)
    return any(
        s.flags & ACK
        and (
            ahead(s.ack, end) >= 0
            or any(ahead(start, message.seq) <= 0 <= ahead(to, end) for start, to in s.blocks)
        )
        for s in segments
        if (s.ends[0] == client) != message.from_client
    )


def is_of_side(segment: Segment, message: Message, client: bytes) -> bool:
    return (segment.ends[0] == client) == message.from_client


def is_passed(segments: list[Segment], message: Message, client: bytes) -> bool:
    """Whether its sender's numbers went beyond it in what is left. Those of a reset prove nothing, and what
    is said behind one is for nobody: that it was not acknowledged is no sign of a loss."""
    end = message.seq + len(message.data)
    said = takewhile(lambda s: not s.flags & RST, segments)
    return any(ahead(s.end, end) >= 0 for s in said if is_of_side(s, message, client))


def is_reset_for(segments: list[Segment], client: bytes) -> bool:
    """Whether a client that has closed, or may have in what is missing of it, answers with an RST what is not
    in what is left. Such an RST has no acknowledgement, and its number is the one of the packet that it
    answers (RFC 9293 3.10.7.1)."""
    for number, reset in enumerate(segments):
        if reset.ends[0] == client and reset.flags & (RST | ACK) == RST:
            mine = [s for s in segments[:number] if s.ends[0] == client]
            return (
                any(s.flags & FIN for s in mine) or all(ahead(reset.seq, s.end) > 0 for s in mine)
            ) and not any(
                s.ack == reset.seq
                for s in segments[:number]
                if s.ends[0] != client and (s.payload or s.flags & FIN)
            )
    return False


def kept(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEPT)


def faults(
    before: Tables, after: Tables, left: list[Segment], message: Message, client: bytes
) -> Iterator[str]:
    """Everything that is not as it must be."""
    mine = [r for r in before["api_calls"] if is_of(r, message)]
    if sum(r["correlation_id"] == message.correlation_id for r in before["api_calls"]) > 1:
        return  # correlation ids that come again: which one it is, nobody can say
    now = [r for r in after["api_calls"] if is_of(r, message, either=True)]
    if not mine and not message.from_client:  # an answer behind a reset: it was nobody's, and is not missed
        yield from other_faults(before["api_calls"], after["api_calls"], message, may_hide=True)
        yield from hole_faults(before, after, left, message, client)
        return
    yield from other_faults(
        [r for r in before["api_calls"] if r not in mine],
        [r for r in after["api_calls"] if r not in now],
        message,
        may_hide=not message.from_client or is_reset_for(left, client),
    )
    kafka = any(r["protocol"] == "kafka" for r in after["connections"])
    want = wanted(mine, left, message, client) if kafka else None
    got = [(r["status"], r["reason"] if want != SILENCE else SILENCE[1]) for r in now]
    if got != ([want] if want else []):
        yield f"the call: {got}, not {want}"
    yield from hole_faults(before, after, left, message, client)


def other_faults(before: list[Row], after: list[Row], message: Message, *, may_hide: bool) -> Iterator[str]:
    """Every other call is as it was. One that waited for its answer to the end may have had it in the hole,
    too (`may_hide`): how many messages lay there, nobody can say."""
    found: dict[tuple[int, bool], list[Row]] = {}
    for row in after:
        found.setdefault((row["correlation_id"], row["request_frame"] is None), []).append(row)
    for row in before:
        same = found.get((row["correlation_id"], row["request_frame"] is None))
        now = same.pop(0) if same else None
        name = f"call {row['correlation_id']}, {row['status']}, {row['reason']}"
        if now is None:
            yield f"{name} is gone"
        elif not (
            row["status"] == "unanswered" and may_hide and now["status"] == "response_not_captured"
        ) and kept(row) not in (kept(now), kept(now | {"latency_ns": waited(row)})):
            yield f"{name} is {now['status']}, {now['reason']} now"
    for row in (row for rows in found.values() for row in rows):
        yield f"call {row['correlation_id']}, {row['status']}, {row['reason']} is new"


def waited(row: Row) -> int:
    """The latency of a call whose answer came early and waited for what was lost before it, else -1. Without
    the message that ended the wait, nobody can see how long it was."""
    if row["latency_ns"] is None or row["response_time"] is None:
        return -1
    early = (row["response_time"] - row["request_time"]) // timedelta(microseconds=1) * 1_000
    return row["latency_ns"] if row["latency_ns"] > early + 1_000 else -1


def is_of(row: Row, message: Message, *, either: bool = False) -> bool:
    if row["correlation_id"] != message.correlation_id:
        return False
    size = row["request_bytes"] if message.from_client else row["response_bytes"]
    return size == len(message.data) or either


def wanted(
    mine: list[Row], left: list[Segment], message: Message, client: bytes
) -> tuple[str, str | None] | None:
    if not mine or (message.from_client and mine[0]["response_frame"] is None):
        return None
    if message.from_client:
        return "response_only", "segment_not_captured"
    if is_proven(left, message, client):
        return "response_not_captured", "segment_not_captured"
    if is_passed(left, message, client) or is_reset_for(left, client):
        return "response_not_captured", "segment_lost"
    return SILENCE


def _summed(holes: list[tuple[str, str, int]]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for name, side, size in holes:
        found[name, side] += size
    return found


def first_of(tables: Tables) -> Row:
    return min(tables["connections"], key=lambda row: row["connection_id"])


def hole_faults(
    before: Tables, after: Tables, left: list[Segment], message: Message, client: bytes
) -> Iterator[str]:
    kafka = any(r["protocol"] == "kafka" for r in after["connections"])
    was, row = first_of(before), first_of(after)
    side = "client" if message.from_client else "broker"
    other = "broker" if message.from_client else "client"
    proven = is_proven(left, message, client)
    if proven or is_passed(left, message, client):
        missing = row[f"{side}_missing_bytes"] - was[f"{side}_missing_bytes"]
        if missing != len(message.data):
            yield f"{missing} bytes missing, not {len(message.data)}"
        if row[f"{other}_missing_bytes"] != was[f"{other}_missing_bytes"]:
            yield "bytes of the other side are missing"
        name = "segment_not_captured" if proven else "segment_lost"
        holes = [
            (r["name"], r["direction"], r["value"])
            for r in after["anomalies"]
            if r["name"].startswith("segment_")
        ]
        for r in before["anomalies"]:
            if (r["name"], r["direction"], r["value"]) in holes:
                holes.remove((r["name"], r["direction"], r["value"]))
        # A long one may be given up in parts, while its receiver goes on acknowledging.
        whole = {(name, side): len(message.data)}
        if kafka and _summed(holes) != whole:
            yield f"anomalies: {holes}"
    if row["ending"] != was["ending"]:
        yield f"the end: {row['end']}, not {was['end']}"
    took = sum(before["bins"][0].values()) - sum(after["bins"][0].values())
    for name, size in after["bins"][0].items():
        if kafka and name in ("lost_framing", "torn_frames", "unfinished") and size > before["bins"][0][name]:
            yield f"{size} bytes are {name} after {took} were taken"


# -- runs -----------------------------------------------------------------------------------------------


def tried(path: Path, *, step: int = 1, with_endings: bool = True) -> Iterator[tuple[str, list[str]]]:
    """Every `step`th message of a capture: what was taken out, and the faults."""
    link, segments = read(path)
    number = 0
    for talk in map(numbered, conversations(segments)):
        client = next((s.ends[0] for s in talk if s.flags & (SYN | ACK) == SYN), talk[0].ends[0])
        messages = messages_of(talk, client)
        before = tables_of(link, talk) if messages else None
        if before is None or first_of(before)["protocol"] != "kafka":
            continue
        if first_of(before)["client_missing_bytes"] or first_of(before)["broker_missing_bytes"]:
            continue  # recorded with holes: those next to the new one would be one with it
        ids = Counter((m.from_client, m.correlation_id) for m in messages)
        for message in messages:
            number += 1
            if number % step or ids[message.from_client, message.correlation_id] > 1:
                continue  # ids that come again: which call it is, nobody can say
            kind = "request" if message.from_client else "response"
            name = f"{path.parent.name}/{path.name}, {kind} {message.correlation_id} at {message.seq}"
            left = without(talk, message, client)
            yield name, list(faults(before, tables_of(link, numbered(left)), left, message, client))
            if with_endings:
                yield from ended(name, link, talk, message, client)


def is_whole(segments: list[Segment]) -> bool:
    """Nothing is missing in what either side has sent: a head that ends inside a recorded loss has a hole of
    its own, which would be one with the message's."""
    end: dict[Any, int] = {}
    ahead_of: dict[Any, list[Segment]] = {}
    for segment in segments:
        side = segment.ends[0]
        end.setdefault(side, segment.seq)
        waiting = [*ahead_of.get(side, []), segment]
        while found := next((s for s in waiting if ahead(s.seq, end[side]) <= 0), None):
            waiting.remove(found)
            if ahead(found.end, end[side]) > 0:
                end[side] = found.end
        ahead_of[side] = waiting
    return not any(ahead_of.values())


def ended(
    name: str, link: int, talk: list[Segment], message: Message, client: bytes
) -> Iterator[tuple[str, list[str]]]:
    """The same where nothing comes behind the call but an ending."""
    answer = message
    if message.from_client:
        found = [
            m
            for m in messages_of(talk, client)
            if not m.from_client and m.correlation_id == message.correlation_id
        ]
        answer = found[0] if found else message
    end = answer.seq + len(answer.data)
    cut = next(
        number
        for number, s in enumerate(talk)
        if (s.ends[0] == client) == answer.from_client
        and s.payload
        and ahead(s.seq + len(s.payload), end) >= 0
    )
    head = next(talk[:number] for number in range(cut + 1, len(talk) + 1) if is_whole(talk[:number]))
    if any(s.flags & (FIN | RST) for s in head):
        return
    ways = {ending: [*head, *more] for ending, more in endings(head, client).items()}
    if any(s.payload and ahead(s.seq, message.seq) < 0 for s in head if is_of_side(s, message, client)):
        for ending in ("acknowledged", "client FIN", "both FINs"):
            ways[f"{ending}, selective"] = selective(
                ways[ending], message.seq, client, of_client=message.from_client
            )
    for ending, segments in ways.items():
        whole = numbered(segments)
        left = without(whole, message, client)
        before = tables_of(link, whole)
        if first_of(before)["protocol"] != "kafka":
            continue
        yield (
            f"{name}, {ending}",
            list(faults(before, tables_of(link, numbered(left)), left, message, client)),
        )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m tests.pipeline.removal")
    parser.add_argument("folders", nargs="*", type=Path, default=FOLDERS)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--as-recorded", action="store_true")
    options = parser.parse_args(arguments)
    total: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    paths = sorted(path for folder in options.folders for path in folder.rglob("*.pcap*"))
    for path in paths:
        for name, found in tried(path, step=options.step, with_endings=not options.as_recorded):
            way = f"{name.split(', ')[1].split()[0]}, {', '.join(name.split(', ')[2:]) or 'as recorded'}"
            total[way] += 1
            wrong[way] += bool(found)
            for fault in found:
                sys.stdout.write(f"{name}: {fault}\n")
        sys.stdout.flush()
    for way, number in sorted(total.items()):
        sys.stdout.write(f"{number:6} {way}: {wrong[way]} judged wrong\n")
    sys.stdout.write(f"{total.total()} removals of {len(paths)} captures, {wrong.total()} judged wrong\n")
    return 1 if wrong.total() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
