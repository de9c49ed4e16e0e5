"""Hops of a pipeline: on the driver, over the staged parts, as `analyze` makes them of its files."""

from collections.abc import Sequence

from kwsniff.analysis.capture_points import CapturePoints
from kwsniff.analysis.measured_hops import READ, hops_batch
from kwsniff.findings.views import MEMORY
from kwsniff.spark.decode import Work
from kwsniff.spark.parts import Part, PartWriter
from kwsniff.spark.rewritten_parts import local_folder
from kwsniff.tables.captures import CaptureRow


def write_hops(
    work: Work, parts: Sequence[Part], captures: Sequence[CaptureRow], points: CapturePoints
) -> list[Part]:
    """Writes hops beside the parts that they are made of, whose connections know their twins, and gives rows
    of captures their places and clocks."""
    points.fill_places(captures)
    if not points or "hops" not in work.tables:
        return []
    from kwsniff.analysis.shared_calls import SharedCalls

    staging = work.staging
    read = [part for part in parts if part.table in READ]
    if not any(part.table == "api_calls" for part in read):
        return []
    with local_folder(staging, read) as folder:
        files = {name: [folder / part.path for part in read if part.table == name] for name in READ}
        writer = PartWriter(staging, "all-hops", work.run_id)
        with SharedCalls(files, points.printable, MEMORY) as calls:
            places = calls.solve(points.names)
            for columns in calls.hops():
                writer.write("hops", hops_batch(columns, places))
        places.fill_clocks(captures, points.printable)
    return writer.close()
