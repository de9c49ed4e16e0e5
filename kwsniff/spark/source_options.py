"""Options of the data source: their names, and what their values mean.

In camelCase, as Spark's own are; names with underscores, which were the first ones, mean the same. Hadoop's
settings of stores are options as well, as for Spark's files. `create table` says options in another way.
"""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from kwsniff.analysis.parallelism import MOST
from kwsniff.errors import UsageError
from kwsniff.spark.configuration import is_of_stores
from kwsniff.tables.schema import TABLES
from kwsniff.texts import suggest

OPTIONS: Final = (
    "table", "port", "limit", "since", "until", "tlsKeylog", "layouts", "jobs", "runId", "pushdown",
    "pathGlobFilter", "recursiveFileLookup", "modifiedAfter", "modifiedBefore",
)  # fmt: skip
_SPARKS_OWN: Final = ("path", "paths", "serialization.format")
_CREATED: Final = "provider"
"""What Spark says besides the options where a table is created."""
_OF_TABLE: Final = "option."
"""What it puts before the names of options of such a table, of all but the path."""
_TRUE: Final = ("true", "1", "yes")
_FALSE: Final = ("false", "0", "no")


def is_created(options: Mapping[str, str]) -> bool:
    """Whether these come with `create table`."""
    return _CREATED in options


def options_of_table(options: Mapping[str, str]) -> dict[str, str]:
    """What `create table ... options (...)` said. Raises UsageError."""
    given = {
        name.lower().removeprefix(_OF_TABLE): value
        for name, value in options.items()
        if name.lower().startswith(_OF_TABLE)
    }
    for name in given:
        if is_of_stores(_hadoop_name(name)):
            raise UsageError(
                f"option {name!r} would be kept with the table; put it into Spark's configuration"
            )
    return {**given, **({"path": options["path"]} if "path" in options else {})}


def check_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options of the data source, in lower case without underscores.

    Raises UsageError for one that there is not: a typing error must not give other rows.
    """
    known = [each.lower() for each in OPTIONS]
    checked: dict[str, str] = {}
    for name, value in options.items():
        plain = name.lower()
        if plain in _SPARKS_OWN:
            checked[plain] = value
        elif (plain := plain.replace("_", "")) in known:
            if checked.setdefault(plain, value) != value:
                raise UsageError(f"option {OPTIONS[known.index(plain)]} is given twice")
        elif not is_of_stores(_hadoop_name(name)):
            near = get_close_matches(plain, known, 1)
            meant = (
                f"did you mean {OPTIONS[known.index(near[0])]}?" if near else f"known: {', '.join(OPTIONS)}"
            )
            raise UsageError(f"unknown option {name!r} of the data source; {meant}")
    return checked


def hadoop_settings_in(options: Mapping[str, str]) -> dict[str, str]:
    """Settings of stores among the options, by Hadoop's names."""
    named = {_hadoop_name(name): value for name, value in options.items()}
    return {name: value for name, value in named.items() if is_of_stores(name)}


def _hadoop_name(option: str) -> str:
    name = option.removeprefix("spark.hadoop.")
    return "fs.defaultFS" if name.lower() == "fs.defaultfs" else name


def table_of(options: Mapping[str, str]) -> str:
    """The table that is asked for. Raises UsageError for one that does not exist."""
    table = options.get("table", "api_calls")
    if table not in TABLES:
        raise UsageError(f"unknown table {table!r}; {suggest(table, TABLES)}")
    return table


def paths_of(options: Mapping[str, str]) -> list[str]:
    """The paths given to `load`. Raises UsageError where there are none."""
    given = json.loads(options["paths"]) if "paths" in options else [options.get("path")]
    if not given or None in given:
        raise UsageError('no capture was named: spark.read.format("kafka_capture").load("capture.pcap")')
    return [str(path) for path in given]


def flag(options: Mapping[str, str], name: str) -> bool:
    """True or false. Raises UsageError for anything else."""
    value = str(options.get(name.lower(), "false")).lower()
    if value not in (*_TRUE, *_FALSE):
        raise UsageError(f"option {name} {value!r}: give true or false")
    return value in _TRUE


def words(text: str | None) -> list[str]:
    """Between commas."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def ports_of(options: Mapping[str, str]) -> tuple[int, ...]:
    """Raises UsageError."""
    given = words(options.get("port"))
    if wrong := [port for port in given if not port.isdecimal()]:
        raise UsageError(f"option port {wrong[0]!r}: give a number from 1 to 65535")
    return tuple(map(int, given))


def jobs_of(options: Mapping[str, str]) -> int | None:
    """Raises UsageError."""
    text = options.get("jobs")
    if text is not None and not (text.isdecimal() and 0 < int(text) <= MOST):
        raise UsageError(f"option jobs {text!r}: give a number from 1 to {MOST}")
    return None if text is None else int(text)


def limits_of(options: Mapping[str, str]) -> dict[str, Any]:
    """Raises UsageError."""
    return {name: int(value) for name, value in map(_limit, words(options.get("limit")))}


def _limit(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not value.strip().isdecimal():
        raise UsageError(
            f"option limit {text!r}: give a name and a whole number, for example connections=1000"
        )
    return name.strip(), value
