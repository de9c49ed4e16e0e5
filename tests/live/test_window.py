"""Figures of the last seconds, against the same figures computed with pandas over the whole tables."""

from __future__ import annotations

import json
import math

import pandas as pd
import pyarrow as pa
import pytest

import kwsniff
from kwsniff.analysis.result import Analysis
from kwsniff.cli.live.lines import interval_json
from kwsniff.live.metrics import Metrics
from kwsniff.live.prometheus import EDGES_S, MOST_SERIES
from kwsniff.live.session import Progress
from kwsniff.live.window import MOST_KEYS, OTHERS, Window, rank_figures
from kwsniff.tables.error_codes import SIDES
from tests.tables.runs import inside

from .running import ROOT

NOTHING = Progress(0, 0, 0, None, None, None)
TABLES_USED = ("api_calls", "error_codes", "groups")
CAPTURES = ["first_steps", "group_classic", "kafka_python_4_3"]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=CAPTURES)
def analysis(request: pytest.FixtureRequest) -> Analysis:
    (path,) = (ROOT / "captures" / request.param).glob("capture.pcap*")
    return kwsniff.analyze(path)


def batches(analysis: Analysis, rows: int = 1 << 20) -> list[dict[str, pa.RecordBatch]]:
    """The tables in steps of so many calls, as a session hands them out."""
    steps: list[dict[str, pa.RecordBatch]] = []
    for name in TABLES_USED:
        coded = inside(name, analysis.table(name))
        for number, batch in enumerate(coded.to_batches(max_chunksize=rows)):
            while len(steps) <= number:
                steps.append({})
            steps[number][name] = batch
    return steps


def filled(analysis: Analysis, clock: Clock, rows: int = 7) -> Window:
    window = Window(10.0, now=clock)
    for step in batches(analysis, rows):
        window.add(step)
    return window


def calls_of(analysis: Analysis) -> pd.DataFrame:
    frame = analysis.api_calls.to_pandas()
    frame["broker"] = frame["broker_address"] + ":" + frame["broker_port"].astype(str)
    return frame


def nearest_rank(values: pd.Series, percent: int) -> int:
    ordered = sorted(values)
    return int(ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1])


@pytest.mark.parametrize(("dimension", "column"), [("apis", "api_name"), ("brokers", "broker")])
def test_figures_are_those_of_the_tables(analysis: Analysis, dimension: str, column: str) -> None:
    figures = filled(analysis, Clock()).figures(dimension)
    frame = calls_of(analysis)
    assert set(figures) == set(frame[column].dropna())
    for key, rows in frame.groupby(column):
        assert figures[key].calls == len(rows)
        assert figures[key].errors == (rows["error_count"] > 0).sum()
        assert figures[key].unanswered == (rows["status"] == "unanswered").sum()
        latencies = rows["latency_ns"].dropna()
        if len(latencies):
            wanted = [nearest_rank(latencies, percent) for percent in (50, 95, 99)]
            assert figures[key].percentiles((50, 95, 99)) == wanted


def test_percentiles_leave_deliberate_waits_out(analysis: Analysis) -> None:
    """The long polls of these recordings took half a second: it was nobody's slowness."""
    tables = {name: inside(name, analysis.table(name)) for name in ("api_calls", "latencies")}
    coded = {name: table.combine_chunks().to_batches()[0] for name, table in tables.items()}
    backwards = pa.array(range(coded["latencies"].num_rows - 1, -1, -1))
    window, metrics = Window(10.0, now=Clock()), Metrics()
    step = {"api_calls": coded["api_calls"], "latencies": coded["latencies"].take(backwards)}
    window.add(step)
    metrics.add(step, NOTHING)
    frame = analysis.latencies.to_pandas()
    frame["active_ns"] = frame["total_ns"] - frame["deliberate_wait_ns"]
    ways = ["network_ns", "request_transmission_ns", "response_transmission_ns"]
    frame["network"] = frame[ways].sum(axis=1)
    assert frame["deliberate_wait_ns"].any()
    figures, found = window.figures("apis"), samples(metrics)
    for api, rows in frame.groupby("api_name"):
        parts = {"active": "active_ns", "broker": "broker_ns", "queue": "queue_wait_ns", "network": "network"}
        for part, column in parts.items():
            wanted = [nearest_rank(rows[column], percent) for percent in (50, 95, 99)]
            assert figures[api].percentiles((50, 95, 99), part) == wanted
        assert figures[api].percentiles((95,)) == [nearest_rank(rows["broker_ns"], 95)]
        total = found["kwsniff_api_latency_seconds_sum", (("api", api),)]
        assert total == pytest.approx(rows["active_ns"].sum() / 1e9)


