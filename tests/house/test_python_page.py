"""The lines of docs/python.md, as they stand there."""

import re
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow.parquet
import pytest

import kwsniff

from .tree import DOCS, ROOT

PAGE = (DOCS / "python.md").read_text("utf-8")
LINES = dict(re.findall(r"^\| (\w+) \| `(\w+\..*)` \|$", PAGE, re.MULTILINE))
CALLS = 34  # of the capture, as its brokers counted them: captures/first_steps/about.toml


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("reading")
    kwsniff.analyze(ROOT / "captures" / "first_steps" / "capture.pcap", output=folder / "out")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


@pytest.mark.parametrize("reader", ["pandas", "Polars", "DuckDB", "pyarrow"])
def test_a_reader_needs_one_line(here: Path, reader: str) -> None:
    import duckdb

    # Of its own: other tests of this process may have left the common connection with a result half read.
    with duckdb.connect() as connection:
        names = {"pandas": pandas, "polars": polars, "duckdb": connection, "pyarrow": pyarrow}
        found = eval(LINES[reader], names)  # noqa: S307 - the line of the page
        assert (found.num_rows if reader == "pyarrow" else len(found)) == CALLS


def test_spark_is_on_the_page_as_its_test_reads() -> None:
    assert LINES["Spark"] == 'spark.read.parquet("out/api_calls.parquet")'
    assert set(LINES) == {"pandas", "Polars", "DuckDB", "Spark", "pyarrow"}


def test_kwsniffs_own_lines(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from kwsniff.cli import main

    (line,) = re.findall(r"^kwsniff\.open.*$", PAGE, re.MULTILINE)
    assert len(eval(line, {"kwsniff": kwsniff})) == CALLS  # noqa: S307 - the line of the page
    (query,) = re.findall(r'^kwsniff sql out "(.*)"$', PAGE, re.MULTILINE)
    assert main.run(["sql", "out", query]) == 0
