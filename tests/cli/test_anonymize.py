"""``kwsniff anonymize``: its files, keys and refusals. What is in them: tests/anonymize."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest

from kwsniff.cli.main import run
from tests.anonymize.renaming import read_map

CAPTURES = Path(__file__).parents[2] / "captures"
FIRST_STEPS = CAPTURES / "first_steps" / "capture.pcap"


def anonymized(folder: Path, *words: str, status: int = 0, name: str = "public.pcapng") -> Path:
    out = folder / name
    assert run(["anonymize", str(FIRST_STEPS), "-o", str(out), *words]) == status
    return out


def test_one_key_gives_one_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = str(tmp_path / "site.key")
    one = anonymized(tmp_path, "--key", key)
    assert stat.S_IMODE(Path(key).stat().st_mode) == 0o600
    other = anonymized(tmp_path, "--key", key, name="again.pcapng")
    assert one.read_bytes() == other.read_bytes()
    assert "key is random" not in capsys.readouterr().out
    assert anonymized(tmp_path, name="other.pcapng").read_bytes() != one.read_bytes()
    assert "key is random" in capsys.readouterr().out


def test_the_map_is_for_its_owner_only(tmp_path: Path) -> None:
    names = tmp_path / "names.tsv"
    out = anonymized(tmp_path, "--map", str(names))
    assert stat.S_IMODE(names.stat().st_mode) == 0o600
    found = read_map(names)
    assert {"orders", "billing", "shop-producer"} <= found.keys()
    assert all(len(name) == len(new) and new.encode() in out.read_bytes() for name, new in found.items())


def test_json_counts_what_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = anonymized(tmp_path, "--json")
    printed = json.loads(capsys.readouterr().out)
    # The recording's about.toml: 34 calls; tcpdump counts its packets.
    assert printed["output"] == str(out)
    assert (printed["packets"], printed["messages"]) == (146, 68)
    assert printed["blank_messages"] == printed["undecodable_batches"] == 0


def test_several_captures_become_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(FIRST_STEPS, folder / "a.pcap")
    shutil.copy(CAPTURES / "idle" / "capture.pcap", folder / "b.pcap")
    assert run(["anonymize", str(folder), "-o", str(tmp_path / "public.pcapng"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["packets"] == 146 + 71


def test_nothing_in_the_time_range_writes_no_file(tmp_path: Path) -> None:
    assert not anonymized(tmp_path, "--since", "2030-01-01", status=1).exists()
    assert list(tmp_path.iterdir()) == []


def test_a_part_by_time_has_its_packets_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    part = ["--since", "+1s", "--until", "+2s"]
    anonymized(tmp_path, *part, "--json")
    packets = json.loads(capsys.readouterr().out)["packets"]
    assert run(["slice", str(FIRST_STEPS), *part, "-o", str(tmp_path / "part.pcapng"), "--json"]) == 0
    assert 0 < packets == json.loads(capsys.readouterr().out)["packets"] < 146


def test_slice_anonymizes_what_it_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, names = str(tmp_path / "site.key"), tmp_path / "names.tsv"
    filters = ["slice", str(FIRST_STEPS), "--error", "any", "--context", "all", "--json"]
    assert run([*filters, "-o", str(tmp_path / "some.pcapng")]) == 0
    plain = json.loads(capsys.readouterr().out)
    public = tmp_path / "public.pcapng"
    assert run([*filters, "-o", str(public), "--anonymize", "--key", key, "--map", str(names)]) == 0
    sliced = json.loads(capsys.readouterr().out)
    assert (sliced["packets"], sliced["calls"]) == (plain["packets"], plain["calls"])
    renamed = read_map(names)
    data = public.read_bytes()
    assert b"ordres" in (tmp_path / "some.pcapng").read_bytes()
    assert b"ordres" not in data
    assert renamed["ordres"].encode() in data
    # The whole capture by the same key has the same names.
    anonymized(tmp_path, "--key", key, "--map", str(names), name="whole.pcapng")
    assert renamed.items() <= read_map(names).items()


@pytest.mark.parametrize("words", [["--anonymize", "--secrets"], ["--key", "k"], ["--map", "m.tsv"]])
def test_slice_refuses_options_that_need_or_exclude_each_other(words: list[str], tmp_path: Path) -> None:
    out = tmp_path / "some.pcapng"
    assert run(["slice", str(FIRST_STEPS), "--error", "any", "-o", str(out), *words]) == 2
    assert not out.exists()


@pytest.mark.parametrize("text", ["", "short"])
def test_a_key_that_can_be_guessed_is_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "site.key"
    key.write_text(text)
    assert not anonymized(tmp_path, "--key", str(key), status=2).exists()
    assert "fewer than 16 bytes" in capsys.readouterr().err


def test_captures_and_foreign_files_are_not_replaced(tmp_path: Path) -> None:
    capture = tmp_path / "capture.pcapng"
    shutil.copy(CAPTURES / "codecs" / "capture.pcapng", capture)
    assert run(["anonymize", str(capture), "-o", str(capture), "--force"]) == 2
    anonymized(tmp_path, status=2, name=capture.name)
    note = tmp_path / "names.txt"
    note.write_text("mine")
    anonymized(tmp_path, "--map", str(note), status=2)
    assert note.read_text() == "mine"


def test_an_earlier_output_is_replaced(tmp_path: Path) -> None:
    first = anonymized(tmp_path).read_bytes()
    assert anonymized(tmp_path).read_bytes() != first


def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.pcap"
    broken.write_bytes(b"no capture at all")
    assert run(["anonymize", str(broken), "-o", str(tmp_path / "public.pcapng")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "public.pcapng").exists()
