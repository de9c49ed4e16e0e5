"""Captures of other formats are named, with the command that turns them into pcapng."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

import kwsniff
from kwsniff.sources.foreign_formats import explain_start

CAPTURE = Path(__file__).parents[2] / "captures" / "incidents" / "broker_stalled" / "broker.pcap"


@pytest.mark.parametrize("written_as", ["snoop", "netmon1", "netmon2", "ngsniffer"])
def test_what_another_tool_wrote_is_named_and_its_command_works(written_as: str, tmp_path: Path) -> None:
    """Wireshark's editcap writes the format, and reads it by the command that kwsniff names."""
    if shutil.which("editcap") is None:
        pytest.skip("editcap is not installed")
    foreign = tmp_path / "of tcpdump.cap"
    command = ["editcap", "-F", written_as, str(CAPTURE), str(foreign)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"editcap cannot write it: {done.stderr.splitlines()[0]}")
    with pytest.raises(kwsniff.CaptureError, match="does not read; convert it: editcap ") as failed:
        kwsniff.analyze(foreign)
    found = re.search(r"convert it: (.*)$", str(failed.value))
    assert found is not None
    subprocess.run(shlex.split(found[1]), capture_output=True, check=True)
    assert kwsniff.analyze(foreign.with_suffix(".pcapng")).summary["rows"]["api_calls"] > 0


def test_other_files_are_no_captures() -> None:
    assert explain_start("a.png", b"\x89PNG\r\n").startswith("is not a capture (begins with 89 50 4e 47)")
    assert "perhaps an ERF capture" in explain_start("a.erf", bytes(16))
    assert explain_start("a.pcap.gz", b"") == "it cannot be decompressed; was it copied completely?"
