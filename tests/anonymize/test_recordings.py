"""Recordings without names: the same tables and findings with other names, and no name is left."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from kwsniff.cli.main import run
from kwsniff.layout.catalog import load_catalog
from tests.anonymize.renaming import Rename, counted, encodings, names_in, opened, read_map, renaming
from tests.findings.conftest import FindingsOf
from tests.pipeline.compare import analyzed, decoded

CAPTURES = Path(__file__).parents[2] / "captures"
RECORDINGS = sorted(
    str(path.relative_to(CAPTURES))
    for path in CAPTURES.rglob("*.pcap*")
    if path.suffix in (".pcap", ".pcapng")
)
# Each recording takes seconds: every fourth is enough for what does not hide a name.
TABLES, FINDINGS, PACKETS = (RECORDINGS[first::4] for first in range(3))
# Findings name what they count in texts; figures and subjects are columns of their own.
FIGURES = (
    "finding", "severity", "confidence", "blames", "subject_kind", "subject", "value", "expected", "unit",
    "calls", "time_share", "explained_by",
)  # fmt: skip
# The value is a length that was none, but bytes of somebody; or how many bytes the next message came after.
GARBAGE = ("framing_lost", "framing_resumed")
# API, its version, correlation id and error are the last of the fields that tshark shows.
KAFKA_FIELDS = 5
WORD = re.compile(rb"[a-z]{6,}")
LEAST_STRANGE = 200
"""Kafka's error codes are below."""


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """The same for every run: what is by chance the same in both captures stays so."""
    path = tmp_path / "site.key"
    path.write_text("one secret of more than sixteen bytes")
    return path


def anonymized(recording: str, folder: Path, key: Path) -> tuple[Path, dict[str, str]]:
    out, names = folder / "public.pcapng", folder / "names.tsv"
    words = ["anonymize", str(CAPTURES / recording), "-o", str(out), "--key", str(key), "--map", str(names)]
    assert run(words) == 0
    return out, read_map(names)


@pytest.mark.sample(6)
@pytest.mark.parametrize("recording", TABLES)
def test_tables_are_equal_up_to_names(recording: str, tmp_path: Path, key: Path) -> None:
    out, names = anonymized(recording, tmp_path, key)
    rename = renaming(names)
    old, new = analyzed(CAPTURES / recording, tls_keylog=False), analyzed(out, tls_keylog=False)
    for table in old:
        if table == "captures":
            continue
        before = [{**row, "capture": None} for row in old[table]]
        after = [{**row, "capture": None} for row in new[table]]
        if table == "anomalies":
            for row in (*before, *after):
                row["value"] = None if row["name"] in GARBAGE else row["value"]
        assert counted(before, rename) == counted(after), table


def _found_in(recording: str, findings_of: FindingsOf) -> list[dict[str, Any]]:
    """What `analyze` finds in a recording; of one that may have secrets in it, without them."""
    path = CAPTURES / recording
    if path.suffix == ".pcapng":
        return kwsniff.analyze(path, tls_keylog=False).findings.to_pylist()
    return findings_of(path)


@pytest.mark.sample(1)
@pytest.mark.parametrize("recording", FINDINGS)
def test_findings_are_the_same(recording: str, tmp_path: Path, key: Path, findings_of: FindingsOf) -> None:
    out, names = anonymized(recording, tmp_path, key)
    old = _found_in(recording, findings_of)
    new = kwsniff.analyze(out, tls_keylog=False).findings.to_pylist()
    rename = renaming(names)

    def figures(found: Sequence[dict[str, Any]], by: Rename | None) -> object:
        rows = [{name: each[name] for name in FIGURES} for each in found]
        for row in rows:
            topic, _, number = row["subject"].rpartition("-")
            if row["subject_kind"] == "capture":
                row["subject"] = None  # a file
            elif by and row["subject_kind"] == "partition":
                row["subject"] = f"{by(topic)}-{number}"
            elif by:
                row["subject"] = by(row["subject"])
        return counted(rows)

    assert figures(old, rename) == figures(new, None)


