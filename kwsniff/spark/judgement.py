"""Findings of a pipeline's tables: on the driver, over the staged parts, before they are published."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kwsniff.findings.table import findings_batch
from kwsniff.findings.tables import READ
from kwsniff.spark.parts import Part, PartWriter


def write_findings(staging: str, parts: Sequence[Part], *, run_id: str) -> list[Part]:
    """Writes the table of findings beside the parts that it is made of."""
    sources: Mapping[str, list[Path]] = {name: [] for name in READ}
    for part in parts:
        if part.table in sources:
            sources[part.table].append(Path(staging) / part.path)
    writer = PartWriter(staging, "all-findings", run_id)
    writer.write("findings", findings_batch(sources))
    return writer.close()
