"""Files that verbs write never replace a capture, or what the same command cannot make again."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

pytest.importorskip("kwsniff.core.analyzer", reason="the analyzer is not built")

import kwsniff
from kwsniff.cli.main import DONE, FAILED, run
from tests.house.tree import ROOT
from tests.traffic.files import frames, pcapng
from tests.traffic.scenes import two_clients

CAPTURE = ROOT / "captures" / "first_steps" / "capture.pcap"
PACKETS = CAPTURE.read_bytes()
WRITERS = (
    ["slice", "{capture}", "--error", "any", "-o", "{out}"],
    ["why", "{capture}", "--html", "{out}"],
    ["compare", "{capture}", "{capture}", "--html", "{out}"],
    ["sql", "{tables}", "from api_calls", "--format", "csv", "-o", "{out}"],
)
ENDINGS = {"slice": ".pcapng", "why": ".html", "compare": ".html", "sql": ".csv"}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tables") / "out"
    kwsniff.analyze(CAPTURE, output=place)
    return place


def write(verb: list[str], out: Path, tables: Path, *more: str, capture: Path = CAPTURE) -> int:
    return run([*(word.format(capture=capture, out=out, tables=tables) for word in verb), *more])


def _captures() -> dict[str, bytes]:
    return {
        "pcap": PACKETS,
        "pcap in gzip": gzip.compress(PACKETS, mtime=0),
        "pcapng": pcapng(frames(two_clients().packets())),
    }


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", _captures())
@pytest.mark.parametrize("verb", WRITERS, ids=lambda verb: verb[0] + (" html" if "--html" in verb else ""))
def test_a_capture_is_replaced_when_told_to_only(
    verb: list[str], kind: str, tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also under the ending that results have."""
    for name in ("evidence.pcap", f"evidence{ENDINGS[verb[0]]}"):
        out = tmp_path / name
        out.write_bytes(_captures()[kind])
        assert write(verb, out, tables) == FAILED
        err = capsys.readouterr().err
        assert err == f"kwsniff: error: {out} is a capture; choose another file, or replace it with --force\n"
        assert out.read_bytes() == _captures()[kind]
        assert write(verb, out, tables, "--force") in (DONE, 1)
        assert out.read_bytes() != _captures()[kind]
        capsys.readouterr()


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "verb", WRITERS[:3], ids=lambda verb: verb[0] + (" html" if "--html" in verb else "")
)
@pytest.mark.parametrize("way", ["itself", "by a link", "in its directory"])
def test_a_capture_that_is_read_is_never_replaced(
    verb: list[str], way: str, tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = tmp_path / "x.pcap"
    shutil.copy(CAPTURE, capture)
    out = capture
    if way == "by a link":
        out = tmp_path / "link.pcapng"
        out.symlink_to(capture)
    read = tmp_path if way == "in its directory" else capture
    assert write(verb, out, tables, "-f", capture=read) == FAILED
    assert "choose another output file" in capsys.readouterr().err
    assert capture.read_bytes() == PACKETS


@pytest.mark.slow
@pytest.mark.parametrize("verb", WRITERS, ids=lambda verb: verb[0] + (" html" if "--html" in verb else ""))
def test_an_earlier_result_is_replaced(
    verb: list[str], tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"result{ENDINGS[verb[0]]}"
    first = write(verb, out, tables)
    written = out.read_bytes()
    assert written
    assert write(verb, out, tables) == first
    if verb[0] == "why":  # the others name when a run began, or their files
        assert out.read_bytes() == written
    assert len(out.read_bytes()) == len(written)
    assert capsys.readouterr().err == ""


@pytest.mark.sample(1)
@pytest.mark.parametrize("verb", WRITERS, ids=lambda verb: verb[0] + (" html" if "--html" in verb else ""))
def test_a_file_of_another_kind_stays(
    verb: list[str], tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("notes.md", "thesis"):
        out = tmp_path / name
        out.write_text("of a year")
        assert write(verb, out, tables) == FAILED
        assert "exists already" in capsys.readouterr().err
        assert out.read_text() == "of a year"
    empty = tmp_path / "empty"  # as mktemp makes it
    empty.touch()
    assert write(verb, empty, tables) in (DONE, 1)
    assert empty.read_bytes()


def test_a_table_is_no_place_for_an_answer(
    tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = ["sql", str(tables), "from api_calls", "-o"]
    before = (tables / "groups.parquet").read_bytes()
    assert run([*query, str(tables / "groups.parquet"), "--force"]) == FAILED
    assert "is an input table" in capsys.readouterr().err
    assert (tables / "groups.parquet").read_bytes() == before
    other = tmp_path / "other"
    shutil.copytree(tables, other)
    assert run([*query, str(other / "groups.parquet")]) == FAILED
    assert "is a table of kwsniff" in capsys.readouterr().err
    assert run([*query, str(tmp_path / "groups.parquet")]) == DONE
    assert run([*query, str(tmp_path / "groups.parquet")]) == DONE


@pytest.mark.parametrize(
    "verb",
    [["why"], ["upgrade", "4.3"], ["analyze"], ["show"], ["slice", "--error", "any", "-o", "x.pcapng"],
     ["analyze", "--json"]],
    ids=" ".join,
)  # fmt: skip
def test_a_capture_and_a_folder_of_tables_are_one_line(
    verb: list[str], tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for inputs in ([str(CAPTURE), str(tables)], [str(tables), str(CAPTURE)]):
        assert run([*verb, *inputs]) == FAILED
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith(f"kwsniff: error: {tables} is a folder of tables")
        assert said.err.count("\n") == 1


def test_captures_beside_tables_are_read(tables: Path, tmp_path: Path) -> None:
    """`analyze rotated/ -o rotated/`, twice."""
    for _ in range(2):
        shutil.copy(CAPTURE, tmp_path / "capture.pcap")
        assert run(["analyze", str(tmp_path), "-o", str(tmp_path)]) == DONE
