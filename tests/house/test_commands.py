"""The command line as a stranger meets it: help with examples, nothing heavy, pages that tell the truth."""

import re
import subprocess
import sys
import tomllib

import pytest

from kwsniff.cli.main import VERBS, make_parser

from .tree import DOCS, ROOT

HEAVY = ("numpy", "pandas", "pyarrow", "pyshark", "pyspark", "rich", "scapy")
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


def test_python_of_the_readme_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        command = [sys.executable, "-W", "error", "-c", block]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "NOT_LEADER_OR_FOLLOWER" in done.stdout


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
    assert set(needs) == {"numpy", "pandas", "pyarrow", "rich"}


@pytest.mark.parametrize(
    "page",
    ["anomalies", "coverage", "decisions", "limits", "live", "performance", "spark", "tables", "tls"],
)
def test_a_page_of_the_docs_is_found_from_the_readme(page: str) -> None:
    assert (DOCS / f"{page}.md").is_file()
    assert f"docs/{page}.md" in README
