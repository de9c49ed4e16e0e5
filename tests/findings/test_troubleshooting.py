"""docs/troubleshooting.md: its answers are those of the commands, and name what was done to the system."""

import re
import tomllib

import pytest

from tests.findings.troubleshooting import PAGE, answer, commands, page
from tests.house.tree import ROOT

TEXT = PAGE.read_text("utf-8")
_ABOUT = {each: (ROOT / each.split()[-1]).with_name("about.toml") for each in commands()}
_CAUSES = {
    each: tomllib.loads(path.read_text("utf-8")).get("finding", "")
    for each, path in _ABOUT.items()
    if each.startswith("why ") and path.is_file()
}


@pytest.mark.slow
def test_the_page_is_up_to_date() -> None:
    assert page() == TEXT


@pytest.mark.sample(5)
@pytest.mark.parametrize("command", [each for each, cause in _CAUSES.items() if cause])
def test_an_answer_names_the_cause(command: str) -> None:
    said = answer(command)
    assert _CAUSES[command] in said or "Notes:" in said
    assert f"$ kwsniff {command}\n{said}```" in TEXT


def test_no_recording_and_no_symptom_comes_twice() -> None:
    titles = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)
    assert len({*titles}) == len(titles)
    assert len({*commands()}) == len(commands())
