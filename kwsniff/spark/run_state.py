"""What a run leaves for the next one, on any store: its record, the analyzers of its buckets, its timelines.

    STATE/<run_id>/<commit>.json    STATE/<run_id>/<commit>-*.state    STATE/<run_id>/<commit>.timelines

The manifest of the tables names the record and its digest: rows and state are published by one write. Files
that this record does not name are of runs that were killed, or of earlier ones, and go.
"""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from kwsniff.errors import OutputError, UsageError
from kwsniff.spark.checkpoint import keep_private
from kwsniff.spark.storage import Place, read_checked, write_checked
from kwsniff.tables.run import new_run_id

_VERSION: Final = 1


@dataclass(slots=True)
class State:
    """The record; paths of tables are relative to the output."""

    settings: dict[str, Any]
    """Options that must stay."""
    run_id: str = field(default_factory=new_run_id)
    """Of the rows of all runs: ids of calls continue."""
    version: int = _VERSION
    captures: int = 0
    """How many were read."""
    unsettled: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Number of a capture -> its row, where bytes of it wait for others."""
    replaced: list[str] = field(default_factory=list)
    """The files with these rows, which the next run writes again."""
    inputs: dict[str, list[Any]] = field(default_factory=dict)
    """Fingerprint of a capture -> its name and first time."""
    unread: list[str] = field(default_factory=list)
    """Captures that could not be read."""
    names: dict[str, str] = field(default_factory=dict)
    """Topic id -> name."""
    nameless: list[dict[str, Any]] = field(default_factory=list)
    """Published parts that show topic ids."""
    states: list[list[str]] = field(default_factory=list)
    """Of each bucket: file and digest."""
    timelines: str | None = None
    is_finished: bool = False


class StateFolder:
    """The place of the states of one output, below a path or a URI that others may use for theirs, too."""

    def __init__(self, root: Place, run_id: str) -> None:
        self.place = root.inside(run_id)
        if root.is_local:
            try:
                self.place.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise OutputError(
                    f"{root.root}: cannot write ({error.strerror}); choose another --state"
                ) from error
            keep_private(self.place.folder)

    def load(self, said: Any, output: str) -> State:
        """The record that a manifest names. Raises OutputError, UsageError."""
        name, digest = f"{said['commit']}.json", said["digest"]
        if self.place.size(name) is None:
            raise UsageError(
                f"{self.place.display(name)} is missing: the tables in {output} continue from another --state"
            )
        record = json.loads(read_checked(self.place, name, digest))
        if record.get("version") != _VERSION:
            raise UsageError(
                f"the state of {output} belongs to another version of kwsniff; choose other folders"
            )
        return State(**record)

    def save(self, state: State, commit: str) -> dict[str, str]:
        """Writes a record under a new name; what the manifest has to say of it. Raises OSError."""
        digest = write_checked(self.place, f"{commit}.json", json.dumps(asdict(state)).encode())
        return {"run_id": state.run_id, "commit": commit, "digest": digest}

    def clear(self, state: State, commit: str | None) -> None:
        """Removes all but the files of this state."""
        known = {f"{commit}.json", state.timelines, *(path for path, _ in state.states)}
        self.place.remove(path for path in self.place.files() if path not in known)
