"""Pages speak of what there is: links, files, modules, commands, options, limits, findings, questions."""

import argparse
import re
import shlex
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from kwsniff.cli.main import VERBS, make_parser
from kwsniff.cli.options.times import joined_times
from kwsniff.errors import KwsniffError
from kwsniff.findings.docs import findings_page
from kwsniff.findings.rule import load_rules
from kwsniff.findings.sql import load_questions
from kwsniff.limits import Limits

from .tree import DOCS, ROOT, relative, tracked_files

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    ROOT / "captures" / "README.md",
    ROOT / "dissectors" / "README.md",
    *sorted(DOCS.rglob("*.md")),
]
TEXTS = {path: path.read_text("utf-8") for path in PAGES}
FILES = {relative(path) for path in tracked_files()}
FOLDERS = {str(folder) for name in FILES for folder in Path(name).parents}
WRITTEN_ELSEWHERE = re.compile(r"[*<>{}$]|\.\.\.|NN_|NAME|RUN|crashes/")
OTHER_TOOLS = {
    "--archives", "--auto", "--cap-add", "--dist", "--env", "--group", "--hook", "--id", "--net", "--no",
    "--only-binary", "--rm", "--strict", "--user", "--userns", "--sign", "--annotate", "--inject-secrets",
    "--custom", "--image", "--profile", "--target", "--tls-keylog=keys.log", "--whole", "--randomly-seed",
    "--under-min-isr-partitions", "--describe", "--inplace", "--only", "--list", "--unnoticed", "--quick",
    "--keylogfile", "--size", "--keep", "--load", "--seconds", "--rate", "--nice", "--master",
}  # fmt: skip
"""Options of pip, pytest, docker, kubectl, Kafka's tools and tests' own programs."""
PARSER = make_parser()


def blocks(text: str) -> Iterator[str]:
    """Lines of code blocks, fenced or indented; of those that show a screen, what is typed."""
    for kind, block in re.findall(r"^```(sh|text)?\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if kind != "text" or line.startswith("$ "):
                yield line
    yield from re.findall(r"^    (\S.*)$", text, re.MULTILINE)


def inline(text: str) -> list[str]:
    return re.findall(
        r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    )


@cache
def slugs(page: Path) -> set[str]:
    """The anchors that GitHub and the site both give to the headings of a page."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.lower().replace("`", ""))
        slug = plain.replace(" ", "-")
        if slug == re.sub(r"[-\s]+", "-", plain).strip("-"):
            found.add(slug)
    return found


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", TEXTS[page]):
        path, _, anchor = target.partition("#")
        if "://" in path:
            continue
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and anchor not in slugs(there)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_files_that_are_named_exist(page: Path) -> None:
    named = r"(?:^|[\s(\"'])((?:kwsniff|tests|dissectors|docs|captures|\.ci|\.github)/[\w./-]+)"
    found = {each.rstrip("/.,") for code in inline(TEXTS[page]) for each in re.findall(named, code)}
    gone = [each for each in found if not WRITTEN_ELSEWHERE.search(each) and each not in FILES | FOLDERS]
    assert gone == []


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_modules_that_are_run_exist(page: Path) -> None:
    modules = set(re.findall(r"python -m ((?:kwsniff|tests)[\w.]*)", TEXTS[page]))
    assert [name for name in modules if find_spec(name.rstrip(".")) is None] == []


def refused(line: str) -> Iterator[str]:
    """Commands of kwsniff in a line that the command line does not understand."""
    for verb, rest in re.findall(r"(?:^|[/\s$])kwsniff (\w+)((?: [^|;&#\n]*)?)", line):
        if verb in VERBS and rest.strip() and not WRITTEN_ELSEWHERE.search(rest):
            try:
                PARSER.parse_args(joined_times([verb, *shlex.split(rest.removesuffix(" --help"))]))
            except KwsniffError as error:
                yield f"kwsniff {verb}{rest}: {error}"


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_commands_on_pages_are_understood(page: Path) -> None:
    assert [said for line in blocks(TEXTS[page]) for said in refused(line)] == []
    parts = ("are required", "expected one argument")  # in running text a command may lack its inputs
    wrong = [said for code in inline(TEXTS[page]) for said in refused(code)]
    assert [said for said in wrong if not any(part in said for part in parts)] == []


def test_a_command_that_does_not_exist_is_noticed() -> None:
    assert list(refused("$ kwsniff why capture.pcap --htlm x.html"))
    assert not list(refused("$ kwsniff why capture.pcap --html x.html  # a page"))


def options() -> set[str]:
    """All options of all verbs."""
    found = set(PARSER._option_string_actions)
    for action in PARSER._actions:
        if isinstance(action, argparse._SubParsersAction):
            for parser in action.choices.values():
                found |= set(parser._option_string_actions)
    return found


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_options_that_are_named_exist(page: Path) -> None:
    named = {each for code in inline(TEXTS[page]) for each in re.findall(r"(?:^| )(--[a-z][\w-]*)", code)}
    assert named - options() - OTHER_TOOLS == set()


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_limits_findings_and_questions_that_are_named_exist(page: Path) -> None:
    text = TEXTS[page]
    limits = set(re.findall(r"--limit ([a-z_]+)", text))
    findings = set(re.findall(r"--finding ([a-z_]+)", text))
    questions = set(re.findall(r"--question ([a-z_]+)", text))
    assert limits <= set(Limits().as_dict())
    assert findings <= {rule.name for rule in load_rules()}
    assert questions <= set(load_questions())


def test_every_page_is_found_from_the_readme() -> None:
    readme, tables = TEXTS[ROOT / "README.md"], TEXTS[DOCS / "tables.md"]
    linked = set(re.findall(r"\]\((?:docs/)?([\w/]+\.md)\)", readme + tables))
    assert {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} - linked == set()


@pytest.mark.parametrize(
    "word", ["install", "capture", "docker", "kubernetes", "jupyter", "python", "spark", "tls", "tcpdump"]
)
def test_a_newcomers_word_is_in_a_title_of_the_site(word: str) -> None:
    nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]
    titles = re.findall(r"- ([^:\n]+):", nav)
    assert [title for title in titles if word in title.lower()] != []


def test_the_pages_stay_short() -> None:
    """In words as wc counts them, without what commands print: pages that people write, and with those
    that are made."""
    made, printed = "<!-- Made by ", re.compile(r"^```text\n[\s\S]*?^```$", re.MULTILINE)
    written = [
        text
        for path, text in TEXTS.items()
        if made not in text and path.parent.name not in ("captures", "dissectors")
    ]
    assert sum(len(printed.sub("", text).split()) for text in written) < 23_000
    guide = [*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    assert sum(len(printed.sub("", TEXTS[path]).split()) for path in guide) < 40_800
    assert len(TEXTS[ROOT / "CHANGELOG.md"].split()) < 1_200


def test_the_page_of_findings_is_up_to_date() -> None:
    page = (DOCS / "findings.md").read_text("utf-8")
    assert page == findings_page(), "run: python -m kwsniff.findings.docs > docs/findings.md"
