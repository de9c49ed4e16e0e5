"""One writer at a time, also where a store fails while a claim is written anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwsniff.errors import OutputError
from kwsniff.spark import output_lock
from kwsniff.spark.output_lock import FOLDER, Claim
from kwsniff.spark.storage import Place


def test_a_claim_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_lock, "BEAT_S", 0.2)
    monkeypatch.setattr(output_lock, "PATIENCE_S", 5)
    monkeypatch.setattr(output_lock, "_LOOK_S", 0.1)
    monkeypatch.setattr(output_lock, "_AGAIN_S", 0.01)
    read, asked = Place.read_text, list[str]()
    failing: list[Exception] = [ValueError("I/O operation on closed file"), OSError("InvalidRange")]

    def torn(place: Place, path: str) -> str | None:
        asked.append(path)
        if failing:
            raise failing.pop()
        return read(place, path)

    monkeypatch.setattr(Place, "read_text", torn)
    place = Place(str(tmp_path))
    with Claim(place, "one") as writer:
        assert asked == []  # the own one is not looked at
        with pytest.raises(OutputError, match="another kwsniff is writing there"), Claim(place, "two"):
            pass
        writer.check()
    assert not failing
    assert asked[:3] == [f"{FOLDER}/one.json"] * 3


def test_a_store_that_keeps_failing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_lock, "_AGAIN_S", 0.01)
    place = Place(str(tmp_path))
    place.write_text(f"{FOLDER}/other.json", "{}")

    def broken(place: Place, path: str) -> str | None:
        raise OSError(path)

    monkeypatch.setattr(Place, "read_text", broken)
    with pytest.raises(OSError, match="other"), Claim(place, "one"):
        pass
    assert place.files(FOLDER) == [f"{FOLDER}/other.json"]
