"""Names as people give them: paths, `file:` URIs, and URIs of storage that kwsniff does not reach."""

import shutil
from pathlib import Path

import pytest

from kwsniff.cli.main import run
from kwsniff.errors import UsageError
from kwsniff.sources.paths import local_path

CAPTURE = Path(__file__).parents[2] / "captures" / "first_steps" / "capture.pcap"
ELSEWHERE = ("s3a://bucket/x", "hdfs://namenode:8020/x", "gs://bucket/x", "https://host/x", "file://host/x")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("x.pcap", "x.pcap"),
        ("-", "-"),
        ("file:///data/x.pcap", "/data/x.pcap"),
        ("file:/data/x.pcap", "/data/x.pcap"),
        ("FILE://localhost/data/x", "/data/x"),
        ("file:///data/two%20words", "/data/two words"),
        ("file:///data/a?b#c", "/data/a?b#c"),
        ("file:x.pcap", "file:x.pcap"),
        ("/data/100%25", "/data/100%25"),
        ("10:/x", "10:/x"),
        ("./s3a://x", "./s3a://x"),
        (Path("/data/x"), "/data/x"),
        (Path("file:///data/x"), "/data/x"),
    ],
)
def test_a_path_is_what_it_was_and_a_file_uri_is_its_path(given: str | Path, meant: str) -> None:
    assert local_path(given) == meant


@pytest.mark.parametrize("given", [*ELSEWHERE, "file://host", Path("s3a://bucket/x")])
def test_what_is_elsewhere_is_refused(given: str | Path) -> None:
    with pytest.raises(UsageError, match=r"^\S+: "):
        local_path(given)


@pytest.mark.parametrize("given", ELSEWHERE)
@pytest.mark.parametrize(
    "command",
    [
        ["analyze", "URI"],
        ["analyze", str(CAPTURE), "-o", "URI"],
        ["show", "URI"],
        ["live", "-i", "lo", "-o", "URI"],
        ["pipeline", "--stream", "URI", "-o", "OUT"],
        ["pipeline", "--stream", "IN", "-o", "URI"],
    ],
    ids=lambda command: " ".join(word for word in command if not word.startswith("/")),
)
def test_every_verb_refuses_it_in_one_line_and_makes_nothing(
    given: str,
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    words = {"URI": given, "OUT": "out", "IN": "."}
    assert run([words.get(word, word) for word in command]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith(f"kwsniff: error: {given}: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", ["https://host/x", "file://host/x", "s3a:///x"])
@pytest.mark.parametrize(
    "command", [["URI", "-o", "OUT"], [str(CAPTURE), "-o", "URI"]], ids=["input", "output"]
)
def test_a_store_that_the_pipeline_does_not_know_is_refused_unasked(
    given: str,
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["pipeline", *({"URI": given, "OUT": "out"}.get(word, word) for word in command)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith(f"kwsniff: error: {given}: ")
    assert list(tmp_path.iterdir()) == []


def test_a_file_uri_works_as_input_and_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = tmp_path / "first steps.pcap"
    shutil.copy(CAPTURE, capture)
    out = tmp_path / "out"
    assert run(["analyze", capture.as_uri(), "-o", out.as_uri()]) == 0
    assert (out / "api_calls.parquet").is_file()
    assert f"{capture}: 146 packets" in capsys.readouterr().out
    assert run(["show", capture.as_uri(), "-n", "1"]) == 0
