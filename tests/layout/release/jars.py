"""A release's message definitions and error codes, from its jars."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

_JAVA = Path(__file__).parent / "ListErrors.java"
_PATIENCE_S = 120


def unpack(jars: Path, folder: Path) -> None:
    """Every message definition in a folder of jars, in a folder per module."""
    for jar in sorted(jars.glob("kafka-*.jar")):
        module = jar.name.removeprefix("kafka-").rpartition("-")[0]
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.endswith(".json") and b'"validVersions"' in (text := archive.read(name)):
                    path = folder / {"clients": "message"}.get(module, module) / Path(name).name
                    path.parent.mkdir(exist_ok=True)
                    path.write_bytes(text)


def list_errors(jars: Path) -> str:
    """Lines of code, name, and whether it is retriable."""
    command = ["java", "-cp", f"{jars}/*", str(_JAVA)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=_PATIENCE_S).stdout
