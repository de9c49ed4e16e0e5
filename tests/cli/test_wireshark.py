"""`kwsniff wireshark`: where plugin and indexes go, and what it never touches."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kwsniff.cli.main import run
from tests.traffic.files import frames, pcap
from tests.traffic.scenes import two_clients
from tests.wireshark.seen import needs_tshark

pytestmark = pytest.mark.sample_tests(4)

PLUGINS = Path(".local/lib/wireshark/plugins")
INDEXES = Path(".config/wireshark/kwsniff")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user who has nothing."""
    home = tmp_path / "home of a user"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "WIRESHARK_CONFIG_DIR", "WIRESHARK_PLUGIN_DIR"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def without_tshark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)


@pytest.fixture
def tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    (tmp_path / "shop.pcap").write_bytes(pcap(frames(two_clients().packets())))
    assert run(["analyze", str(tmp_path / "shop.pcap"), "-o", str(tmp_path / "tables")]) == 0
    capsys.readouterr()
    return tmp_path / "tables"


@needs_tshark
def test_what_is_installed_shows_calls_until_it_is_removed(
    home: Path, tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["wireshark", str(tables), "--install"]) == 0
    plugin = home / PLUGINS / "kwsniff.lua"
    said = capsys.readouterr()
    assert f"installed {plugin}" in said.out
    assert said.err == ""
    capture = str(tables.with_name("shop.pcap"))
    command = ["tshark", "-r", capture, "-Y", "kwsniff.call", "-T", "fields", "-e", "kwsniff.api"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert shown.count("JoinGroup") == 2
    assert run(["wireshark", "--remove"]) == 0
    assert f"removed {plugin} and 1 index file in {home / INDEXES}" in capsys.readouterr().out
    assert [path for path in home.rglob("*") if path.is_file()] == []
    assert not (home / INDEXES).exists()
    gone = subprocess.run(command, capture_output=True, text=True, check=False)
    assert gone.stdout == ""
    assert run(["wireshark", "--remove"]) == 1
    assert capsys.readouterr().out == "nothing to remove\n"


@pytest.mark.usefixtures("without_tshark")
def test_folders_without_tshark(home: Path, tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(["wireshark", str(tables), "--install"]) == 0
    assert (home / PLUGINS / "kwsniff.lua").is_file()
    assert len(list((home / INDEXES).glob("*.index"))) == 1
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "settings"))
    monkeypatch.setenv("WIRESHARK_PLUGIN_DIR", str(home / "plugins"))
    assert run(["wireshark", str(tables), "--install"]) == 0
    assert (home / "plugins" / "kwsniff.lua").is_file()
    assert len(list((home / "settings" / "wireshark" / "kwsniff").iterdir())) == 1
    monkeypatch.setenv("WIRESHARK_CONFIG_DIR", str(home / "other"))
    assert run(["wireshark", str(tables)]) == 0
    assert len(list((home / "other" / "kwsniff").iterdir())) == 1


@needs_tshark
def test_folders_are_those_of_tshark(home: Path, tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "settings"))
    assert run(["wireshark", str(tables), "--install"]) == 0
    told = subprocess.run(["tshark", "-G", "folders"], capture_output=True, text=True, check=True).stdout
    folders = dict(line.split(":", 1) for line in told.splitlines())
    assert Path(folders["Personal Lua Plugins"].strip(), "kwsniff.lua").is_file()
    assert len(list(Path(folders["Personal configuration"].strip(), "kwsniff").iterdir())) == 1


@pytest.mark.usefixtures("without_tshark")
def test_files_of_others_stay(home: Path, tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    foreign = home / PLUGINS / "kwsniff.lua"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("-- mine\n")
    for words in (["--install"], ["--remove"], [str(tables), "--install"]):
        assert run(["wireshark", *words]) == 2
        assert capsys.readouterr().err == f"kwsniff: error: {foreign} is not kwsniff's plugin; move it away\n"
    assert foreign.read_text() == "-- mine\n"
    foreign.unlink()
    foreign.symlink_to(home / "nothing")
    assert run(["wireshark", "--install"]) == 2
    foreign.unlink()
    assert run(["wireshark", str(tables), "--install"]) == 0
    others = [home / INDEXES / "notes.txt", home / INDEXES / "1-1.index", home / PLUGINS / "other.lua"]
    for path in others:
        path.write_text("mine")
    assert run(["wireshark", "--remove"]) == 0
    assert sorted(path for path in home.rglob("*") if path.is_file()) == sorted(others)


@pytest.mark.usefixtures("without_tshark")
def test_an_older_plugin_and_older_indexes_are_renewed(home: Path, tables: Path) -> None:
    assert run(["wireshark", str(tables), "--install"]) == 0
    plugin = home / PLUGINS / "kwsniff.lua"
    (index,) = (home / INDEXES).iterdir()
    new = plugin.read_text(), index.read_bytes()
    plugin.write_text(new[0].splitlines(keepends=True)[0])
    index.write_bytes(b"")
    assert run(["wireshark", str(tables), "--install"]) == 0
    assert (plugin.read_text(), index.read_bytes()) == new
    assert list((home / INDEXES).iterdir()) == [index]


@pytest.mark.usefixtures("without_tshark", "home")
def test_without_the_plugin_a_note_names_the_command(
    tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["wireshark", str(tables)]) == 0
    said = capsys.readouterr()
    assert re.fullmatch(r"19 messages of 1 capture, indexed in .*; open it in Wireshark, .*\n", said.out)
    assert said.err == "kwsniff: note: the plugin is not installed: kwsniff wireshark --install\n"
    assert run(["wireshark", str(tables), "-o", str(tmp_path / "indexes")]) == 0
    assert f"-o kwsniff.index:{tmp_path / 'indexes'}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "give a folder of tables, --install or --remove"),
        (["DIR", "--remove"], "--remove takes no folder of tables"),
        (["--install", "-o", "x"], "-o needs a folder of tables"),
        (["DIR"], "DIR has no tables of kwsniff"),
    ],
)
@pytest.mark.usefixtures("without_tshark")
def test_wrong_words_are_one_line(
    words: list[str], error: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["wireshark", *words]) == 2
    said = capsys.readouterr().err
    assert error in said
    assert said.count("\n") == 1
    assert list(home.iterdir()) == []


@pytest.mark.usefixtures("without_tshark")
def test_a_folder_that_cannot_be_made_is_one_line(
    home: Path, tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".config").write_text("a file")
    assert run(["wireshark", str(tables)]) == 2
    assert "cannot make this folder" in capsys.readouterr().err