@pytest.mark.sample(6)
@pytest.mark.parametrize("recording", RECORDINGS)
def test_no_name_is_left(recording: str, tmp_path: Path, key: Path) -> None:
    out, names = anonymized(recording, tmp_path, key)
    public = load_catalog().names
    data = opened(out.read_bytes())
    words = public.words | public.whole | public.settings
    known = "\n".join((*words, *names.values()))
    hidden = {
        name for name in names_in(CAPTURES / recording) | set(names) if len(name) >= 4 and name not in known
    }
    assert hidden or not names
    left = [name for name in hidden for code in encodings(name) if code in data]
    assert [name for name in left if not _is_part_of_public(name, data, words)] == []
    assert words_left(opened((CAPTURES / recording).read_bytes()), data, words) == []


def words_left(old: bytes, new: bytes, public: frozenset[str]) -> list[bytes]:
    """Words of the capture, as bytes of any field, record or packet, that are still there: without those that
    stay, to which a length may seem to add a letter, and values that are `a` for each letter."""
    kept = "\n".join(public).lower().encode()
    parts = [each.encode() for name in public for each in re.split("[^a-z]+", name) if len(each) > 4]
    return [
        word
        for word in sorted(set(WORD.findall(old)) & set(WORD.findall(new)))
        if word not in kept and set(word) != set(b"a") and not any(each in word for each in parts)
    ]


def _is_part_of_public(name: str, data: bytes, words: frozenset[str]) -> bool:
    """Whether each occurrence is inside a word that stays, such as delete in delete.retention.ms."""
    code = re.escape(name.encode())
    runs = {found[0].decode() for found in re.finditer(rb"[\w.-]*" + code + rb"[\w.-]*", data)}
    return all(each in words or set(re.split(r"[^a-zA-Z]+", each)) <= words | {""} for each in runs)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
@pytest.mark.sample(4)
@pytest.mark.parametrize("recording", PACKETS)
def test_tshark_sees_the_same_messages_and_valid_checksums(recording: str, tmp_path: Path, key: Path) -> None:
    out, _ = anonymized(recording, tmp_path, key)
    fields = (
        "frame.time_epoch",
        "frame.len",
        "tcp.seq_raw",
        "tcp.len",
        "kafka.api_key",
        "kafka.api_version",
        "kafka.correlation_id",
        "kafka.error",
        "_ws.malformed",
    )
    seen = {
        (row[f"{side}_end_frame"], row["correlation_id"])
        for row in decoded(CAPTURES / recording, tls_keylog=False)["api_calls"]
        for side in ("request", "response")
    }
    lines = zip(told(CAPTURES / recording, fields), told(out, fields), strict=True)
    for frame, (old, new) in enumerate(lines, 1):
        size = len(fields) if is_understood(frame, old, seen) else len(fields) - KAFKA_FIELDS
        # Zeros of a message whose beginning is missing look like messages without bytes.
        size = size if old.split("\t")[-3] else min(size, len(fields) - 1)
        assert old.split("\t")[:size] == new.split("\t")[:size], frame
    bad = "tcp.checksum.status == 0 || ip.checksum.status == 0"
    checks = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE")
    assert told(out, ("frame.number",), *checks, "-Y", bad) == []


def is_understood(frame: int, line: str, seen: Container[tuple[int, int]]) -> bool:
    """Whether tshark read messages of calls there: where it does not know the version, or begins inside a
    message, it takes names for numbers, or says that the packet is malformed. A response that no call has is
    blank in the other capture."""
    *_, correlation_ids, errors, malformed = line.split("\t")
    known = all((frame, int(each)) in seen for each in correlation_ids.split(",") if each)
    plain = all(-1 <= int(each) < LEAST_STRANGE for each in errors.split(",") if each)
    return known and plain and not malformed


def told(path: Path, fields: Sequence[str], *options: str) -> list[str]:
    """One line of these fields for each packet."""
    words = ["tshark", "-n", "-r", str(path), "-T", "fields", *options]
    for port in (9092, 9093, 9094):
        words += ["-d", f"tcp.port=={port},kafka"]
    for each in fields:
        words += ["-e", each]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
