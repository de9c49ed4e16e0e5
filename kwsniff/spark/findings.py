"""Findings of a pipeline's tables: on the driver, over the staged parts, before they are published."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kwsniff.findings.finding_calls import TABLE
from kwsniff.findings.finding_rows import find, findings_batch
from kwsniff.findings.harm import FoundHarm
from kwsniff.findings.prefilter.figures import Figures
from kwsniff.findings.views import READ
from kwsniff.spark.decode import Work
from kwsniff.spark.harm import write_codes, write_harm
from kwsniff.spark.jobs import Items
from kwsniff.spark.parts import Part, PartWriter
from kwsniff.spark.rewritten_parts import local_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write_findings(
    spark: "SparkSession", work: Work, parts: Sequence[Part], figures: Figures
) -> tuple[list[Part], dict[Part, Part]]:
    """Writes the tables of findings beside the parts that they are made of, which `figures` are of. And those
    of the parts that hold harmed calls or connections, each with the one that says so."""
    staging, own = work.staging, dict[Part, Path]()
    items: list[Items] = []

    @contextmanager
    def files() -> Iterator[Mapping[str, list[Path]]]:
        read = [part for part in parts if part.table in READ]
        sources: Mapping[str, list[Path]] = {name: [] for name in READ}
        with local_folder(staging, read) as folder:
            for part in read:
                own[part] = folder / part.path
                sources[part.table].append(own[part])
            yield sources

    def judge(harm: FoundHarm) -> None:
        items.append(write_codes(harm, own, work.scratch))

    writer = PartWriter(staging, "all-findings", work.run_id)
    keep = partial(writer.write, TABLE) if TABLE in work.tables else None
    found = find(figures, files, keep=keep, judge=judge)
    writer.write("findings", findings_batch(found))
    judged = write_harm(spark, items[0], staging=staging) if items else {}
    return writer.close(), judged
