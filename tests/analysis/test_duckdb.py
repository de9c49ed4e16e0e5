"""`found.duckdb()`: a database with a view of each table, in memory and of a folder."""

from pathlib import Path

import pandas as pd
import pytest

import kwsniff
from kwsniff.analysis.stored_tables import Tables

CAPTURE = Path(__file__).resolve().parents[2] / "captures" / "first_steps" / "capture.pcap"
SLOWEST = """
select c.api_name, l.total_ns from api_calls c join latencies l using (run_id, call_id)
order by l.total_ns desc, call_id limit 5
"""


def _slowest(found: Tables) -> list[tuple[str, int]]:
    """By pandas."""
    calls, latencies = found.api_calls.to_pandas(), found.latencies.to_pandas()
    both = calls[["run_id", "call_id", "api_name"]].merge(
        latencies[["run_id", "call_id", "total_ns"]], on=["run_id", "call_id"]
    )
    first = both.sort_values(["total_ns", "call_id"], ascending=[False, True]).head(5)
    return [(api, int(took)) for api, took in zip(first["api_name"], first["total_ns"], strict=True)]


@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "in a folder"])
@pytest.mark.parametrize("where", [None, "api_name = Metadata"])
def test_views_have_the_rows_of_the_tables(where: str | None, stored: bool, tmp_path: Path) -> None:
    if stored:
        kwsniff.analyze(CAPTURE, output=tmp_path)
        found: Tables = kwsniff.open(tmp_path, where=where)
    else:
        found = kwsniff.analyze(CAPTURE, where=where)
    with found.duckdb() as database:
        counts = {
            name: database.execute(f'select count(*) from "{name}"').fetchall()[0][0]  # noqa: S608 - our names
            for name in found.names
        }
        assert counts == {name: found[name].num_rows for name in found.names}
        assert counts["api_calls"] > 0
        assert database.execute(SLOWEST).fetchall() == _slowest(found)
        ((first,),) = database.execute("select min(request_time)::varchar from api_calls").fetchall()
    assert pd.Timestamp(first) == found.api_calls.to_pandas()["request_time"].min()
