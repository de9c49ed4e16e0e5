"""What a first reading of captures teaches the next one."""

from kwsniff.analysis.capture_points import CapturePoints, join_twins
from kwsniff.analysis.duplicate_rows import connections_of, mark_late, twins_among
from kwsniff.analysis.filled_holes import FilledHoles, find_bytes
from kwsniff.analysis.measured_networks import NOT_MEASURED, MeasuredNetworks, measure_rows
from kwsniff.analysis.plan import Plan
from kwsniff.analysis.rows import Rows
from kwsniff.memory import release_memory
from kwsniff.tables.write import TableWriter
from kwsniff.timelines.duplicates.duplicate_connections import Twins

_BYTES_OF_A_CANDIDATE = 2000  # 200,000 connections that may be twins of others have room in 400 MB

Known = tuple[Twins, MeasuredNetworks, FilledHoles | None]


def learn(
    plan: Plan, writer: TableWriter | None, rows: Rows, places: CapturePoints, found: tuple[Twins, bytes]
) -> Known:
    """Twins among all connections, which say so; where captures are read again, what fills holes, or else
    what this measures. `found`: twins that are known already, and holes."""
    release_memory()
    twins, holes = found
    if not twins:
        most = min(plan.bounds.duplicate_candidates, plan.bounds.memory // _BYTES_OF_A_CANDIDATE)
        twins = twins_among(writer, rows.batches, most, places.printable)
        files = {name: places.find(name) for name in plan.found.captures}
        with connections_of(writer, rows.batches) as connections:
            filled = find_bytes(holes, connections, twins, files, plan.bounds.memory) if holes else None
        if filled:
            return twins, NOT_MEASURED, filled
    points = {} if plan.size is None else join_twins(places, rows.summary.captures, twins.apart).printable
    if points or plan.size is None:
        mark_late(writer, rows.batches, rows.figures, twins)
    return twins, measure_rows(writer, rows.batches, points, plan.bounds.memory + plan.foreign), None
