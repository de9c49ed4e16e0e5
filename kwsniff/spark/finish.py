"""The third stage, over all buckets: rows of captures, names of topics, timelines."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from kwsniff.analysis.duplicate_rows import twins_anomalies
from kwsniff.core.capture.file_splits import capture_facts
from kwsniff.findings.prefilter.figures import Figures
from kwsniff.sources.files import Unread
from kwsniff.sources.times import TimeRange
from kwsniff.spark.decode import Decoded, Work
from kwsniff.spark.inputs import Capture
from kwsniff.spark.jobs import run_tasks
from kwsniff.spark.parts import Part, PartWriter, check_file, check_parts
from kwsniff.spark.ranges import Following
from kwsniff.spark.rewritten_parts import rewrite_part
from kwsniff.spark.scan import Walked
from kwsniff.spark.statistics import merge_figures
from kwsniff.spark.storage import Place
from kwsniff.tables.captures import (
    CaptureName,
    CaptureRow,
    account,
    capture_row,
    captures_batch,
    unread_anomalies,
)
from kwsniff.tables.rows import batch_of
from kwsniff.timelines.duplicates.duplicate_connections import Twins
from kwsniff.timelines.metadata.late_topic_names import late_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Bins = np.ndarray[Any, np.dtype[np.int64]]


def capture_rows(
    captures: Sequence[Capture],
    walks: Sequence[Sequence[Walked]],
    decoded: Sequence[Decoded],
    times: TimeRange,
    *,
    bins: Bins,
) -> list[CaptureRow]:
    """The rows of captures that were read: facts of the walks and of the first bucket, bytes of all."""
    rows = []
    for capture, walked, told, held in zip(captures, walks, decoded[0].facts, bins, strict=True):
        facts = capture_facts([each.scan for each in walked], told, walked[-1].size)
        times.add_facts(facts)
        last = walked[-1]
        row = capture_row(CaptureName(capture.name, capture.compression, last.truncated, last.note), facts)
        account(row, dict(zip(decoded[0].bin_names, held.tolist(), strict=True)))
        rows.append(row)
    return rows


def sum_bins(decoded: Sequence[Decoded], captures: int, scratch: Place) -> Bins:
    """Where the bytes of each capture ended up, in the order of `bin_names`."""
    total = np.zeros((captures, len(decoded[0].bin_names)), np.int64)
    for each in decoded:
        check_file(scratch, each.bins, total.nbytes)
        with scratch.open_input(each.bins) as file:
            total += np.frombuffer(file.read(), np.int64).reshape(total.shape)
    return total


def write_few(
    spark: "SparkSession",
    work: Work,
    captures: Sequence[CaptureRow],
    unread: Sequence[Unread],
    decoded: Sequence[Decoded],
    *,
    twins: Twins,
    figures: Figures | None,
) -> list[Part]:
    """Writes the tables that all buckets make together: captures, and those of timelines. `figures` count
    their rows."""
    writer = PartWriter(work.staging, "all", work.run_id)
    damages = [*unread_anomalies(unread), *twins_anomalies(twins)]
    made = [("captures", captures_batch(captures)), ("anomalies", batch_of("anomalies", damages))]
    notes = [path for each in decoded for path in each.notes]
    parts = [part for each in decoded for part in each.parts]
    names = {key: name for each in decoded for key, name in each.topics.items()}
    following = Following(spark, work, notes, twins, parts, names=names)
    for table, batch in chain(made, following.batches()):
        if table in work.tables and batch.num_rows:
            writer.write(table, batch)
            if figures:
                figures.add(table, batch)
    if figures:
        merge_figures(figures, work.scratch, following.figures)
    return [*following.parts, *writer.close()]


def name_topics(
    spark: "SparkSession", parts: Sequence[Part], names: Mapping[str, str], *, root: Place, staging: Place
) -> dict[Part, Part]:
    """Of parts in the folder `root` those that show an id of a topic whose name any bucket came to know, each
    with the one in `staging` that has the name instead."""
    nameless = [part for part in parts if not part.ids.isdisjoint(names)]
    tasks = [(part, {each: names[each] for each in part.ids if each in names}) for part in nameless]
    done = run_tasks(spark, partial(_name_part, root=root, staging=staging), tasks)
    check_parts(staging, done)
    return dict(zip(nameless, done, strict=True))


def _name_part(task: tuple[Part, Mapping[str, str]], *, root: Place, staging: Place) -> Part:
    part, names = task
    change = late_names(names, (part.table,))[part.table]
    root.check()
    named = rewrite_part(part, change, "named", staging=staging, root=root)
    return replace(named, ids=part.ids.difference(names))
