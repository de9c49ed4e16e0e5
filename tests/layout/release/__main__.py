"""python -m tests.layout.release RELEASE [FOLDER [--errors FILE]]: layouts, ranges and errors of a release.

FOLDER has Kafka's message definitions, in folders per module; FILE has lines of code, name, true or false
(retriable). Without a folder Maven fetches the release's jars.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kwsniff.layout.catalog import Catalog
from kwsniff.layout.dissectors import dissectors_folder
from tests.broker import artifacts
from tests.layout.release.jars import list_errors, unpack
from tests.layout.release.update import Update


def main(arguments: Sequence[str] | None = None) -> None:
    """Write into dissectors/kafka, check it, and say what needs a human."""
    parser = argparse.ArgumentParser(prog="python -m tests.layout.release", description=__doc__)
    parser.add_argument("release")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--errors", type=Path)
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as made:
        folder = chosen.folder or Path(made)
        errors = chosen.errors.read_text("utf-8") if chosen.errors else ""
        if chosen.folder is None:
            jars = artifacts.jars(chosen.release)
            unpack(jars, folder)
            errors = errors or list_errors(jars)
        layouts = dissectors_folder() / "kafka"
        update = Update(layouts, folder, chosen.release)
        update.run(errors)
    count = Catalog(layouts).check()
    sys.stdout.write("\n".join([*update.lines(), f"{count} layouts compile"]) + "\n")


if __name__ == "__main__":
    main()
