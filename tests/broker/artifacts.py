"""Kafka's jars and our Java programs: fetched with Maven, compiled once, in a cache outside the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("KWSNIFF_KAFKA", Path.home() / ".cache" / "kwsniff" / "kafka"))
PATIENCE_S = 300
KAFKA = "org.apache.kafka"

_LOG4J_2 = ("org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",)
_LOG4J_1 = ("ch.qos.reload4j:reload4j:1.2.25", "org.slf4j:slf4j-reload4j:1.7.36")
# What a release needs besides itself: 4.0 moved to log4j 2, the tools were part of the core before 3.x.
BROKERS = {
    # Central has no tools and streams of 4.4.0; the broker runs with the older plug-in API of the tools.
    "4.4.0": ("kafka_2.13", "org.apache.kafka:kafka-tools-api:4.3.1", *_LOG4J_2),
    "4.3.1": ("kafka_2.13", "kafka-tools", "kafka-streams", *_LOG4J_2),
    "4.0.2": ("kafka_2.13", "kafka-tools", *_LOG4J_2),
    "3.9.2": ("kafka_2.13", "kafka-tools", *_LOG4J_1),
    "3.6.2": ("kafka_2.13", "kafka-tools", *_LOG4J_1),
    "2.8.2": ("kafka_2.13", *_LOG4J_1),
}
AGENT = ("name.neykov", "extract-tls-secrets", "4.0.0")
PROXY = "kroxylicious-0.12.0"
CLIENTS = dict.fromkeys(("0.10.2.2", "0.11.0.3", "1.1.1", "2.3.1"), ("kafka-clients", *_LOG4J_1))


# What is no release of Kafka.
OTHERS = {PROXY: ("io.kroxylicious:kroxylicious-runtime:0.12.0", "org.slf4j:slf4j-simple:2.0.16")}


def why_not() -> str | None:
    """The reason why no broker can be started here, or None."""
    missing = [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]
    return f"{', '.join(missing)} not installed" if missing else None


def fetched(version: str) -> bool:
    """Whether the jars of a release are in the cache."""
    return (CACHE / version / "complete").exists()


def jars(version: str) -> Path:
    """The folder with the jars of a release, fetched if need be."""
    folder = CACHE / version
    if not fetched(version):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pom.xml").write_text(_pom(version))
        command = ["mvn", "-q", "-B", "-f", str(folder / "pom.xml"), "dependency:copy-dependencies"]
        subprocess.run([*command, "-DoutputDirectory=lib"], check=True, timeout=PATIENCE_S, cwd=folder)
        (folder / "complete").touch()
    return folder / "lib"


def agent() -> Path:
    """The jar of an agent that has Java log its TLS secrets, fetched if need be."""
    group, name, version = AGENT
    jar = CACHE / "agent" / f"{name}-{version}.jar"
    if not jar.exists():
        jar.parent.mkdir(parents=True, exist_ok=True)
        command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={group}:{name}:{version}"]
        command.append(f"-DoutputDirectory={jar.parent}")
        subprocess.run(command, check=True, timeout=PATIENCE_S, cwd=jar.parent)
    return jar


def _pom(version: str) -> str:
    wanted = (BROKERS | CLIENTS | OTHERS).get(version) or ("kafka_2.13", *_LOG4J_2)
    names = [name if ":" in name else f"{KAFKA}:{name}:{version}" for name in wanted]
    parts = [dict(zip(("groupId", "artifactId", "version"), name.split(":"), strict=True)) for name in names]
    replaced = [
        part["artifactId"] for part in parts if part["groupId"] == KAFKA and part["version"] != version
    ]
    excluded = "".join(_element("exclusion", {"groupId": KAFKA, "artifactId": name}) for name in replaced)
    inner = "".join(
        _element("dependency", part | ({"exclusions": excluded} if excluded else {})) for part in parts
    )
    head = "<modelVersion>4.0.0</modelVersion><groupId>none</groupId><artifactId>none</artifactId>"
    return f"<project>{head}<version>1</version><dependencies>{inner}</dependencies></project>\n"


def _element(name: str, parts: dict[str, str]) -> str:
    return f"<{name}>" + "".join(f"<{key}>{value}</{key}>" for key, value in parts.items()) + f"</{name}>"


def compiled(program: str, version: str) -> str:
    """The class path on which java/PROGRAM.java runs with the jars of a release."""
    source = HERE / "java" / f"{program}.java"
    classes = CACHE / version / "classes"
    made = classes / f"{program}.class"
    path = f"{jars(version)}/*"
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        classes.mkdir(exist_ok=True)
        command = ["javac", "-nowarn", "-Xlint:none", "-cp", path, "-d", str(classes), str(source)]
        subprocess.run(command, check=True, timeout=PATIENCE_S)
    return f"{classes}:{path}"
