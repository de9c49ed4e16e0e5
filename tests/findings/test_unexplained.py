"""Harm that no rule knows is said all the same; what another finding explains, or is routine, is not."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import kwsniff
from kwsniff.findings.evaluate import evaluate
from kwsniff.findings.rule import load_rules
from kwsniff.findings.views import open_folder
from kwsniff.tables.harm import KEYS
from tests.findings.account import read_account
from tests.findings.conftest import TablesOf
from tests.findings.measured import Recording, recordings
from tests.findings.stage import FLIGHT, HELLO, RESET, SECOND, TLS, Stage
from tests.findings.test_consumer_stuck import RECORDS
from tests.traffic import messages
from tests.traffic.tcp import MILLISECOND, Endpoint, Script

RECORDED = {(each.name, each.place): each for each in recordings()}
BROKER = Endpoint("10.1.0.93", 9094)


def _open(folder: Path, port: int = 51_000) -> tuple[Stage, Script]:
    stage = Stage(folder)
    script = stage.scene.connection(Endpoint("10.1.0.7", port), BROKER)
    script.open()
    return stage, script


def _said(stage: Stage) -> list[tuple[str, str, str]]:
    return [
        (row["finding"], row["blames"], row["subject"]) for row in stage.rows() if row["severity"] != "info"
    ]


def _metadata(number: int) -> messages.Exchange:
    return messages.metadata(9, number, ["orders"], client_id="auditor")


def _late(folder: Path, *, late: int, milliseconds: int = 1500, usual: int = 3) -> Stage:
    """Calls each half second; every fifth of the later ones takes as long as is said."""
    stage, script = _open(folder)
    moment = 0
    for number in range(1, 41):
        moment += 500 * MILLISECOND
        is_late = number > 20 and number % 5 == 0 and number // 5 - 4 <= late
        takes = (milliseconds if is_late else usual) * MILLISECOND
        script.call(_metadata(number), at=moment, answer_at=moment + takes)
        moment += takes
    script.close(at=moment + SECOND)
    return stage


def test_calls_far_beyond_their_like_are_said(tmp_path: Path) -> None:
    assert _said(_late(tmp_path, late=4)) == [("unexplained", "unknown", "auditor")]


@pytest.mark.parametrize(
    ("late", "milliseconds", "usual"),
    [(2, 1500, 3), (4, 900, 3), (4, 1500, 100)],
)
def test_few_or_slightly_late_calls_are_no_harm(
    late: int, milliseconds: int, usual: int, tmp_path: Path
) -> None:
    found = _said(_late(tmp_path, late=late, milliseconds=milliseconds, usual=usual))
    assert "unexplained" not in [name for name, *_ in found]


def _given_up(folder: Path, *, seconds: float, from_client: bool = True) -> Stage:
    stage, script = _open(folder)
    for number in range(1, 4):
        script.call(_metadata(number), at=number * SECOND, answer_at=number * SECOND + MILLISECOND)
    script.call(_metadata(9).unanswered(), at=4 * SECOND)
    script.acknowledge(4 * SECOND + MILLISECOND, from_client=False)
    script.close(at=4 * SECOND + int(seconds * SECOND), from_client=from_client)
    return stage


def test_a_client_that_closes_in_vain_after_long_is_said_or_explained(tmp_path: Path) -> None:
    """Whatever it is called: a client that waited for nine seconds was harmed."""
    assert _said(_given_up(tmp_path, seconds=9)) != []


def test_a_client_that_closes_beside_a_call_is_no_harm(tmp_path: Path) -> None:
    assert _said(_given_up(tmp_path, seconds=1)) == []


@pytest.mark.parametrize(("seconds", "said"), [(9, [("unexplained", "unknown", "auditor")]), (3, [])])
def test_a_client_that_closes_inside_a_slow_response_is_said(
    seconds: int, said: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    """A part of the response arrives, as through a tiny window; the client gives up before the rest."""
    stage, script = _open(tmp_path)
    script.call(_metadata(1), at=SECOND, answer_at=SECOND + MILLISECOND)
    asked = _metadata(2)
    script.write(asked.request, at=2 * SECOND, from_client=True)
    assert asked.response is not None
    script.write(asked.response[:24], at=2 * SECOND + MILLISECOND, from_client=False)
    script.close(at=(2 + seconds) * SECOND)
    assert _said(stage) == said


def _alone(folder: Path) -> list[str]:
    """Texts of the rule where no other rule explains anything."""
    rules = [rule for rule in load_rules() if rule.name == "unexplained"]
    with open_folder(folder) as database:
        return [each.text for each in evaluate(database, rules=rules) if each.severity != "info"]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "place", "client", "said"),
    [
        ("broker_stalled", "broker", "shop", "Produce"),
        ("path_dead_gives_up", "client", "py-shop", "without a response"),
        ("no_sasl_java", "broker", "shop", "Metadata"),
        ("connection_limit", "broker", "shop", "ApiVersions"),
        ("not_enough_zookeeper", "broker", "sarama-shop", "NOT_ENOUGH_REPLICAS"),
        ("backend_down", "client", "till", "without a response"),
    ],
)
def test_harm_that_other_rules_name_is_seen_without_them(
    name: str, place: str, client: str, said: str, tables_of: TablesOf
) -> None:
    """It is how a cause looks that has no rule."""
    texts = _alone(tables_of(RECORDED[name, place].path))
    assert any(text.startswith(client) and said in text for text in texts)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "recording", [each for each in RECORDED.values() if not each.cause], ids=lambda each: each.name
)
def test_a_healthy_recording_has_no_harm_even_without_other_rules(
    recording: Recording, tables_of: TablesOf
) -> None:
    assert _alone(tables_of(recording.path)) == []


def test_the_figures_in_its_head_are_those_of_the_definitions() -> None:
    folder = files("kwsniff.findings")
    harm = folder.joinpath("shared_views", "harm.sql").read_text("utf-8")
    related = folder.joinpath("account", "related.sql").read_text("utf-8")
    (floors,) = [rule.floors for rule in load_rules() if rule.name == "unexplained"]
    assert f"epoch(until - time) >= {floors['long_s']} as plain" in harm
    assert f"where ns >= {floors['late_s']}e9" in harm
    assert f"having count(*) >= {floors['calls']}" in harm
    assert f"b.ns >= {floors['times']} * u.ns" in harm
    progress = folder.joinpath("shared_views", "progress.sql").read_text("utf-8")
    (stuck,) = [rule.floors for rule in load_rules() if rule.name == "consumer_stuck"]
    many = (stuck["fetches"], stuck["deliveries"])
    for number in many:
        assert f"having count(*) >= {number}" in progress
    assert progress.count(f"epoch(max(time) - min(time)) >= {stuck['seconds']}") == len(many)
    assert f">= {stuck['share']} * count(*)" in progress
    assert related.count(f"to_seconds({floors['near_s']})") == 2


def _close_early(stage: Stage) -> None:
    stage.talk(at=SECOND)


def _shake_in_vain(stage: Stage) -> None:
    stage.talk(HELLO, (FLIGHT,), at=SECOND, broker=TLS, end=RESET, by_client=True)


def _refuse_once(code: int) -> Callable[[Stage], None]:
    def play(stage: Stage) -> None:
        script = stage.scene.connection(Endpoint("10.1.0.7", 51_000), BROKER)
        script.open()
        call = messages.produce(9, 1, {"orders": {0: RECORDS}}, errors={("orders", 0): code})
        script.call(call, at=SECOND, answer_at=SECOND + MILLISECOND)
        script.call(_metadata(2), at=20 * SECOND, answer_at=20 * SECOND + MILLISECOND)
        script.close(at=21 * SECOND)

    return play


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("play", "harm"),
    [
        (_close_early, ("connections", "ended_early")),
        (_shake_in_vain, ("connections", "handshake_failed")),
        *((_refuse_once(code), ("api_calls", "refused")) for code in (3, 5, 6, 14, 22, 74)),
    ],
)
def test_one_harmed_entry_is_said(
    play: Callable[[Stage], None], harm: tuple[str, str], tmp_path: Path
) -> None:
    """However little it is: an account with harm never ends without a finding."""
    stage = Stage(tmp_path)
    play(stage)
    kwsniff.analyze(stage.write(), output=tmp_path / "out")
    account = read_account(tmp_path / "out")
    told = {table: pq.read_table(tmp_path / "out" / f"{table}.parquet")["harm"].drop_null() for table in KEYS}
    assert {(table, word) for table, words in told.items() for word in words.to_pylist()} == {harm}
    assert [*account.faults()] == []
    assert account.harmed == 1
    assert [each.finding for each in account.findings] != []


def test_an_error_at_the_end_of_a_capture_may_pass(tmp_path: Path) -> None:
    """The same error, less than ten seconds before the last packet."""
    stage, script = _open(tmp_path)
    call = messages.produce(9, 1, {"orders": {0: RECORDS}}, errors={("orders", 0): 6})
    script.call(call, at=SECOND, answer_at=SECOND + MILLISECOND)
    script.call(_metadata(2), at=9 * SECOND, answer_at=9 * SECOND + MILLISECOND)
    script.close(at=10 * SECOND)
    assert stage.rows() == []
