"""The command line as a whole: help, version, exit status, one line per error."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import import_module, metadata
from pathlib import Path

import pytest

from kwsniff.cli.help_text import GROUPS
from kwsniff.cli.main import VERBS, main, make_parser, run
from kwsniff.errors import CaptureError


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_has_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run([verb, "--help"] if verb else ["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert f"kwsniff {verb}".strip() in text
    assert "example" in text
    assert "%(" not in text


@pytest.mark.parametrize("columns", [60, 80, 200])
@pytest.mark.parametrize("verb", ["", *VERBS])
def test_no_line_of_help_is_wider_than_the_terminal_or_80_columns(
    verb: str, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit):
        run(["help", verb] if verb else ["--help"])
    widest = min(columns, 80)
    wide = [line for line in capsys.readouterr().out.splitlines() if len(line) > widest]
    assert [line for line in wide if len(shlex.split(line)) > 1] == []  # one word is never broken


@pytest.mark.parametrize("verb", VERBS)
def test_common_options_are_listed_before_advanced_ones(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run(["help", verb])
    titles = [line[:-1] for line in capsys.readouterr().out.splitlines() if re.fullmatch(r"\w[^.]*:", line)]
    assert titles[-1] == "examples"
    groups = [title for title in titles if title in GROUPS]
    assert groups == sorted(groups, key=GROUPS.index)
    assert all(titles.index("options") < titles.index(title) for title in groups)


def test_an_example_that_is_too_long_for_a_line_is_still_a_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        run(["help", "pipeline"])
    examples = capsys.readouterr().out.partition("examples:\n")[2]
    joined = examples.replace("\\\n", "")
    long = next(line for line in joined.splitlines() if "--conf spark.driver.memory=4g" in line)
    assert long.split()[:2] == ["kwsniff", "pipeline"]
    assert long.split()[-2:] == ["--table", "api_calls,latency_minutes"]
    assert all(len(line) <= 80 for line in examples.splitlines())


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom kwsniff.cli.main import run\n"
        "try: run(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'pyarrow', 'pandas', 'rich', 'scapy', 'pyshark', 'importlib.metadata'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]


def test_version_is_that_of_pyproject(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(metadata, "version", {"kwsniff": PROJECT["version"]}.__getitem__)
    with pytest.raises(SystemExit) as ended:
        run(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.partition(" (commit ")[0].rstrip() == f"kwsniff {PROJECT['version']}"


def test_the_version_of_a_bare_source_tree_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unknown(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", unknown)
    with pytest.raises(SystemExit) as ended:
        run(["--version"])
    assert ended.value.code == 0
    assert "not installed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("analyze", "the following arguments are required: CAPTURE; see kwsniff analyze --help"),
        ("pipeline x", "the following arguments are required: -o/--output; see kwsniff pipeline --help"),
        ("analyze x --prot 9092", "unknown option --prot; did you mean --port"),
        ("show x --conection=1", "unknown option --conection; did you mean --connection?"),
        ("why x --zzzz", "unknown option --zzzz; kwsniff why --help lists them"),
        ("sql tables query more", "unexpected argument 'more'; see kwsniff sql --help"),
        ("live -i lo --tool tcpdum", "argument --tool: invalid choice: 'tcpdum' "),
    ],
)
def test_wrong_usage_is_one_line_and_2(arguments: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments.split()) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"kwsniff: error: {told}")
    assert line.count("\n") == 1


def test_without_a_verb_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """The status is that of wrong usage: a script whose variable is empty must not go on."""
    assert run([]) == 2
    out = capsys.readouterr().out
    assert all(f"\n    {verb} " in out for verb in VERBS)


@pytest.mark.parametrize("verb", [None, "why", "sql"])
def test_help_is_a_verb(verb: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for arguments in (["help"], ["--help"]) if verb is None else (["help", verb], [verb, "--help"]):
        with pytest.raises(SystemExit) as ended:
            run(arguments)
        assert ended.value.code == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert shown[0].startswith(f"usage: kwsniff {verb or '[options] VERB'}")


def test_a_verb_that_is_none_is_one_line_and_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fly"]) == 2
    assert capsys.readouterr().err.startswith("kwsniff: error: unknown verb 'fly'; ")


def test_an_error_is_one_line_and_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", "not-there.pcap"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "kwsniff: error: not-there.pcap: no such file; check the path\n"


def _replace_run(monkeypatch: pytest.MonkeyPatch, failure: BaseException) -> None:
    def fail(_: object) -> int:
        raise failure

    parser = make_parser()
    monkeypatch.setattr("kwsniff.cli.main.make_parser", lambda _: parser)
    for action in parser._actions:
        if isinstance(action.choices, dict):
            action.choices["analyze"].set_defaults(run=fail)


@pytest.mark.parametrize(("failure", "status"), [(KeyboardInterrupt(), 130), (CaptureError("bad"), 2)])
def test_interruption_and_errors_have_their_status(
    monkeypatch: pytest.MonkeyPatch, failure: BaseException, status: int
) -> None:
    _replace_run(monkeypatch, failure)
    assert run(["analyze", "x"]) == status


def test_a_defect_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    _replace_run(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        run(["analyze", "x"])


def test_a_reader_that_has_enough_is_no_error() -> None:
    command = [sys.executable, "-m", "kwsniff.cli.main", "explain", "error", "6"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_script_is_this_function() -> None:
    module, _, function = PROJECT["scripts"]["kwsniff"].partition(":")
    assert getattr(import_module(module), function) is main
