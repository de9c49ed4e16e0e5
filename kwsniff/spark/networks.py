"""Measured network times of a pipeline: on the driver, over the staged parts, as `analyze` has them."""

import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np
import pyarrow as pa

from kwsniff.analysis.capture_points import CapturePoints
from kwsniff.analysis.measured_networks import READ, MeasuredNetworks, measure_networks
from kwsniff.findings.prefilter.figures import Figures
from kwsniff.findings.views import MEMORY
from kwsniff.spark.decode import Work
from kwsniff.spark.findings import copy_parts
from kwsniff.spark.parts import Part, part_writer
from kwsniff.spark.storage import Place
from kwsniff.tables.arrays import whole_numbers
from kwsniff.tables.schema import TABLES, arrow_schema
from kwsniff.temporary import temporary_folder


def measure_parts(
    work: Work, parts: Sequence[Part], points: CapturePoints, figures: Figures | None
) -> dict[Part, Part]:
    """Of the files of latencies those with calls that several places captured, each with the one that has
    their measured times. `figures` count these again: they say which rules may fire."""
    read = [part for part in parts if part.table in READ]
    if not points or {part.table for part in read} != {*READ}:
        return {}
    staging = work.staging
    with ExitStack() as stack:
        if staging.is_local:
            folder = staging.folder
        else:
            folder = copy_parts(staging, read, Path(stack.enter_context(temporary_folder())))
        files = {name: [folder / part.path for part in read if part.table == name] for name in READ}
        networks = measure_networks(files, points.printable, MEMORY)
    latencies = [part for part in read if part.table == "latencies"]
    chosen = [part for part in latencies if networks and _holds(part, networks, staging)]
    return {part: _correct(part, networks, staging, figures) for part in chosen}


def _holds(part: Part, networks: MeasuredNetworks, staging: Place) -> bool:
    with staging.open_parquet(part.path) as file:
        batches = file.iter_batches(columns=["call_id"], use_threads=False)
        return any(np.isin(whole_numbers(each["call_id"], null=-1), networks.calls).any() for each in batches)


def _correct(part: Part, networks: MeasuredNetworks, staging: Place, figures: Figures | None) -> Part:
    old = PurePosixPath(part.path)
    path = old.with_name(f"measured-{uuid.uuid4().hex[:12]}-{old.name[-48:]}")
    schema = arrow_schema(TABLES["latencies"])
    with staging.open_parquet(part.path) as file, staging.open_output(str(path)) as target:
        with part_writer(target, "latencies", schema) as writer:
            for group in range(file.num_row_groups):
                rows = [networks.correct(batch) for batch in file.read_row_group(group).to_batches()]
                if figures:
                    for batch in rows:
                        figures.add("latencies", batch)
                writer.write_table(pa.Table.from_batches(rows).cast(schema))
        size = target.tell()
    return replace(part, path=str(path), size=size)