def test_fetches_of_followers_and_of_controllers_are_told_apart() -> None:
    """By the table: who calls, and of which topic."""
    (path,) = (ROOT / "captures" / "replication").glob("capture.pcap*")
    analysis = kwsniff.analyze(path)
    frame = analysis.api_calls.to_pandas()
    fetches = frame[frame["api_name"] == "Fetch"]
    inside_it = fetches["caller"].isin(["replica", "broker"])
    metadata = fetches["topics"].map(lambda topics: topics is not None and "__cluster_metadata" in topics)
    assert (inside_it & ~metadata).any()
    figures = filled(analysis, Clock()).figures("apis")
    counts = {
        "Fetch": (~inside_it).sum(),
        "Fetch (follower)": (inside_it & ~metadata).sum(),
        "Fetch (controller)": (inside_it & metadata).sum(),
    }
    assert {name: figures[name].calls for name in counts if name in figures} == {
        k: v for k, v in counts.items() if v
    }


def test_topics_count_every_call_that_names_them(analysis: Analysis) -> None:
    figures = filled(analysis, Clock()).figures("topics")
    expected = calls_of(analysis)["topics"].dropna().explode().dropna().value_counts()
    assert {key: found.calls for key, found in figures.items()} == expected.to_dict()


def test_errors_are_counted_by_name_api_and_topic(analysis: Analysis) -> None:
    counted = filled(analysis, Clock()).error_counts()
    assert counted.total() == analysis.error_codes.num_rows
    by_name = analysis.error_codes.to_pandas().groupby("error_name").size().to_dict()
    assert {
        name: sum(n for (error, *_), n in counted.items() if error == name) for name in by_name
    } == by_name


def told(analysis: Analysis, *party: str) -> dict[tuple[str, ...], tuple[int, float]]:
    """Errors of each, and the share of its calls: counted by pandas."""
    errors, calls = (table.to_pandas() for table in (analysis.error_codes, analysis.api_calls))
    names = [*party, "error_name"]
    frame = errors.groupby(names).agg(count=("call_id", "size"), calls=("call_id", "nunique"))
    of = calls.groupby(list(party)).size()
    return {key: (row["count"], round(row["calls"] / of[key[:2]], 4)) for key, row in frame.iterrows()}


@pytest.mark.sample(2)
@pytest.mark.parametrize("side", list(SIDES))
@pytest.mark.parametrize("rows", [7, 1 << 20])
def test_errors_are_counted_by_client_and_by_broker(analysis: Analysis, side: str, rows: int) -> None:
    """The same in the window, in its JSON and in the summary of the whole."""
    window = filled(analysis, Clock(), rows)
    expected = told(analysis, *SIDES[side])
    assert expected
    line = json.loads(interval_json(window, NOTHING))
    assert line["calls"] == analysis.api_calls.num_rows
    for found in (window.failures().as_dict(), line, analysis.summary):
        items = found[f"errors_by_{side}"]
        names = (*SIDES[side], "error_name")
        assert {
            tuple(item[name] for name in names): (item["count"], item["share"]) for item in items
        } == expected
        assert [item["count"] for item in items] == sorted((item["count"] for item in items), reverse=True)


def test_errors_that_are_too_old_have_no_client(analysis: Analysis) -> None:
    clock = Clock()
    window = filled(analysis, clock)
    picture = window.frozen()
    clock.now += 10.5
    assert window.failures().as_dict() == {"errors_by_client": [], "errors_by_broker": []}
    assert picture.failures().as_dict()["errors_by_client"]


def test_what_is_older_than_the_window_is_forgotten_and_totals_are_not(
    analysis: Analysis,
) -> None:
    clock = Clock()
    window = filled(analysis, clock)
    picture = window.frozen()
    clock.now += 10.5
    assert window.figures("apis") == {}
    assert window.error_counts().total() == 0
    assert window.calls == analysis.api_calls.num_rows
    assert sum(found.calls for found in picture.figures("apis").values()) == window.calls


def test_figures_stand_for_the_time_since_the_start_or_the_window() -> None:
    clock = Clock()
    window = Window(10.0, now=clock)
    spans = []
    for seconds in (2.0, 5.0, 60.0):
        clock.now += seconds
        spans.append(window.span)
    assert spans == [2.0, 7.0, 10.0]


def test_last_calls_come_newest_first_and_of_whom_they_are_asked_for(
    analysis: Analysis,
) -> None:
    window = filled(analysis, Clock())
    frame = calls_of(analysis)
    for column, word in (("api_name", "api"), ("broker", "broker"), ("client_id", "client")):
        for value, rows in frame.groupby(column):
            newest = rows["correlation_id"].tolist()[::-1][:5]
            found = window.last_calls(5, **{word: value})
            assert [call["correlation_id"] for call in found] == newest
    topics = frame["topics"].explode().dropna().unique()
    for topic in topics:
        assert all(topic in call["topics"] for call in window.last_calls(5, topic=topic))
    assert window.last_calls(5, topic="no such topic") == []
    assert len(window.last_calls(10**6)) == len(frame)


def test_a_topic_that_was_named_late_is_one_topic() -> None:
    window = Window(10.0, now=Clock())
    window.add({"api_calls": many_clients(3)})
    window.names = {"topic-0": "orders", "topic-2": "orders"}
    figures = window.figures("topics")
    assert {key: found.calls for key, found in figures.items()} == {"orders": 2, "topic-1": 1}
    found = {call["client_id"] for call in window.last_calls(9, topic="orders")}
    assert found == {"client-0", "client-2"}
    assert len(window.frozen().figures("topics")) == 2


