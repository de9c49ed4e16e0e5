"""An API of a vendor's, known by text alone, is known everywhere as Kafka's own are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import kwsniff
from kwsniff.analyzers import resume_analyzer, start_analyzer
from kwsniff.cli.main import run
from kwsniff.core.analyzer import Analyzer
from kwsniff.errors import LayoutError, UsageError
from kwsniff.layout.catalog import ENVIRONMENT, load_catalog
from kwsniff.live.session import Session
from tests.live.running import FileSource
from tests.traffic.scenes import one_by_one
from tests.traffic.wire import Encoder, sized

from .compare import capture_of
from .vendor import KEY, LAYOUT, PASSWORD, echo, layouts, packets

BODY = "\nrequest\n    a int8\nresponse\n    b int8\n"
Rows = list[dict[str, Any]]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(layouts(tmp_path / "vendor"))


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return capture_of(tmp_path / "echo.pcap", packets())  # type: ignore[arg-type]


def check_calls(rows: Rows) -> None:
    """What the conversation says."""
    told = [(row["api_key"], row["api_name"], row["api_version"], row["topics"]) for row in rows]
    assert told == [
        (KEY, "EchoPlan", 0, ["orders"]),
        (KEY, "EchoPlan", 1, ["orders"]),
        (1, "Fetch", 13, ["orders"]),
    ]
    assert [row["status"] for row in rows] == ["answered"] * 3
    assert [row["reason"] for row in rows] == [None] * 3
    assert [row["throttle_time_ms"] for row in rows] == [None, 7, 0]
    assert [row["error_code"] for row in rows] == [0, 4242, 0]


def check_errors(rows: Rows) -> None:
    assert [(row["api_name"], row["error_name"], row["topic"], row["partition"]) for row in rows] == [
        ("EchoPlan", "ECHO_TOO_LOUD", "orders", 3)
    ]


def test_analyze_has_its_calls_errors_and_topics(capture: Path, folder: str) -> None:
    found = kwsniff.analyze(capture, layouts=folder)
    check_calls(found.api_calls.to_pylist())
    check_errors(found.error_codes.to_pylist())


def test_without_the_text_it_is_an_unknown_api(capture: Path) -> None:
    rows = kwsniff.analyze(capture).api_calls.to_pylist()
    assert [(row["api_key"], row["api_name"]) for row in rows][:2] == [(KEY, None), (KEY, None)]
    assert [row["reason"] for row in rows][:2] == ["unknown_api", "unknown_api"]


def test_the_command_line_takes_the_folder(
    capture: Path, folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["analyze", str(capture), "--layouts", folder, "--json", "-o", str(tmp_path / "out")]) == 0
    named = [row["api_name"] for row in json.loads(capsys.readouterr().out)["calls"]]
    assert sorted(named) == ["EchoPlan", "EchoPlan", "Fetch"]
    assert run(["explain", "EchoPlan", "1", "--layouts", folder]) == 0
    assert "throttle_time_ms" in capsys.readouterr().out
    assert run(["show", str(capture), "--layouts", folder, "--api", "EchoPlan"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("EchoPlan v1 (key 9999)") == 1
    assert "error_code: 4242  ECHO_TOO_LOUD" in shown
    assert "mood: 1  loud" in shown
    assert "password: <redacted" in shown
    assert PASSWORD not in shown
    request = echo(1, 2).request[4:].hex()
    assert run(["decode", request, "--layouts", folder]) == 0
    assert "EchoPlan request v1" in capsys.readouterr().out
    assert run(["explain", "EchoPlan"]) == 2


def test_show_names_a_topic_that_only_the_vendors_answer_names(
    capture: Path, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["show", str(capture), "--layouts", folder, "--api", "Fetch", "--topic", "orders"]) == 0
    assert "'orders'" in capsys.readouterr().out


def test_decode_takes_the_folder(folder: str) -> None:
    request, response = echo(1, 2, error=4242).request[4:], (echo(1, 2, error=4242).response or b"")[4:]
    assert kwsniff.decode(request, layouts=folder).as_dict()["body"]["topic_name"] == "orders"
    answer = kwsniff.decode(response, direction="response", api_key=KEY, api_version=1, layouts=folder)
    assert answer.error is None
    assert "error_code: 4242  ECHO_TOO_LOUD" in answer.text()
    assert kwsniff.decode(request).as_dict()["error"]["code"] == "unknown_api"


def test_a_live_session_knows_it(capture: Path, folder: str) -> None:
    rows: dict[str, Rows] = {"api_calls": [], "error_codes": []}
    with Session(FileSource(capture, pieces=100), layouts=folder) as session:
        for batches in _taken(session):
            for name in rows:
                rows[name] += batches[name].to_pylist() if name in batches else []
    check_calls(
        [row | {"api_name": str(row["api_name"]), "status": row["status"]} for row in rows["api_calls"]]
    )
    check_errors(rows["error_codes"])


def _taken(session: Session) -> Iterator[Any]:
    while not session.wait(0.01):
        yield session.drain()
    yield session.finish()


def test_the_tasks_of_the_pipeline_know_it(capture: Path, folder: str, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    from kwsniff.analysis.capture_points import CapturePoints
    from kwsniff.spark.decode import Work, decode_bucket
    from kwsniff.spark.inputs import find_inputs, share_out
    from kwsniff.spark.jobs import Items
    from kwsniff.spark.plan import Plan
    from kwsniff.spark.scan import scan_split
    from kwsniff.spark.staging import Staging

    captures = find_inputs([str(capture)])
    with Staging(tmp_path / "out") as staging:
        scratch = staging.scratch
        tasks = Items.write(scratch, share_out(captures, 1 << 30))
        routed = scan_split(0, tasks=tasks, folder=scratch, num_buckets=1, limits={})
        (walk,) = routed.walks
        walk.file = routed.file
        work = Work(
            plan=Plan.write(scratch, captures, [[walk]], CapturePoints()),
            staging=staging.place,
            scratch=staging.scratch,
            num_buckets=1,
            tables=frozenset({"api_calls", "error_codes"}),
            ports=(),
            limits={},
            run_id="one",
            layouts=folder,
        )
        parts = decode_bucket(0, work=work).parts
        rows = {part.table: pq.read_table(staging.place.folder / part.path).to_pylist() for part in parts}
    # Names of topics that come late are put in by the third stage; here they come in time.
    check_calls(rows["api_calls"])
    check_errors(rows["error_codes"])


@pytest.mark.parametrize("by_option", [True, False])
def test_the_data_source_knows_it(
    capture: Path, folder: str, monkeypatch: pytest.MonkeyPatch, by_option: bool
) -> None:
    from pyspark.sql import types

    from kwsniff.spark.source import CaptureReader

    options = {"path": str(capture), "table": "error_codes"}
    if by_option:
        options["layouts"] = folder
    else:
        monkeypatch.setenv(ENVIRONMENT, folder)
    names = ("api_name", "error_name", "topic")
    schema = types.StructType([types.StructField(name, types.StringType()) for name in names])
    reader = CaptureReader(options, schema)
    monkeypatch.delenv(ENVIRONMENT, raising=False)  # a worker's
    (part,) = reader.partitions()
    rows = [row for batch in reader.read(part) for row in batch.to_pylist()]
    assert rows == [{"api_name": "EchoPlan", "error_name": "ECHO_TOO_LOUD", "topic": "orders"}]


def test_scapy_shows_it(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("scapy")
    from kwsniff.scapy_layer import Kafka

    monkeypatch.setenv(ENVIRONMENT, folder)
    shown = str(Kafka(echo(1, 2).request).show(dump=True))
    assert "EchoPlan v1 request" in shown
    assert PASSWORD not in shown


def test_a_state_is_of_the_layouts_that_there_were(folder: str) -> None:
    analyzer = start_analyzer(load_catalog(folder))
    state = analyzer.save()
    assert resume_analyzer(load_catalog(folder), state).packets == 0
    with pytest.raises(UsageError, match="with these layouts"):
        resume_analyzer(load_catalog(), state)


def test_a_state_is_refused_when_a_vendors_fields_have_changed(folder: str, tmp_path: Path) -> None:
    other = layouts(tmp_path / "other", **{"9999_echo_plan.layout": LAYOUT.replace("mood ", "temper ")})
    state = start_analyzer(load_catalog(folder)).save()
    with pytest.raises(UsageError, match="with these layouts"):
        resume_analyzer(load_catalog(other), state)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("01_grab.layout", "api 1 Grab 0" + BODY, r"01_grab\.layout:1: api key 1 "),
        ("900_fetch.layout", "api 900 Fetch 0" + BODY, r":1: 'Fetch' is already the name"),
        ("900_x.layout", "api 901 X 0" + BODY, r":1: api 901 must be in"),
        ("900_x.layout", "api 900 X 0-4000" + BODY, r":1: '0-4000'"),
        ("40000_x.layout", "api 40000 X 0" + BODY, r":1: '40000'"),
        ("900_x.layout", "api 900 X 0" + BODY.replace("a int8", "a int8 enum.no"), r":3: 'no' is not an"),
        ("900_x.layout", "api 900 X 0\nrequest\n    a int9\nresponse\n    b int8\n", r":3: 'int9'"),
        ("900_x.layout", "api 900 X 0\nrequest\n    a int8\n", r":1: an API has one request"),
        ("extra.layout", "api 900 X 0" + BODY, r":1: an API must be in"),
        ("extra.layout", "schema OffsetCommitValue 0\n    a int8\n", r":1: schema 'OffsetCommitValue'"),
        ("headers.layout", "use request 0 api 9999 0\n", r":1: only Kafka's layouts define headers"),
        ("errors.txt", "# ours\n6 LOUD final 1.0\n", r"errors\.txt:2: '6' is already defined"),
        ("errors.txt", "40000 LOUD final 1.0\n", r"errors\.txt:1: '40000'"),
        ("enums.txt", "mood\n    0 calm\nisolation_level\n    0 x\n", r"enums\.txt:3: 'isolation_level'"),
    ],
)  # fmt: skip
def test_a_vendors_text_is_checked_and_may_not_shadow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, said: str
) -> None:
    folder = layouts(tmp_path / "vendor", **{name: text})
    with pytest.raises(LayoutError, match=said) as caught:
        load_catalog(folder)
    assert "\n" not in str(caught.value)
    assert run(["analyze", "absent.pcap", "--layouts", str(folder)]) == 2
    assert capsys.readouterr().err == f"kwsniff: error: {caught.value}\n"


def test_a_folder_without_layouts_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(LayoutError, match="no layouts"):
        load_catalog(tmp_path / "empty")
    with pytest.raises(LayoutError, match="is not a folder"):
        load_catalog(tmp_path / "absent")


def test_nothing_is_sized_by_a_key() -> None:
    rows = [(key, 0, 0, 0) for key in range(0, 32768, 31)]
    assert Analyzer(lambda *_: None, rows).rows("api_calls") == 0
    for wrong in ((32768, 0, 0, 0), (-1, 0, 0, 0), (5, 3, 2, 0)):
        with pytest.raises(UsageError, match="cannot be"):
            Analyzer(lambda *_: None, [wrong])
    with pytest.raises(UsageError, match="twice"):
        Analyzer(lambda *_: None, [(5, 0, 0, 0), (5, 0, 1, 0)])


TALE = """\
api 9999 EchoPlan 0-1 flexible 1+
request
    topic_name     string   topic
    readers        []
        client_id  string   client_id
response
    error_message   string?  error_message
    topics          []
        name        string   topic
        error_code  int16    error
"""


def test_what_a_struct_says_is_its_own(tmp_path: Path) -> None:
    """A body that names other clients, and an error inside what has the message of another struct."""
    request = Encoder(False).i16(KEY).i16(0).i32(1).string("shop-1").string("orders")
    request.array(["other-1", "other-2"], request.string)
    answer = Encoder(False).i32(1).string("all is said").count(1).string("orders").i16(3)
    call = replace(echo(0, 1), request=sized(bytes(request.data)), response=sized(bytes(answer.data)))
    folder = layouts(tmp_path / "vendor", **{"9999_echo_plan.layout": TALE})
    path = capture_of(tmp_path / "tale.pcap", one_by_one([call]).packets())
    found = kwsniff.analyze(path, layouts=str(folder))
    assert [(row["client_id"], row["reason"]) for row in found.api_calls.to_pylist()] == [("shop-1", None)]
    errors = found.error_codes.to_pylist()
    assert [(row["topic"], row["error_code"], row["error_message"]) for row in errors] == [
        ("orders", 3, None)
    ]
