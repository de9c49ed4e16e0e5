"""One target per compiled entry point. A round (target, seed, number of executions) always does the same."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from kwsniff.core.capture import file_splits
from kwsniff.core.declared import COLUMNS
from kwsniff.core.tls import hello
from kwsniff.core.wire.engine import STATUSES, run
from kwsniff.core.wire.records import batches
from kwsniff.errors import CaptureError, UsageError
from tests.hostile import conversations, key_logs, lost_records, mutate, seeds
from tests.hostile.outputs import Broken, Hold, findings_text, journals
from tests.hostile.sealed import Secrets
from tests.pipeline.buckets import Walked, find_cuts, on_disk, walk
from tests.traffic.files import Frame, pcap
from tests.traffic.tunnels import LINK_WRAPS, WRAPS, Carrier, ip_of, wrapped


def capture_files(seed: int, executions: int, hold: Hold) -> None:
    """Capture files damaged as files, fed in one piece or in several."""
    dice = random.Random(seed)
    found = list(seeds.files().values())
    analyzer = seeds.analyzer()
    for number in range(executions):
        data = bytes(mutate.damaged_bytes(dice, dice.choice(found)))
        _one_capture(analyzer, data, dice, hold)
        if number % 50 == 49:
            _take(analyzer)
    _end(analyzer)


def packets(seed: int, executions: int, hold: Hold) -> None:
    """Well-formed captures of packets damaged inside; connections go on from one to the next."""
    dice = random.Random(seed)
    found = [mutate.rows_of(packets_) for packets_ in seeds.talks().values()]
    limits = dice.choice(LIMITS)
    analyzer = seeds.analyzer(limits=limits, ports=dice.choice(((), (9092,))))
    for number in range(executions):
        rows = dice.choice(found)
        if len(rows) > 24:
            start = dice.randrange(len(rows) - 20)
            rows = rows[start : start + dice.randrange(4, 24)] if dice.random() < 0.8 else rows
        _one_capture(analyzer, mutate.capture_of(mutate.damaged_rows(dice, rows)), dice, hold)
        if number % 50 == 49:
            _take(analyzer)
    _end(analyzer)


def tunnels(seed: int, executions: int, hold: Hold) -> None:
    """Packets in tunnels inside tunnels, in fragments, in copies, of rare links, damaged between them."""
    dice = random.Random(seed)
    found = [[bytes(row.frame) for row in mutate.rows_of(packets_)] for packets_ in seeds.talks().values()]
    analyzer = seeds.analyzer(limits={"ip_reassembly": dice.choice((1, 3, 64))})
    for number in range(executions):
        frames = dice.choice(found)
        start = dice.randrange(max(len(frames) - 12, 1))
        data = _carried(dice, frames[start : start + 12])
        if dice.random() < 0.2:
            data = bytes(mutate.damaged_bytes(dice, data))
        _one_capture(analyzer, data, dice, hold)
        if number % 50 == 49:
            _take(analyzer)
        if number % 5 == 0:
            with suppress(CaptureError):
                head = file_splits.read_head(hold(data))
                if head:
                    _split_file(head, data, dice, hold, number)
    _end(analyzer)


def _carried(dice: random.Random, frames: Sequence[bytes]) -> bytes:
    """A capture of the frames in up to five tunnels, damaged between two of them."""
    for _ in range(dice.choice((0, 1, 1, 2, 3, 5))):
        if dice.random() < 0.3:
            frames = [bytes(mutate.damaged_bytes(dice, frame, 2)) for frame in frames]
        frames = [frame.ljust(60, b"\0") for frame in frames]
        way = dice.choice(list(WRAPS))
        carrier = Carrier(dice.choice((4, 6)), dice.randrange(3), dice.choice((0, 0, 0, 8, 64, 1000)))
        pieces = [piece for some in wrapped(frames, way, carrier) for piece in some]
        frames = [frame for frame in pieces[:200] for _ in range(dice.choice((1, 1, 1, 2)))]
    link = 1
    if dice.random() < 0.3:
        link, wrap = LINK_WRAPS[dice.choice(list(LINK_WRAPS))]
        frames = [wrap(ip_of(frame.ljust(60, b"\0"))) for frame in frames]
    if dice.random() < 0.7:
        frames = [
            bytes(mutate.damaged_bytes(dice, frame, 3)) if dice.random() < 0.3 else frame for frame in frames
        ]
    return pcap([Frame(number * 1000, data, len(data)) for number, data in enumerate(frames)], link)


LIMITS: tuple[Mapping[str, int], ...] = (
    {},
    {"reorder_bytes": 300, "reorder_segments": 2, "reorder_packets": 1},
    {"reorder_bytes_total": 500, "frame_kept_bytes_total": 3000, "frame_kept_bytes": 900},
    {"connections": 1, "in_flight_requests": 2, "orphan_responses": 1, "orphan_bytes": 20, "topic_ids": 1},
    {"message_fields": 30, "request_context_bytes": 10, "resync_bytes": 100, "frame_bytes": 2000},
)
"""Small limits put the code behind them within reach of small inputs."""


def _one_capture(analyzer: Any, data: bytes, dice: random.Random, hold: Hold) -> None:
    analyzer.open_capture("hostile")
    cut = dice.randrange(len(data)) if data and dice.random() < 0.3 else len(data)
    try:
        for piece in (data[:cut], data[cut:]):
            analyzer.feed(hold(piece))
        facts = analyzer.close_capture()
    except CaptureError:
        return
    verdicts = sum(facts[name] for name in facts if name.startswith("packets_"))
    if verdicts != facts["packets"]:
        raise Broken(f"{verdicts} verdicts for {facts['packets']} packets")


def _conversations(make: conversations.Make) -> Callable[[int, int, Hold], None]:
    """Whole conversations, some over two captures; every byte is counted once, and events are bounded."""

    def target(seed: int, executions: int, hold: Hold) -> None:
        dice = random.Random(seed)
        for number in range(executions):
            limits = dict(dice.choice(LIMITS)) | {"tcp_events": dice.choice((1, 3, 10_000))}
            analyzer = seeds.analyzer(limits=limits, ports=dice.choice(((), (), (9092,))))
            packets_ = make(dice)
            cut = dice.randrange(len(packets_) + 1) if dice.random() < 0.3 else len(packets_)
            payload = []
            for part in (packets_[:cut], packets_[cut:]):
                analyzer.open_capture("hostile")
                analyzer.feed(hold(conversations.capture_of(part, dice)))
                payload.append(analyzer.close_capture()["tcp_payload_bytes"])
            analyzer.finish()
            counted = [sum(analyzer.accounting(at).values()) for at in range(2)]
            if counted != payload:
                raise Broken(f"{counted} bytes of {payload}: execution {number}")
            connections = analyzer.rows("connections")
            if analyzer.rows("tcp_events") > (limits["tcp_events"] + 16) * connections:
                raise Broken(f"too many events: execution {number}")
            _take(analyzer)

    return target


def _take(analyzer: Any) -> None:
    for table in COLUMNS:
        analyzer.drain(table)


def _end(analyzer: Any) -> None:
    analyzer.finish()
    _take(analyzer)


def _engine(how: int) -> Callable[[int, int, Hold], None]:
    def target(seed: int, executions: int, hold: Hold) -> None:
        from tests.hostile.swarm import engine_round

        done, promise = engine_round(seeds.messages(), seed, 0, executions, how)
        if promise != "kept":
            raise Broken(f"{promise}: execution {done - 1}")

    return target


def records(seed: int, executions: int, hold: Hold) -> None:
    """Record sets: the compiled walk over batches and their CRCs."""
    from tests.hostile.swarm import records_round

    done, promise = records_round(seeds.record_sets(), seed, 0, executions)
    if promise != "kept":
        raise Broken(f"{promise}: execution {done - 1}")


def sealed(seed: int, executions: int, hold: Hold) -> None:
    """Connections inside TLS, in damaged packets, whose secrets are there, come late, or never."""
    dice = random.Random(seed)
    found = [mutate.rows_of(packets_) for packets_ in seeds.sealed_talks().values()]
    analyzer, secrets = _opening(dice)
    for number in range(executions):
        if number % 20 == 19:
            if dice.random() < 0.3:
                analyzer = _resumed(analyzer, secrets)
            else:
                _end(analyzer)
                analyzer, secrets = _opening(dice)
        rows = dice.choice(found)
        if dice.random() < 0.3:
            rows = [row for row in rows if dice.random() > 0.05]
        if dice.random() < 0.8:
            rows = mutate.damaged_rows(dice, rows)
        _one_capture(analyzer, mutate.capture_of(rows), dice, hold)
        if dice.random() < 0.1:
            secrets.come()
            analyzer.secrets_came()
    _end(analyzer)


def _opening(dice: random.Random) -> tuple[Any, Secrets]:
    limits = dict(dice.choice((*LIMITS, {"reorder_packets": 1, "connections": 2})))
    limits |= dice.choice(({}, {"tls_tries": 3}, {"tls_buffer_bytes": 300}))
    analyzer = seeds.analyzer(limits=limits, ports=dice.choice(((), (9092,))))
    secrets = Secrets(late=dice.random() < 0.4, guesses=dice.random() < 0.4)
    analyzer.open_tls(secrets)
    return analyzer, secrets


def _resumed(analyzer: Any, secrets: Secrets) -> Any:
    _take(analyzer)
    resumed = seeds.resumed(analyzer.save())
    resumed.open_tls(secrets)
    return resumed


def hellos(seed: int, executions: int, hold: Hold) -> None:
    """What both sides of a TLS connection say first, damaged, in pieces, and with pieces missing."""
    dice = random.Random(seed)
    found = seeds.hellos()
    for number in range(executions):
        parts: list[tuple[int, Any]] = []
        for _ in range(dice.randrange(1, 4)):
            data = bytes(mutate.damaged_bytes(dice, dice.choice(found)))
            cut = dice.randrange(len(data) + 1)
            side = dice.randrange(2)
            parts += [(side, hold(data[:cut])), (dice.choice((side, side, 1 - side)), hold(data[cut:]))]
        if dice.random() < 0.5:
            parts.insert(dice.randrange(len(parts) + 1), (dice.randrange(2), None))
        client, version, name, cipher = hello.read(parts)
        if client not in (None, 0, 1) or any(text == "" for text in (version, name, cipher)):
            raise Broken(f"{client, version, name, cipher}: execution {number}")
        if name is not None and not (0 < len(name) < 256 and name.isascii() and name.isprintable()):
            raise Broken(f"{name!r}: execution {number}")


def decode_lines(seed: int, executions: int, hold: Hold) -> None:
    """`kwsniff decode --jsonl`: one JSON line for each line that is not blank, whatever is in it."""
    from kwsniff.cli.decode import answers

    dice = random.Random(seed)
    found = seeds.lines()
    lines = [_line(dice, dice.choice(found)) for _ in range(executions)]
    wanted = sum(bool(line.strip()) for line in lines)
    given = 0
    for answer in answers(lines, seeds.line_decoder()):
        row = json.loads(answer, parse_constant=_no_json)
        if not {"api_key", "api_version", "header", "body", "unknown_tags", "error"} <= set(row):
            raise Broken(f"{sorted(row)}: line {given}")
        given += 1
    if given != wanted:
        raise Broken(f"{given} answers to {wanted} lines")


def _no_json(word: str) -> None:
    raise Broken(f"{word} is not JSON")


def _line(dice: random.Random, line: Mapping[str, Any]) -> bytes:
    """A line with a damaged message, with wrong numbers, of wrong types, or damaged as text."""
    out = dict(line)
    kind = dice.randrange(12)
    if kind < 7:
        out["hex"] = mutate.damaged_bytes(dice, bytes.fromhex(line["hex"])).hex()
    elif kind == 7:
        name = dice.choice(("api_key", "api_version"))
        out[name] = dice.choice((-1, 32_767, 32_768, -(1 << 70), 10**30, True, None, 1.5, "1", [], 0, 18, 3))
    elif kind == 8:
        out[dice.choice(("hex", "direction"))] = dice.choice(
            (None, 7, "", "0", "zz", "00 01", " ", {}, "\ud800", "request", "response", "é")
        )
    elif kind == 9:
        out.pop(dice.choice(list(out)))
    text = json.dumps(out).encode()
    if kind == 10:
        return bytes(mutate.damaged_bytes(dice, text)).replace(b"\n", b"")
    if kind == 11:
        return dice.choice(
            (b"", b"  ", b"[]", b"7", b"null", b"[" * 100_000, b"{" * 9, b'{"a":' * 50_000, b"\xff")
        )
    return text


def python_entries(seed: int, executions: int, hold: Hold) -> None:
    """The functions that Python calls: engine.run and records.batches on damaged messages and record sets."""
    dice = random.Random(seed)
    pairs, sets = seeds.messages(), seeds.record_sets()
    for number in range(executions):
        code, message = dice.choice(pairs)
        data = hold(bytes(mutate.damaged_bytes(dice, message)))
        cells, status, _, _ = run(code, data, max_cells=dice.choice((1, 50, 100_000)))
        if not 0 <= status < len(STATUSES) or len(cells) % 16:
            raise Broken(f"status {status}: execution {number}")
        found, _, _ = batches(hold(bytes(mutate.damaged_bytes(dice, dice.choice(sets)))))
        if any(entry.size <= 0 for entry in found):
            raise Broken(f"an empty batch: execution {number}")


def split_files(seed: int, executions: int, hold: Hold) -> None:
    """Damaged captures cut, scanned and read by runs, some named; then read by runs that are damaged, too."""
    dice = random.Random(seed)
    found = [data for data in seeds.files().values() if len(data) < 60_000]
    for number in range(executions):
        data = dice.choice(found)
        if dice.random() < 0.8:
            data = bytes(mutate.damaged_bytes(dice, data))
        try:
            head = file_splits.read_head(hold(data))
            if head:
                _split_file(head, data, dice, hold, number)
        except CaptureError:
            continue


def _split_file(head: bytes, data: bytes, dice: random.Random, hold: Hold, number: int) -> None:
    held = memoryview(hold(data))
    for _ in range(3):
        at = file_splits.find_record(head, held, dice.randrange(len(data) + 1))
        if at is not None and not len(head) <= at < len(data):
            raise Broken(f"a record at {at} of {len(data)}: execution {number}")
    cuts = find_cuts(head, held, dice.randrange(50, len(data) + 50))
    least_named = dice.choice((0, 0, 1, 500))
    found: dict[tuple[int, ...], Walked] = {}

    def walked(head: bytes, begin: int, end: int) -> file_splits.Scan:
        piece = dice.choice((1, 97, 5000, 1 << 20))
        one = walk(head, held, begin, end, 3, piece=piece, least_named=least_named)
        found[one.scan.begin, one.scan.end, one.scan.asked, one.scan.head] = one
        return one.scan

    scans = [walked(head, begin, end) for begin, end in pairwise(cuts)]
    for _ in range(2 * len(cuts) + 1):
        scans, again = file_splits.meet(head, scans, len(data))
        if again is None:
            break
        scans.append(walked(again.head, again.begin, again.end))
    else:
        raise Broken(f"scans that never meet: execution {number}")
    kept = [found[one.begin, one.end, one.asked, one.head] for one in scans]
    with on_disk(data) as capture:
        _read_runs(head, kept, None, hold, capture)
        with suppress(CaptureError, UsageError):
            _read_runs(head, kept, dice, hold, capture)


def _read_runs(
    head: bytes, walked: Sequence[Walked], dice: random.Random | None, hold: Hold, capture: int
) -> None:
    analyzer = seeds.analyzer(bucket=(1, 3))
    analyzer.open_capture("hostile")
    analyzer.feed(hold(head))
    frames = 0
    for part in [part for one in walked for part in one.parts]:
        own, shared = part.kept[1], part.kept[-1]
        if dice:
            own = bytes(mutate.damaged_bytes(dice, own)) if own else own
            shared = bytes(mutate.damaged_bytes(dice, shared))
        analyzer.begin_runs(hold(own), hold(shared), frames_before=frames, capture=capture)
        while analyzer.feed_runs(dice.randrange(5000) if dice else 1 << 20):
            pass
        frames += part.packets
    told = analyzer.close_capture(end=walked[-1].scan.stop if walked else None)
    if not dice and told["packets"] != frames:
        raise Broken(f"{told['packets']} of {frames} packets")
    _end(analyzer)


TARGETS: Mapping[str, tuple[Callable[[int, int, Hold], None], int]] = {
    "capture_files": (capture_files, 500),
    "packets": (packets, 500),
    "tunnels": (tunnels, 300),
    "split_files": (split_files, 300),
    "messages": (_engine(0), 200_000),
    "programs": (_engine(1), 200_000),
    "invented_programs": (_engine(2), 200_000),
    "records": (records, 200_000),
    "python_entries": (python_entries, 2_000),
    "sealed": (sealed, 300),
    "lost_records": (lost_records.searched, 40),
    "key_logs": (key_logs.damaged_lines, 2_000),
    "hellos": (hellos, 3_000),
    "preambles": (_conversations(conversations.carried), 300),
    "acknowledgements": (_conversations(conversations.acknowledged), 300),
    "decode_lines": (decode_lines, 2_000),
    "findings_text": (findings_text, 5_000),
    "journals": (journals, 100),
}
"""Name to target and executions of one round. Those of 200,000 need the built swarm."""
