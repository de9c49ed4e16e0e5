"""TAB in real shells, and the manual page as man shows it."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from kwsniff.cli import main
from kwsniff.cli.main import VERBS

CAPTURES = Path(__file__).parents[2] / "captures"

# What is typed before TAB -> what it offers, or what the line becomes.
TYPED = [
    ("kwsniff ana", {"analyze"}),
    ("kwsniff s", {"show", "slice", "sql"}),
    ("kwsniff analyze --ta", {"--table"}),
    ("kwsniff analyze --table ap", {"api_calls", "api_ranges"}),
    ("kwsniff show --error NOT_LE", {"NOT_LEADER_OR_FOLLOWER"}),
    ("kwsniff explain Fet", {"Fetch", "FetchSnapshot"}),
    ("kwsniff sql --question slow_p", {"slow_producers"}),
    ("kwsniff compare first_steps/capture.pcap first_steps/cap", {"first_steps/capture.pcap"}),
]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shells")
    for shell in ("bash", "zsh", "fish"):
        with (folder / shell).open("w") as file, pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdout", file)
            with pytest.raises(SystemExit) as stop:
                main.run(["--completion", shell])
        assert stop.value.code == 0
    return folder


def asked(shell: str, text: str) -> str:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run(
        [shell, "-f", "-c", text] if shell == "zsh" else [shell, "-c", text],
        cwd=CAPTURES,
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    return done.stdout


@pytest.mark.parametrize(
    ("typed", "offered"), TYPED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_bash_offers_what_fits(scripts: Path, typed: str, offered: set[str]) -> None:
    words = f"COMP_WORDS=({typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))"
    text = (
        f'eval "$(<{shlex.quote(str(scripts / "bash"))})"; {words}; complete -p kwsniff; _shtab_kwsniff; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    lines = asked("bash", text).splitlines()
    assert "-F _shtab_kwsniff" in lines[0]
    assert set(lines[1:]) == offered


@pytest.mark.parametrize(
    ("typed", "offered"), TYPED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_fish_offers_what_fits(scripts: Path, typed: str, offered: set[str]) -> None:
    text = f"source {shlex.quote(str(scripts / 'fish'))}; complete -C {shlex.quote(typed)}"
    lines = asked("fish", text).splitlines()
    assert {line.partition("\t")[0] for line in lines} == offered


def test_zsh_completes_words_of_one_meaning(scripts: Path) -> None:
    """A zsh with a terminal of its own, into which is typed; Ctrl-X keeps what TAB has made of the line."""
    single = [(typed, *offered) for typed, offered in TYPED if len(offered) == 1]
    kept, script = shlex.quote(str(scripts / "kept")), shlex.quote(str(scripts / "zsh"))
    setup = scripts / "setup"
    setup.write_text(
        f'autoload -Uz compinit; compinit -D; eval "$(<{script})"; PS1=; setopt no_beep\n'
        f"keep() {{ print -r -- $BUFFER >>{kept}; BUFFER= }}; zle -N keep; bindkey '^X' keep\n"
    )
    lines = [
        f"zmodload zsh/zpty; touch {kept}",
        "zpty -b z 'env TERM=dumb zsh -f -i'",
        f"zpty -w z {shlex.quote(f'source {shlex.quote(str(setup))}')}",
        *(f"zpty -n -w z {shlex.quote(typed)}$'\\t'$'\\x18'" for typed, _ in single),
        # What it draws has to be read, or it waits for that.
        f"until (( $(wc -l <{kept}) == {len(single)} )); do zpty -rt z drawn; sleep 0.1; done",
        f"zpty -d z; cat {kept}",
    ]
    made = [line.rstrip() for line in asked("zsh", "\n".join(lines)).splitlines()]
    assert made == [f"{typed.rpartition(' ')[0]} {offered}" for typed, offered in single]


def test_the_manual_page_has_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main.run(["--man"])
    assert stop.value.code == 0
    page = capsys.readouterr().out
    assert page.startswith('.TH KWSNIFF "1"')
    for verb in VERBS:
        assert re.search(rf"^\.SH COMMAND .*kwsniff {verb}", page, re.MULTILINE)
    if shutil.which("man") is None:
        return
    shown = subprocess.run(
        ["man", "--warnings", "-l", "-"], input=page, capture_output=True, text=True, check=True,
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    assert shown.stderr == ""
    assert "exit status: 0 done" in " ".join(shown.stdout.split())


def test_the_manual_page_is_found_by_what_it_is_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`whatis` and `apropos` take name and purpose from the first section."""
    with pytest.raises(SystemExit):
        main.run(["--man"])
    page = tmp_path / "kwsniff.1"
    page.write_text(capsys.readouterr().out)
    if shutil.which("lexgrog") is None:
        pytest.skip("man-db is not installed")
    done = subprocess.run(["lexgrog", str(page)], capture_output=True, text=True, check=False)
    assert re.search(r'"kwsniff - .*Kafka.*"', done.stdout), done


def test_a_shell_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--completion", "csh"]) == 2
    assert "invalid choice: 'csh'" in capsys.readouterr().err
