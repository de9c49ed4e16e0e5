"""What once broke the core stays mended."""

import gc
import random
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kwsniff.core.analyzer import Analyzer
from kwsniff.core.declared import COLUMNS
from kwsniff.errors import UsageError
from kwsniff.layout.catalog import load_catalog
from tests.hostile import crash_inputs
from tests.hostile.alone import feed_alone
from tests.hostile.seeds import compile_shipped
from tests.pipeline.running import rows_of, rows_of_bytes, run
from tests.traffic import scenes
from tests.traffic.damage import drop
from tests.traffic.files import frames, pcap

CRASHES = sorted((Path(__file__).parent / "crashes").iterdir())


@pytest.mark.sample(2)
@pytest.mark.parametrize("path", CRASHES, ids=lambda path: path.stem)
def test_a_capture_that_once_crashed_is_read_to_its_end(path: Path):
    feed_alone(path)


@pytest.mark.parametrize("name", crash_inputs.INPUTS)
def test_the_crash_inputs_are_what_their_makers_make(name: str):
    assert (crash_inputs.FOLDER / f"{name}.pcap").read_bytes() == crash_inputs.INPUTS[name]()


def test_topic_names_do_not_move_while_a_message_is_read():
    rows = rows_of_bytes(crash_inputs.names_that_moved())
    names = ["orders", *("x" * 200 + f"{number:03}" for number in range(200))]
    assert [row["topics"] for row in rows["api_calls"]] == [["orders"], names]


def test_a_foreign_request_before_its_syn_makes_its_sender_the_client():
    rows = rows_of_bytes(crash_inputs.foreign_before_its_syn())
    (connection,) = rows["connections"]
    assert (connection["client_port"], connection["broker_port"]) == (50_000, 9092)
    assert [row["api_key"] for row in rows["api_calls"]] == [600, 3]


def test_times_before_1970_are_none():
    columns, facts = run([crash_inputs.centuries_apart()])
    rows = rows_of(columns)
    assert facts["first_time"] == facts["last_time"] == 8_999_999_999 * 10**9
    assert all(row["latency_ns"] is None or row["latency_ns"] >= 0 for row in rows["api_calls"])


_WHOLE = pcap(frames(scenes.one_by_one(scenes.vocabulary()).packets()))


def _analyzer(compiled: Any, **limits: int) -> Analyzer:
    ranges = [(a.key, a.min_version, a.max_version, a.flexible_from) for a in load_catalog().apis.values()]
    return Analyzer(compiled, ranges, limits=limits)


def _unfinished(compiled: Any, lost: Sequence[int] = ()) -> Analyzer:
    """An analyzer in the middle of a capture, of which the packets `lost` are missing and waited for."""
    analyzer = _analyzer(compiled, reorder_packets=10_000)
    analyzer.open_capture("unfinished")
    analyzer.feed(pcap(frames(drop(scenes.one_by_one(scenes.vocabulary()).packets(), lost))))
    return analyzer


def test_an_analyzer_that_goes_unfinished_decodes_nothing_any_more():
    asked: list[tuple[int, int, int]] = []

    class Owner:
        """Holds its analyzer, which holds it: the collector of cycles ends them, and takes programs first."""

        analyzer: Analyzer | None = None

        def compiled(self, *message: int) -> None:
            asked.append(message)  # type: ignore[arg-type]

    owner = Owner()
    owner.analyzer = _unfinished(owner.compiled, lost=(3, 4))
    before = len(asked)
    assert before == 0, "everything is held back"
    del owner
    gc.collect()
    assert len(asked) == before


def test_control_c_while_a_layout_is_compiled_reaches_the_caller():
    def interrupted(*_: int) -> None:
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # under nohup Python ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            _unfinished(interrupted)
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_analyzer_at_work_is_touched_by_nobody():
    """From a callback here; from another thread it would be the same."""
    holder: list[Analyzer] = []
    touches = (
        lambda: holder[0].feed(b""),
        lambda: holder[0].drain("api_calls"),
        lambda: holder[0].close_capture(),  # noqa: PLW0108 the holder is filled later
        lambda: holder[0].finish(),  # noqa: PLW0108
        lambda: holder[0].open_capture("again"),
    )
    for touch in touches:

        def compiled(*_: int, touch: Any = touch) -> None:
            touch()

        analyzer = _analyzer(compiled)
        holder[:] = [analyzer]
        analyzer.open_capture("busy")
        with pytest.raises(UsageError, match="at work"):
            analyzer.feed(_WHOLE)


def test_what_fails_while_the_last_bytes_are_decoded_is_raised_by_finish():
    def broken(*_: int) -> None:
        raise ZeroDivisionError

    analyzer = _unfinished(broken, lost=(3, 4))
    analyzer.close_capture()
    with pytest.raises(ZeroDivisionError):
        analyzer.finish()


def test_an_analyzer_that_was_never_set_up_says_so():
    with pytest.raises(UsageError, match="never set up"):
        Analyzer.__new__(Analyzer).open_capture("x")
    analyzer = _analyzer(lambda *_: None)
    with pytest.raises(UsageError, match="set up once"):
        analyzer.__init__(lambda *_: None, [])  # type: ignore[misc]


def test_a_damaged_state_is_refused():
    """Every field of a state is a field of the core: one changed bit of them reads and writes anywhere."""
    dice = random.Random(3)
    analyzer = _analyzer(compile_shipped)
    analyzer.open_capture("saved")
    analyzer.feed(_WHOLE[: len(_WHOLE) // 2])
    for table in COLUMNS:
        analyzer.drain(table)
    state = analyzer.save()
    ranges = [(a.key, a.min_version, a.max_version, a.flexible_from) for a in load_catalog().apis.values()]
    assert Analyzer.resume(compile_shipped, ranges, state)
    damaged = [state[:size] for size in (*range(70), *(dice.randrange(len(state)) for _ in range(30)))]
    for _ in range(200):
        at = dice.randrange(len(state))
        damaged.append(state[:at] + bytes([state[at] ^ 1 << dice.randrange(8)]) + state[at + 1 :])
    for broken in damaged:
        with pytest.raises(UsageError, match="not a state"):
            Analyzer.resume(compile_shipped, ranges, broken)