def test_keys_beyond_the_bound_are_counted_together() -> None:
    window = Window(10.0, now=Clock())
    window.add({"api_calls": many_clients(MOST_KEYS + 50)})
    figures = window.figures("clients")
    assert len(figures) == MOST_KEYS + 1
    assert figures[OTHERS].calls == 50


def many_clients(number: int) -> pa.RecordBatch:
    """As many calls, each of a client of its own."""
    path = ROOT / "captures" / "first_steps" / "capture.pcap"
    one = kwsniff.analyze(path).api_calls.slice(0, 1).to_pylist()[0]
    rows = [{**one, "client_id": f"client-{n}", "topics": [f"topic-{n}"]} for n in range(number)]
    schema = kwsniff.analyze(path).api_calls.schema
    coded = inside("api_calls", pa.Table.from_pylist(rows, schema=schema))
    batch: pa.RecordBatch = coded.combine_chunks().to_batches()[0]
    return batch


@pytest.mark.parametrize("order", ["calls", "errors", "p50", "p95", "p99", "name"])
def test_rows_come_sorted(analysis: Analysis, order: str) -> None:
    rows = list(rank_figures(filled(analysis, Clock()).figures("apis"), order))
    if order == "name":
        assert [key for key, _, _ in rows] == sorted(key for key, _, _ in rows)
        return
    places = {"p50": 0, "p95": 1, "p99": 2}
    values = [
        (percentiles[places[order]] or 0) if order in places else getattr(found, order)
        for _, found, percentiles in rows
    ]
    assert values == sorted(values, reverse=True)


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """The metrics as Prometheus' own library reads them."""
    parser = pytest.importorskip("prometheus_client.parser")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parser.text_string_to_metric_families(metrics.text())
        for sample in family.samples
    }


def test_metrics_are_read_by_prometheus_and_equal_the_tables(
    analysis: Analysis,
) -> None:
    metrics = Metrics()
    for step in batches(analysis, 5):
        metrics.add(step, NOTHING)
    found = samples(metrics)
    frame = calls_of(analysis)
    calls = {labels: value for (name, labels), value in found.items() if name == "kwsniff_calls_total"}
    expected = frame.fillna({"client_id": ""}).groupby(["api_name", "client_id"]).size()
    assert calls == {(("api", api), ("client", client)): n for (api, client), n in expected.items()}
    for of in ("", "client_", "broker_"):
        name = f"kwsniff_{of}error_codes_total"
        assert sum(n for (each, _), n in found.items() if each == name) == analysis.error_codes.num_rows
    by_client = analysis.error_codes.to_pandas().groupby(["client_id", "error_name"]).size()
    for (client, error), number in by_client.items():
        assert found["kwsniff_client_error_codes_total", (("client", client), ("error", error))] == number
    for api, rows in frame.groupby("api_name"):
        latencies = rows["latency_ns"].dropna()
        label = ("api", api)
        for edge in EDGES_S:
            key = ("kwsniff_api_latency_seconds_bucket", (label, ("le", repr(edge))))
            assert found.get(key, 0) == (latencies <= round(edge * 1e9)).sum()
        if len(latencies):
            assert found["kwsniff_api_latency_seconds_count", (label,)] == len(latencies)
            assert found["kwsniff_api_latency_seconds_sum", (label,)] == pytest.approx(latencies.sum() / 1e9)


def test_series_are_bounded() -> None:
    metrics = Metrics()
    metrics.add({"api_calls": many_clients(MOST_SERIES + 30)}, NOTHING)
    found = samples(metrics)
    for name, label in (("kwsniff_calls_total", "client"), ("kwsniff_topic_calls_total", "topic")):
        values = [dict(labels)[label] for (sample, labels) in found if sample == name]
        assert len(values) == MOST_SERIES + 1
        other = [
            value
            for (sample, labels), value in found.items()
            if sample == name and (label, "other") in labels
        ]
        assert other == [30]


def test_label_values_cannot_break_the_format() -> None:
    batch = many_clients(1)
    at = batch.schema.get_field_index("client_id")
    evil = 'a"} 1\n\\x'
    column = pa.array([evil]).dictionary_encode().cast(batch.schema.field(at).type)
    metrics = Metrics()
    metrics.add({"api_calls": batch.set_column(at, batch.schema.field(at), column)}, NOTHING)
    assert [
        dict(labels)["client"] for (name, labels) in samples(metrics) if name == "kwsniff_calls_total"
    ] == ['a"} 1\\n\\x']


def test_answers_without_their_questions_are_no_api() -> None:
    batch = many_clients(3)
    at = batch.schema.get_field_index("api_name")
    nothing = pa.nulls(3, pa.string()).dictionary_encode().cast(batch.schema.field(at).type)
    window = Window(10.0, now=Clock())
    window.add({"api_calls": batch.set_column(at, batch.schema.field(at), nothing)})
    assert window.figures("apis") == {}
    assert sum(found.calls for found in window.figures("brokers").values()) == 3
