"""Views without what no row needs have the rows of the whole ones."""

from pathlib import Path

import pytest

import kwsniff
from kwsniff.findings.prefilter.figures import figures_of
from kwsniff.findings.simple_views import ABSENT, simplify
from kwsniff.findings.views import open_folder, open_for, statements_of
from kwsniff.tables.stored_files import files_of_tables
from tests.house.tree import ROOT

VIEWS = ("call", "client_call", "refusal", "latency", "partition_call", "server_error", "commit_call")
SHOWN = ("incidents/hot_java/broker.pcap", "incidents/coordinator_killed/broker.pcap")


@pytest.mark.sample(1)
@pytest.mark.parametrize("capture", SHOWN)
def test_simple_views_have_the_rows_of_the_whole_ones(capture: str, tmp_path: Path) -> None:
    kwsniff.analyze(ROOT / "captures" / capture, output=tmp_path / "out")
    files = files_of_tables(tmp_path / "out")
    figures = figures_of(files)
    assert not (figures.twins or figures.unnamed or figures.servers)
    for view in VIEWS:
        query = f"select * exclude (run_id) from {view} order by all"  # noqa: S608
        with open_for([query], files, twins=False, unnamed=False, servers=False) as simple:
            rows = simple.sql(query)
            names, found = rows.columns, rows.to_arrow_table().to_pylist()
        with open_folder(tmp_path / "out") as whole:
            listed = ", ".join(f'"{name}"' for name in names)
            asked = query.replace("* exclude (run_id)", listed)
            expected = whole.sql(asked).to_arrow_table().to_pylist()
        assert found == expected


def test_each_part_that_is_replaced_is_there() -> None:
    views = simplify(statements_of((*VIEWS, "twin", "unnamed", "origin")), ABSENT)
    for name in ("call", "refusal", "latency", "partition_call"):
        assert not {"unnamed", "origin", "named"} & {*views[name].replace("(", " ").replace(",", " ").split()}
