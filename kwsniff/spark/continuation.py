"""A run that continues where the one before ended: `kwsniff pipeline hour=08/ --mode append --state URI`.

It takes up open connections, calls without an answer, names of topics, members of groups and all else that
is followed over time, and leaves its own for the next run. Rows of all runs are those of one over all their
captures. What was published is written again where more is known of it now: names of topics, where bytes of a
capture ended up, aggregates of a day.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

from kwsniff.analysis.capture_points import CapturePoints
from kwsniff.errors import UsageError
from kwsniff.layout.catalog import load_catalog
from kwsniff.limits import Limits
from kwsniff.sources.files import Unread
from kwsniff.sources.times import TimeRange
from kwsniff.spark.aggregates import QUERIES
from kwsniff.spark.capture_fingerprints import fingerprints_of
from kwsniff.spark.checkpoint import load_timelines, save_timelines
from kwsniff.spark.client_rows import read_sources
from kwsniff.spark.dated_parts import date_of
from kwsniff.spark.decode import Decoded, Handover, Work
from kwsniff.spark.finish import capture_rows, name_topics, sum_bins
from kwsniff.spark.inputs import Capture
from kwsniff.spark.manifest import read_published
from kwsniff.spark.merged_events import merge_events
from kwsniff.spark.parts import Part, PartWriter, check_file, check_parts
from kwsniff.spark.run_state import State, StateFolder
from kwsniff.spark.scan import Walked
from kwsniff.spark.staging import Staging, place_of
from kwsniff.spark.storage import Place
from kwsniff.spark.store_staging import StoreStaging
from kwsniff.tables.aggregates import AGGREGATES
from kwsniff.tables.captures import (
    CaptureRow,
    account,
    captures_batch,
    printable,
    unread_anomalies,
    unread_row,
)
from kwsniff.tables.rows import batch_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NOT_FOLLOWED: Final = frozenset({"findings", "finding_calls"})
"""Of a whole folder: `kwsniff why` makes them when they are asked for."""


def check_state(
    state: str | os.PathLike[str] | None,
    tables: frozenset[str],
    *,
    mode: str,
    again: bool,
    times: TimeRange,
    finish: bool,
) -> frozenset[str]:
    """The tables that runs with a state make, of those that are wanted. Raises UsageError for options that
    do not go with it."""
    if state is None and not finish:
        return tables
    if state is None:
        raise UsageError("--finish needs --stream DIR or --state DIR")
    if mode != "append":
        raise UsageError("--state continues the rows of the run before; add --mode append")
    if again or times:
        raise UsageError("--state reads every packet once; omit --again, --since and --until")
    for name in sorted(tables & AGGREGATES.keys()):
        if QUERIES[name].source not in tables:
            raise UsageError(f"with --state, {name} is made of {QUERIES[name].source}: add it to --table")
    return tables - _NOT_FOLLOWED


def settings_of(
    tables: Iterable[str],
    ports: Sequence[int],
    limits: Mapping[str, int],
    layouts: str | None,
    num_buckets: int | None,
) -> dict[str, Any]:
    """The options that must stay from run to run. Raises UsageError for limits that there are not."""
    Limits.with_changes(dict(limits))
    return {
        "tables": sorted(tables),
        "ports": [*ports],
        "limits": dict(limits),
        "layouts": layouts or "",
        "num_buckets": num_buckets,
    }


class Continuation:
    """Inside the context of `staging`, which publishes the state with the rows."""

    def __init__(
        self, staging: StoreStaging, root: Place, settings: Mapping[str, Any], *, is_last: bool
    ) -> None:
        """Raises OutputError, UsageError where the tables do not continue from here."""
        self.known: list[str] = []
        """Captures of this run that an earlier one has read."""
        self.removes: list[str] = []
        """Published files that others replace."""
        self._staging = staging
        self._is_last = is_last
        published = read_published(staging.output)
        said = (published or {}).get("state")
        if published and not said:
            raise UsageError(
                f"{staging.output.root} has rows of runs without --state; choose another folder with -o"
            )
        self.state = State(dict(settings))
        self._folder = StateFolder(root, said["run_id"] if said else self.state.run_id)
        if said:
            self.state = self._folder.load(said, staging.output.root)
            self._check(settings)
        self._folder.clear(self.state, said and said["commit"])

    def _check(self, settings: Mapping[str, Any]) -> None:
        output = self._staging.output.root
        if self.state.is_finished:
            raise UsageError(f"{output} is complete after --finish; choose another folder with -o")
        if settings["num_buckets"] is None:  # by the size of the first run
            settings = {**settings, "num_buckets": self.state.settings["num_buckets"]}
        if self.state.settings != settings:
            raise UsageError(
                f"{output} was begun with other ports, limits, layouts, tables or buckets: "
                f"{self.state.settings}"
            )

    @property
    def num_buckets(self) -> int | None:
        """Those of the first run; None: this is the first one."""
        return self.state.settings["num_buckets"]  # type: ignore[no-any-return]

    def choose_new(
        self, captures: Sequence[Capture], walks: Sequence[list[Walked]]
    ) -> tuple[list[Capture], list[list[Walked]]]:
        """Those that no earlier run has read. Raises UsageError for one that has grown since."""
        grown = {(name, first): printable(name) for name, first in self.state.inputs.values()}
        chosen: list[Capture] = []
        kept: list[list[Walked]] = []
        for capture, walked in zip(captures, walks, strict=True):
            (mark,) = fingerprints_of([capture], [walked]) or (f"without packets: {capture.name}",)
            if mark in self.state.inputs:
                self.known.append(capture.name)
                continue
            if name := grown.get((capture.name, capture.first_time)):
                raise UsageError(f"{name} has grown since it was read; give captures that are complete")
            self.state.inputs[mark] = [capture.name, capture.first_time]
            chosen.append(capture)
            kept.append(walked)
        return chosen, kept

    def is_idle(self, captures: Sequence[Capture], unread: Sequence[Unread]) -> bool:
        """Whether there is nothing to do."""
        return not (captures or self._is_last or self._new_unread(unread))

    def continue_work(self, work: Work, places: CapturePoints) -> Work:
        """The work of buckets, which begins with the state. Raises UsageError for captures of several
        places."""
        if places:
            raise UsageError(
                "--state continues captures of one place, and these were taken at several: "
                f"{', '.join(map(str, places.names.values()))}; give each a --state and a folder of its own"
            )
        self.state.settings["num_buckets"] = work.num_buckets
        states = [(path, digest) for path, digest in self.state.states]
        handover = Handover(
            self._folder.place, self._staging.run, states, self.state.captures, is_last=self._is_last
        )
        return replace(work, run_id=self.state.run_id, tables=work.tables - _NOT_FOLLOWED, handover=handover)

    def finish(  # noqa: PLR0917
        self,
        spark: "SparkSession",
        work: Work,
        decoded: Sequence[Decoded],
        captures: Sequence[Capture],
        walks: Sequence[Sequence[Walked]],
        times: TimeRange,
    ) -> tuple[list[Part], list[CaptureRow]]:
        """The parts of all tables but captures, and the rows of these; takes down what is left open."""
        self._check_written(work, decoded)
        parts = [part for each in decoded for part in each.parts]
        bins = sum_bins(decoded, self.state.captures + len(captures), work.scratch)
        rows = capture_rows(captures, walks, decoded, times, bins=bins[self.state.captures :])
        unsettled = {int(number): row for number, row in self.state.unsettled.items()}
        unsettled |= dict(enumerate(rows, self.state.captures))
        for number, row in unsettled.items():
            account(row, dict(zip(decoded[0].bin_names, bins[number].tolist(), strict=True)))
        parts += self._follow(work, decoded, parts)
        parts += self._write_captures(work, unsettled, bins)
        self.state.captures += len(captures)
        self.state.states = [[*each.state] for each in decoded if each.state]
        self.state.is_finished = self._is_last
        topics = {key: name for each in decoded for key, name in each.topics.items()}
        return self._name(spark, parts, topics), rows

    def _check_written(self, work: Work, decoded: Sequence[Decoded]) -> None:
        check_parts(work.staging, [part for each in decoded for part in each.parts])
        for each in decoded:
            if each.state:
                check_file(self._folder.place, each.state[0])

    def _follow(self, work: Work, decoded: Sequence[Decoded], parts: Sequence[Part]) -> list[Part]:
        """What all buckets make together."""
        writer = PartWriter(work.staging, "all", work.run_id)
        timelines = load_timelines(self._folder.place, self.state.timelines, load_catalog(work.layouts or ""))
        for notes in merge_events(work.scratch, [path for each in decoded for path in each.notes]):
            timelines.add(notes)
        for table, batch in read_sources(work.staging, parts):
            timelines.add_rows(table, batch)
        if self._is_last:
            timelines.finish()
        for table, batch in timelines.drain(0 if self._is_last else 1):
            if table in work.tables and batch.num_rows:
                writer.write(table, batch)
        self.state.timelines = f"{self._staging.run}.timelines"
        save_timelines(timelines, self._folder.place, self.state.timelines)
        return writer.close()

    def _write_captures(self, work: Work, rows: Mapping[int, CaptureRow], bins: Any) -> list[Part]:
        """Rows that stay as they are, and in files of their own those that the next run writes again."""
        settled = {number for number, row in rows.items() if bins[number].sum() == row["tcp_payload_bytes"]}
        made: list[list[Part]] = []
        self.removes += self.state.replaced
        for name, there in (("settled", settled), ("unsettled", rows.keys() - settled)):
            writer = PartWriter(work.staging, name, work.run_id)
            if chosen := [rows[number] for number in sorted(there)]:
                writer.write("captures", captures_batch(chosen))
            made.append(writer.close())
        self.state.unsettled = {str(number): rows[number] for number in sorted(rows.keys() - settled)}
        self.state.replaced = [self._staging.name_published(part.path) for part in made[1]]
        return [part for each in made for part in each]

    def write_unread(self, work: Work, unread: Sequence[Unread]) -> list[Part]:
        """What cannot be read, where no earlier run has said so."""
        new = self._new_unread(unread)
        writer = PartWriter(work.staging, "unread", work.run_id)
        if new:
            writer.write("captures", captures_batch([*map(unread_row, new)]))
        if damages := unread_anomalies(new):
            writer.write("anomalies", batch_of("anomalies", damages))
        self.state.unread += [each.name for each in new]
        return writer.close()

    def _new_unread(self, unread: Sequence[Unread]) -> list[Unread]:
        return [each for each in unread if each.name not in self.state.unread]

    def _name(self, spark: "SparkSession", parts: Sequence[Part], topics: Mapping[str, str]) -> list[Part]:
        """With the names of topics, also in files that were published before."""
        staging, output = self._staging.place, self._staging.output
        self.state.names |= topics
        named = name_topics(spark, parts, self.state.names, root=staging, staging=staging)
        old = [Part(**{**each, "ids": frozenset(each["ids"])}) for each in self.state.nameless]
        again = name_topics(spark, old, self.state.names, root=output, staging=staging)
        made = [*(named.get(part, part) for part in parts), *again.values()]
        self.removes += [part.path for part in again]
        left = [part for part in old if part not in again]
        left += [replace(part, path=self._staging.name_published(part.path)) for part in made if part.ids]
        self.state.nameless = [{**asdict(part), "ids": sorted(part.ids)} for part in left]
        return made

    def find_sources(self, name: str, parts: Sequence[Part]) -> tuple[Place, list[Part]]:
        """The files, of earlier runs and this one, that an aggregate of this run's days is made of, by their
        paths in the output. What was published of these days is replaced."""
        source, output = QUERIES[name].source, self._staging.output
        days = {date_of(part.path) for part in parts if part.table == source and part.rows}
        if not days:
            return output, []
        before = self._staging.published_parts(without=self.removes)
        self.removes += [part.path for part in before if part.table == name and date_of(part.path) in days]
        there = [*before, *parts]
        chosen = [part for part in there if part.table == source and date_of(part.path) in days]
        if source != "connections":  # which tell twins; there are none
            chosen += [part for part in there if part.table == "connections"][:1]
        new = {*parts}
        return output, [
            replace(part, path=self._staging.path_inside(part.path)) if part in new else part
            for part in chosen
        ]

    def commit(self, parts: Sequence[Part], facts: Mapping[str, Any]) -> None:
        """Publishes rows and state together. Raises OSError, OutputError."""
        said = self._folder.save(self.state, self._staging.run)
        self._staging.commit(parts, {**facts, "state": said}, removes=self.removes)
        self._folder.clear(self.state, self._staging.run)


def take_up(
    state: str | os.PathLike[str] | None,
    staging: Staging | StoreStaging,
    spark: "SparkSession",
    settings: Mapping[str, Any],
    *,
    is_last: bool,
) -> Continuation | None:
    """What this run continues; None: it begins and ends with its captures. Raises OutputError, UsageError
    where rows of runs with and without a state would mix."""
    if isinstance(staging, Staging):
        return None
    if state is not None:
        return Continuation(staging, place_of(state, spark), settings, is_last=is_last)
    if staging.mode != "overwrite" and "state" in (read_published(staging.output) or {}):
        raise UsageError(
            f"{staging.output.root} has rows of runs with --state; give it, or choose another folder"
        )
    return None
