"""`--client` is part of a client id, whoever writes it how; counted in the tables with SQL."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

import kwsniff
from kwsniff.cli.main import run

from .shown import FIRST_STEPS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("tables")
    kwsniff.analyze(FIRST_STEPS, output=place)
    return str(place)


def calls(folder: str, condition: str) -> set[int]:
    path = Path(folder, "api_calls.parquet")
    with duckdb.connect() as database:
        found = database.execute(f"select call_id from '{path}' where {condition}").fetchall()  # noqa: S608
    return {number for (number,) in found}


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> set[int]:
    assert run(["show", FIRST_STEPS, *words, "--json"]) == 0
    return {json.loads(line)["call_id"] for line in capsys.readouterr().out.splitlines()}


@pytest.mark.sample(4)
@pytest.mark.parametrize("client", ["shop", "SHOP", "hOp-Prod", "BILLING"])
@pytest.mark.parametrize("with_tables", [False, True])
def test_part_of_a_client_id_fits_in_capitals_too(
    client: str, with_tables: bool, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = calls(folder, f"client_id ilike '%{client}%'")
    assert wanted
    tables = ["--tables", folder] if with_tables else []
    assert shown(capsys, "--client", client, *tables) == wanted


def test_tables_of_a_client_have_its_calls(folder: str, tmp_path: Path) -> None:
    """The rows that `analyze` keeps of one client."""
    assert run(["analyze", FIRST_STEPS, "--client", "SHOP", "-o", str(tmp_path), "--json"]) == 0
    assert calls(str(tmp_path), "true") == calls(folder, "client_id ilike '%shop%'")


def test_a_call_that_takes_exactly_the_least_latency_fits(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A nanosecond more, and it does not."""
    with duckdb.connect() as database:
        path = Path(folder, "api_calls.parquet")
        ((latency,),) = database.execute(f"select quantile_disc(latency_ns, 0.9) from '{path}'").fetchall()  # noqa: S608
    for least in (latency, latency + 1):
        assert shown(capsys, "--where", f"latency >= {least}ns") == calls(folder, f"latency_ns >= {least}")
    assert calls(folder, f"latency_ns >= {latency}") > calls(folder, f"latency_ns > {latency}")
