"""`kwsniff show --tables` prints what show prints without it, of packets that the tables point to."""

import gzip
import shlex
import shutil
from pathlib import Path

import pytest

import kwsniff
from kwsniff.analysis.call_lookup import known_calls
from kwsniff.analysis.stored_calls import StoredCalls
from kwsniff.cli import main
from kwsniff.filter.expression import among
from kwsniff.view.reader import CallReader

from .shown import CAPTURES, FIRST_STEPS, lines

SOME = ("first_steps", "zookeeper_3_2", "sasl_scram", "transaction", "admin_configs", "kafka_python_4_3")


def capture_of(name: str) -> str:
    return str(next((CAPTURES / name).glob("capture.pcap*")))


def folder_of(capture: str, place: Path) -> str:
    kwsniff.analyze(capture, output=place)
    return str(place)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", SOME)
def test_each_call_is_shown_as_without_tables(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = capture_of(name)
    folder = folder_of(capture, tmp_path)
    numbers = kwsniff.open(folder).api_calls["call_id"].to_pylist()
    for number in numbers[:: max(len(numbers) // 12, 1)]:
        plain = lines(capsys, capture, "--call", str(number))
        assert lines(capsys, capture, "--tables", folder, "--call", str(number)) == plain


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "words",
    ["--error any", "--topic orders", "--where 'group_id = billing'", "--client bill",
     "--where 'latency >= 5ms'", "--where 'request_time > +1s and error = 3'",
     "--client-is billing-1",
     "--connection 11", "--api fetch -n 1", "--status answered", "--error 0 --api produce"],
)  # fmt: skip
def test_filters_choose_the_same_calls(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folder_of(FIRST_STEPS, tmp_path)
    plain = lines(capsys, FIRST_STEPS, *shlex.split(words))
    assert plain
    assert lines(capsys, FIRST_STEPS, "--tables", folder, *shlex.split(words)) == plain


def test_of_a_call_only_packets_of_its_time_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(FIRST_STEPS, tmp_path)
    seen = []
    calls = CallReader.calls

    def counted(reader: CallReader) -> object:
        for call in calls(reader):
            seen.append(call)
            yield call

    monkeypatch.setattr(CallReader, "calls", counted)
    stored = StoredCalls(folder, [FIRST_STEPS], among("call_id", [23_000]))
    assert [call.id for call in stored.calls()] == [23_000]
    # The Metadata call that names its topic, frames 8 and 9; and the call itself, frames 23 and 24.
    assert [call.packets[0]["first_frame"] for call in seen] == [8, 23]


def test_a_call_that_was_not_answered_takes_the_whole_capture(tmp_path: Path) -> None:
    capture = next(
        path
        for path in sorted(CAPTURES.glob("*/capture.pcap*"))
        if "unanswered" in kwsniff.analyze(path, tables="api_calls").api_calls["status"].to_pylist()
    )
    folder = folder_of(str(capture), tmp_path)
    rows = kwsniff.open(folder).api_calls.to_pylist()
    number = next(row["call_id"] for row in rows if row["status"] == "unanswered")
    assert known_calls(folder, [str(capture)], among("call_id", [number])).span is None
    stored = StoredCalls(folder, [str(capture)], among("call_id", [number]))
    assert [(call.id, call.status) for call in stored.calls()] == [(number, "unanswered")]


def test_nothing_is_read_for_a_call_that_the_tables_do_not_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(FIRST_STEPS, tmp_path)
    monkeypatch.setattr(CallReader, "calls", lambda _: pytest.fail("read"))
    assert lines(capsys, FIRST_STEPS, "--tables", folder, "--call", "5", status=1) == []


def test_tables_of_other_captures_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = folder_of(FIRST_STEPS, tmp_path / "out")
    other = tmp_path / "other.pcap"
    shutil.copyfile(FIRST_STEPS, other)
    assert main.run(["show", str(other), "--tables", folder, "--call", "23000"]) == 2
    assert "was made of capture.pcap, not of other.pcap" in capsys.readouterr().err
    moved = tmp_path / "capture.pcap"
    other.rename(moved)
    assert main.run(["show", str(moved), "--tables", folder, "--call", "23000"]) == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--since", "+1s"], "--since and --until cannot be used with --tables"),
        (["--tables", "/nowhere"], "holds no tables of kwsniff"),
    ],
)
def test_bad_usage_is_one_line(
    words: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folder_of(FIRST_STEPS, tmp_path)
    assert main.run(["show", FIRST_STEPS, "--tables", folder, *words]) == 2
    told = capsys.readouterr().err
    assert why in told
    assert len(told.splitlines()) == 1


def test_compressed_captures_are_read_likewise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = tmp_path / "capture.pcap.gz"
    capture.write_bytes(gzip.compress(Path(FIRST_STEPS).read_bytes()))
    folder = folder_of(str(capture), tmp_path / "out")
    plain = lines(capsys, FIRST_STEPS, "--call", "129000")
    assert lines(capsys, str(capture), "--tables", folder, "--call", "129000") == plain
