"""Clients in Go and JavaScript: their libraries fetched and built once, in the cache outside the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from tests.broker.artifacts import CACHE, HERE

FETCH_S = 300
KAFKAJS = "kafkajs@2.2.4"


@lru_cache(None)
def gone(name: str) -> Path:
    """A Go program, built in the cache."""
    folder = _copied(name, f"go-{name}")
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    _run(["go", "build", "-o", "client", "."], folder, environment)
    return folder / "client"


@lru_cache(None)
def noded(name: str) -> Path:
    """A program for node, with KafkaJS beside it."""
    folder = _copied("kafkajs", "kafkajs")
    if not (folder / "node_modules" / "kafkajs").exists():
        _run(["npm", "install", "--no-audit", "--no-fund", KAFKAJS], folder, dict(os.environ))
    return folder / f"{name}.js"


def at_work(software: str, play: str, bootstrap: str) -> list[str]:
    """What starts a play of golang/ or kafkajs/work.js; its settings are further words, key=value."""
    if software == "kafkajs":
        return ["node", str(noded("work")), bootstrap, play]
    return [str(gone("golang")), software, play, bootstrap]


def _copied(name: str, kept: str) -> Path:
    folder = CACHE / kept
    folder.mkdir(parents=True, exist_ok=True)
    for path in (HERE / name).iterdir():
        shutil.copy(path, folder / path.name)
    return folder


def _run(command: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
    subprocess.run(command, cwd=folder, env=environment, check=True, timeout=FETCH_S, capture_output=True)
