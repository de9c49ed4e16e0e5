"""Findings of a pipeline's tables: on the driver, over the staged parts, before they are published."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from kwsniff.findings.finding_calls import TABLE
from kwsniff.findings.finding_rows import find, findings_batch
from kwsniff.findings.prefilter.figures import Figures
from kwsniff.findings.views import READ
from kwsniff.spark.parts import Part, PartWriter
from kwsniff.spark.storage import Place
from kwsniff.temporary import temporary_folder


def write_findings(
    staging: Place, parts: Sequence[Part], figures: Figures, *, run_id: str, calls: bool
) -> list[Part]:
    """Writes the tables of findings beside the parts that they are made of, which `figures` are of.

    `calls`: whether `finding_calls` is wanted.
    """

    @contextmanager
    def files() -> Iterator[Mapping[str, list[Path]]]:
        read = [part for part in parts if part.table in READ]
        sources: Mapping[str, list[Path]] = {name: [] for name in READ}
        with temporary_folder() as copies:
            folder = staging.folder if staging.is_local else _copy(staging, read, Path(copies))
            for part in read:
                sources[part.table].append(folder / part.path)
            yield sources

    writer = PartWriter(staging, "all-findings", run_id)
    found = find(figures, files, keep=partial(writer.write, TABLE) if calls else None)
    writer.write("findings", findings_batch(found))
    return writer.close()


def _copy(staging: Place, parts: Sequence[Part], folder: Path) -> Path:
    """The folder, with these parts of a store: rules read them more than once."""
    for part in parts:
        (folder / part.path).parent.mkdir(parents=True, exist_ok=True)
        with staging.open_input(part.path) as source, (folder / part.path).open("wb") as target:
            shutil.copyfileobj(source, target, 8 << 20)
    return folder
