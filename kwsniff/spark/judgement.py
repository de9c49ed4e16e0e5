"""Findings of a pipeline's tables: on the driver, over the staged parts, before they are published."""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from kwsniff.findings.table import findings_batch
from kwsniff.findings.tables import READ
from kwsniff.spark.parts import Part, PartWriter
from kwsniff.spark.storage import Place
from kwsniff.temporary import temporary_folder


def write_findings(staging: Place, parts: Sequence[Part], *, run_id: str) -> list[Part]:
    """Writes the table of findings beside the parts that it is made of."""
    read = [part for part in parts if part.table in READ]
    writer = PartWriter(staging, "all-findings", run_id)
    with ExitStack() as stack:
        folder = staging.folder if staging.is_local else _copied(staging, read, stack)
        sources: Mapping[str, list[Path]] = {name: [] for name in READ}
        for part in read:
            sources[part.table].append(folder / part.path)
        writer.write("findings", findings_batch(sources))
    return writer.close()


def _copied(staging: Place, parts: Sequence[Part], stack: ExitStack) -> Path:
    """A folder of this machine with these parts of a store: rules read them more than once."""
    folder = Path(stack.enter_context(temporary_folder()))
    for part in parts:
        (folder / part.path).parent.mkdir(parents=True, exist_ok=True)
        with staging.open_input(part.path) as source, (folder / part.path).open("wb") as target:
            shutil.copyfileobj(source, target, 8 << 20)
    return folder
