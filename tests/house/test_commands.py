"""The command line as a stranger meets it: help with examples, nothing heavy, pages that tell the truth."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from kwsniff.cli.main import VERBS, make_parser

from .tree import ROOT

HEAVY = ("cryptography", "duckdb", "numpy", "pandas", "pyarrow", "pyshark", "pyspark", "rich", "scapy")
README = (ROOT / "README.md").read_text("utf-8")


def commands(page: str) -> list[str]:
    """Lines of a page's sh blocks."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_help_with_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        make_parser().parse_args([verb, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    examples = text.partition("example")[2]
    assert re.search(rf"^  kwsniff {verb}\b", examples, re.MULTILINE)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_in_the_readme(verb: str) -> None:
    assert f"kwsniff {verb}" in README


def test_examples_of_the_readme_are_command_lines_that_exist() -> None:
    used = re.findall(r"(?:^|/| )kwsniff (?!VERB)(\w+) ([^|>\n`]*)", "\n".join(commands(README)))
    assert used
    for verb, rest in used:
        make_parser().parse_args([verb, *rest.partition(" #")[0].split()])


def test_commands_of_the_readme_are_what_ci_runs() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    setups = [line for line in commands(README) if line.startswith("python3 -m venv")]
    assert len(setups) == 2
    assert [line for line in setups if line not in script] == []


def test_the_workflow_runs_the_readme_on_a_bare_debian() -> None:
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8")
    (packages,) = re.findall(r"`apt-get install ([^`]*)`", README)
    assert f"apt-get install -y git {packages}" in workflow
    assert [line for line in commands(README) if line.startswith("python3 -m venv")] == re.findall(
        r"(?m)^ +- run: .*?(python3 -m venv .*)$", workflow
    )


def test_a_bare_debian_gets_what_the_readme_says() -> None:
    """The lines with which .ci/bare takes packages and commands from README.md."""
    script = (ROOT / ".ci" / "bare").read_text("utf-8")
    taking = [line for line in script.splitlines() if "README.md)" in line]
    taken = subprocess.run(
        ["bash", "-euc", "\n".join([*taking, 'printf "%s\\n" "$packages" "${commands[@]}"'])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert taken[0].split() == ["python3", "python3-dev", "python3-venv", "gcc", "g++"]
    assert taken[1:] == [line for line in commands(README) if line.startswith("python3 -m venv")]
    refused = subprocess.run(
        ["bash", str(ROOT / ".ci" / "bare"), "11"], capture_output=True, text=True, check=False
    )
    assert (refused.returncode, refused.stderr) == (2, ".ci/bare: give the number of a Debian: 12 or 13\n")


@pytest.mark.slow
def test_ci_runs_the_tests_of_the_readme_without_tools_it_does_not_ask_for(tmp_path: Path) -> None:
    """The functions of .ci/run: a PATH with Python and the compilers, without the tools; then all is back."""
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    lines = script.splitlines()
    (tests,) = (line for line in commands(README) if "-m pytest" in line)
    assert lines.index("hide_tools") < lines.index(tests) < lines.index("show_tools")
    assert lines.index("export PYTEST_ADDOPTS=--whole") < lines.index(tests)
    functions = script[script.index("tools=(") : script.index("work=$(mktemp")]
    for tool in ("tshark", "tcpdump", "tmux", "dumpcap", "java"):
        (tmp_path / tool).write_text("#!/bin/sh\n")
        (tmp_path / tool).chmod(0o755)
    tools = "tshark tcpdump tmux dumpcap java python3 gcc g++ sh"
    asked = f"for tool in {tools}; do command -v $tool; done; echo $JAVA_HOME;"
    hidden = f"set -euo pipefail; work=$1; mkdir $work/bin\n{functions}\nhide_tools; set +eu; {asked}"
    shown = f"{hidden} set -u; show_tools; {asked}"
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "JAVA_HOME": "/java"}
    said = {}
    for number, text in enumerate((hidden, shown)):
        (tmp_path / str(number)).mkdir()
        done = subprocess.run(
            ["bash", "-c", text, "bash", str(tmp_path / str(number))],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        said[number] = done.stdout.splitlines()
    bin_ = tmp_path / "0" / "bin"
    assert said[0] == [*(str(bin_ / name) for name in ("python3", "gcc", "g++", "sh")), ""]
    assert said[1][5:10] == [
        str(tmp_path / tool) for tool in ("tshark", "tcpdump", "tmux", "dumpcap", "java")
    ]
    assert said[1][-1] == "/java"
    executable = [str(bin_ / "python3"), "-c", "import sys; print(sys.executable)"]
    found = subprocess.run(executable, capture_output=True, text=True, check=True).stdout.strip()
    assert not Path(found).is_relative_to(tmp_path)


@pytest.mark.slow
def test_what_skips_is_written_down_and_can_be_run_again(tmp_path: Path) -> None:
    test = "tests/pipeline/test_formats.py::test_editcap_agrees_that_the_formats_are_the_same"
    skipped = tmp_path / "skipped"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PATH": str(tmp_path), "KWSNIFF_SKIPPED": str(skipped)}
    modules = [test.partition("::")[0], "-k", "editcap or pcapng"]
    subprocess.run([*command, *modules], cwd=ROOT, env=environment, check=True, capture_output=True)
    assert skipped.read_text("utf-8") == f"{test}\n"
    again = subprocess.run([*command, f"@{skipped}"], cwd=ROOT, check=True, capture_output=True, text=True)
    assert re.search(r"^1 (passed|skipped) in", again.stdout, re.MULTILINE)


def test_python_of_the_readme_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        command = [sys.executable, "-W", "error", "-c", block]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "broker_stalled" in done.stdout


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 250


def test_help_costs_nothing_heavy() -> None:
    script = (
        "import sys, kwsniff\n"
        "from kwsniff.cli.main import make_parser\n"
        "make_parser().format_help()\n"
        f"print([name for name in {HEAVY} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_extra_and_dependency_is_named_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needs = [re.match(r"[\w.-]+", need)[0] for need in project["dependencies"]]  # type: ignore[index]
    assert len(needs) == len(set(needs))
    assert set(needs) == {
        "cryptography", "duckdb", "jinja2", "numpy", "pandas", "pyarrow", "rich", "shtab",
    }  # fmt: skip
