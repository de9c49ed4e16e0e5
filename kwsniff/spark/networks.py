"""Measured network times of a pipeline: on the driver, over the staged parts, as `analyze` has them."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kwsniff.analysis.capture_points import CapturePoints
from kwsniff.analysis.measured_networks import READ, MeasuredNetworks, measure_networks
from kwsniff.findings.prefilter.figures import Figures
from kwsniff.findings.views import MEMORY
from kwsniff.spark.decode import Work
from kwsniff.spark.parts import Part
from kwsniff.spark.rewritten_parts import local_folder, rewrite_part
from kwsniff.spark.storage import Place
from kwsniff.tables.arrays import whole_numbers


def measure_parts(
    work: Work, parts: Sequence[Part], points: CapturePoints, figures: Figures | None
) -> dict[Part, Part]:
    """Of the files of latencies those with calls that several places captured, each with the one that has
    their measured times. `figures` count these again: they say which rules may fire."""
    read = [part for part in parts if part.table in READ]
    if not points or {part.table for part in read} != {*READ}:
        return {}
    staging = work.staging
    with local_folder(staging, read) as folder:
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
    def correct(rows: pa.Table) -> pa.Table:
        batches = [networks.correct(batch) for batch in rows.to_batches()]
        if figures:
            for batch in batches:
                figures.add("latencies", batch)
        return pa.Table.from_batches(batches)

    return rewrite_part(part, correct, "measured", staging=staging)
