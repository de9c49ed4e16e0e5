"""Output that cannot be written, of every verb: a line and an exit status, no traceback."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kwsniff.cli.main import VERBS
from tests.traffic.files import frames, pcap
from tests.traffic.scenes import two_clients

REQUEST = "00120000000000070003666f6f"
COMMANDS = {
    "analyze": ["analyze", "shop.pcap"],
    "analyze --json": ["analyze", "shop.pcap", "--json"],
    "show": ["show", "shop.pcap"],
    "show --json": ["show", "shop.pcap", "--json"],
    "show --hexdump": ["show", "shop.pcap", "--hexdump"],
    "slice": ["slice", "shop.pcap", "--error", "any", "-o", "some.pcapng"],
    "anonymize": ["anonymize", "shop.pcap", "-o", "public.pcapng"],
    "why": ["why", "shop.pcap"],
    "why --json": ["why", "shop.pcap", "--json"],
    "upgrade": ["upgrade", "4.3.1", "shop.pcap"],
    "compare": ["compare", "shop.pcap", "shop.pcap"],
    "wireshark --help": ["wireshark", "--help"],
    "sql --help": ["sql", "--help"],
    "explain": ["explain", "apis"],
    "explain --json": ["explain", "fetch", "--json"],
    "decode": ["decode", REQUEST],
    "decode --json": ["decode", REQUEST, "--json"],
    "decode --jsonl": ["decode", "--jsonl", f'{{"direction":"request","hex":"{REQUEST}"}}'],
    "decode --records": ["decode", "--records", ""],
    "live": ["live", "-i", "lo", "--port", "9", "--duration", "200ms"],
    "live --help": ["live", "--help"],
    "pipeline": ["pipeline", "shop.pcap", "-o", "tables", "--table", "captures", "--master", "local[1]"],
    "pipeline --help": ["pipeline", "--help"],
    "--help": ["--help"],
    "--version": ["--version"],
}


def test_every_verb_is_tried() -> None:
    asks_tshark = {"verify"}  # not everywhere: tests/analysis/test_comparison.py
    assert {command[0] for command in COMMANDS.values()} >= set(VERBS) - asks_tshark


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.pcap").write_bytes(pcap(frames(two_clients().packets())))
    return tmp_path


def ran(folder: Path, name: str, redirection: str, stdout: int | None = None) -> tuple[int, str]:
    """Exit status and standard error of a command in a shell."""
    if name == "pipeline":
        pytest.importorskip("pyspark")
        if shutil.which("java") is None:
            pytest.skip("java is not installed")
    if name == "live":
        from tests.record.tcpdump import why_not

        if reason := why_not():
            pytest.skip(reason)
    command = [sys.executable, "-m", "kwsniff.cli.main", *COMMANDS[name]]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", *command],
        cwd=folder,
        stdout=stdout,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        text=True,
        check=False,
    )
    # What Spark and live say of their progress is no complaint.
    lines = [line for line in done.stderr.splitlines(keepends=True) if line.startswith("kwsniff: error")]
    said = done.stderr if name not in ("live", "pipeline") else "".join(lines)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    return done.returncode, said


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_one_line_and_2(folder: Path, name: str) -> None:
    line = "cannot write to standard output (No space left on device); the output is incomplete"
    assert ran(folder, name, ">/dev/full") == (2, f"kwsniff: error: {line}\n")


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_closed_standard_output_is_one_line_and_2(folder: Path, name: str) -> None:
    before = (folder / "shop.pcap").read_bytes()
    assert ran(folder, name, ">&-") == (
        2,
        "kwsniff: error: standard output is closed; redirect it to a file or /dev/null\n",
    )
    assert (folder / "shop.pcap").read_bytes() == before
    assert not (folder / "tables").exists()


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_reader_that_has_enough_hears_nothing(folder: Path, name: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    assert ran(folder, name, "", stdout=writing) == (0, "")
    os.close(writing)


def test_tables_are_there_when_the_summary_cannot_be_shown(folder: Path) -> None:
    command = [sys.executable, "-m", "kwsniff.cli.main", "analyze", "shop.pcap", "-o", "tables"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, cwd=folder, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert (folder / "tables" / "api_calls.parquet").stat().st_size > 0


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_complaints_that_nobody_can_read_do_not_end_up_elsewhere(folder: Path, redirection: str) -> None:
    command = f"exec {sys.executable} -m kwsniff.cli.main analyze nowhere.pcap {redirection}"
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", b"")


@pytest.mark.parametrize("arguments", ["analyze -", "show -", "decode -", "decode --jsonl"])
def test_a_closed_standard_input_is_one_line_and_2(folder: Path, arguments: str) -> None:
    command = f"exec {sys.executable} -m kwsniff.cli.main {arguments} <&-"
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("kwsniff: error: standard input is ")
    assert done.stderr.count("\n") == 1


def test_bytes_that_are_no_text_are_no_hex(folder: Path) -> None:
    command = [sys.executable, "-m", "kwsniff.cli.main", "decode", "-"]
    done = subprocess.run(command, input=b"\xff\xfe", capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(b"kwsniff: error: not valid hex")


def test_a_locale_without_a_character_loses_no_line(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kwsniff.cli.main", "decode", "00120000000000070003c3bc66"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert r"\xfcf" in done.stdout
