"""What standard error says beside the answer: what was not read, what a folder holds or lost."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.cli import main
from kwsniff.errors import OutputError
from kwsniff.live.files import RollingTables
from kwsniff.live.session import Session
from tests.live.running import FileSource

FIRST_STEPS = Path(__file__).parents[2] / "captures" / "first_steps" / "capture.pcap"


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    path = tmp_path / "cut.pcap"
    path.write_bytes(FIRST_STEPS.read_bytes()[:20_000])
    return path


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "words", [("analyze",), ("why",), ("upgrade", "4.0.0"), ("show",), ("analyze", "--json")]
)
def test_a_capture_that_ends_inside_a_packet_is_told(
    cut: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run([*words, str(cut)]) in (0, 1)
    said = capsys.readouterr()
    assert said.err == f"kwsniff: note: {cut}: ends inside a packet\n"


def test_a_whole_capture_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["analyze", str(FIRST_STEPS)]) == 0
    assert capsys.readouterr().err == ""


def test_a_file_named_twice_is_read_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    link = tmp_path / "link.pcap"
    link.symlink_to(FIRST_STEPS)
    assert main.run(["analyze", str(FIRST_STEPS), str(FIRST_STEPS), str(link)]) == 0
    said = capsys.readouterr()
    assert said.err.splitlines() == [
        f"kwsniff: note: {FIRST_STEPS}: is given twice; kwsniff reads it once",
        f"kwsniff: note: {link}: is the same file as {FIRST_STEPS}; kwsniff reads it once",
        "kwsniff: note: 1 of 3 files read",
    ]
    assert "34 calls on 8 connections" in said.out


def test_a_copy_under_another_name_is_another_file(tmp_path: Path) -> None:
    copy = tmp_path / "copy.pcap"
    copy.write_bytes(FIRST_STEPS.read_bytes())
    captures = kwsniff.analyze([FIRST_STEPS, copy], tables="captures").captures.to_pylist()
    assert [each["packets"] for each in captures] == [146, 146]
    assert not any(each["damaged"] for each in captures)


def test_tables_that_an_earlier_run_made_are_named_when_they_go(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "out")
    main.run(["analyze", str(FIRST_STEPS), "-o", output, "--table", "api_calls,connections,groups"])
    assert capsys.readouterr().err == ""
    main.run(["analyze", str(FIRST_STEPS), "-o", output, "--table", "api_calls"])
    assert capsys.readouterr().err == (
        f"kwsniff: note: {output}: removed tables of an earlier run: connections, groups\n"
    )
    main.run(["analyze", str(FIRST_STEPS), "-o", output, "--table", "api_calls"])
    assert capsys.readouterr().err == ""


def test_tables_of_another_verb_that_stay_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    (folder / "latency_minutes" / "date=2026-11-20").mkdir(parents=True)
    (folder / "latency_minutes" / "date=2026-11-20" / "part-0.parquet").write_bytes(b"PAR1")
    assert main.run(["analyze", str(FIRST_STEPS), "-o", str(folder), "--table", "api_calls"]) == 0
    assert (
        capsys.readouterr().err
        == f"kwsniff: note: {folder}: tables of an earlier run remain: latency_minutes\n"
    )


def test_folders_of_another_verb_are_named_where_files_are_read_in_their_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    with Session(FileSource(FIRST_STEPS)) as session, RollingTables(folder, ("api_calls",)) as files:
        session.wait(60)
        files.write(session.finish())
        files.finish()
    assert main.run(["analyze", str(FIRST_STEPS), "-o", str(folder), "--table", "api_calls"]) == 0
    assert capsys.readouterr().err == (
        f"kwsniff: note: {folder}: folders of kwsniff live or pipeline with these names remain; readers of "
        f"{folder} use the files of this run: api_calls\n"
    )
    assert len([*(folder / "api_calls").glob("*.parquet")]) == 1
    ids = set(kwsniff.open(folder).table("api_calls")["run_id"].to_pylist())
    assert ids == set(pq.read_table(folder / "api_calls.parquet")["run_id"].to_pylist())


@pytest.mark.parametrize("there", ["connections.parquet", "_kwsniff.json"])
def test_live_refuses_a_folder_of_another_verb(tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_bytes(b"of another")
    with pytest.raises(
        OutputError, match=f"kwsniff live did not write .{there}.; choose a new or empty folder"
    ):
        RollingTables(tmp_path, ("api_calls",))
    assert [each.name for each in tmp_path.iterdir()] == [there]
