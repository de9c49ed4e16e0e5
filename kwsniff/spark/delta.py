"""Delta Lake's log beside the parquet files of each table, so that engines read the folder as a Delta table.

The files stay as they are: the log (`_delta_log/`) lists them with their sizes, statistics and dates.
`--delta` converts the folders of a run; `--format delta` appends a version to the log for each run.
Source: the Delta transaction log protocol, as the library deltalake writes it.
"""

import os
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kwsniff.errors import OutputError, UsageError
from kwsniff.spark.dated_parts import date_of, dated_schema
from kwsniff.spark.delta_statistics import file_statistics
from kwsniff.spark.file_systems import is_uri
from kwsniff.spark.parts import Part
from kwsniff.spark.storage import Place, in_threads


def check_delta(output: str | os.PathLike[str]) -> None:
    """Raises UsageError where the library is missing: before anything is read for long."""
    if is_uri(output):
        raise UsageError(f"{output}: --delta needs a folder; use --format delta for a URI")
    try:
        import deltalake  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "--delta needs the library deltalake: pip install '.[delta]' in a clone of the repository"
        ) from error


def write_logs(folders: Iterable[Path]) -> None:
    """Makes a Delta table, partitioned by `date`, of each of these folders. Raises OutputError."""
    from deltalake import Field, Schema, convert_to_deltalake
    from deltalake.exceptions import DeltaError
    from deltalake.schema import PrimitiveType

    dates = Schema([Field("date", PrimitiveType("date"))])
    for folder in folders:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                convert_to_deltalake(str(folder), partition_by=dates, partition_strategy="hive")
        except (DeltaError, OSError) as error:
            raise OutputError(f"{folder.name}: cannot create the Delta table ({error})") from error


def options_of(place: Place) -> dict[str, str]:
    """What deltalake wants to know of a store."""
    known = dict(place.settings)
    names = {
        "fs.s3a.access.key": "AWS_ACCESS_KEY_ID",
        "fs.s3a.secret.key": "AWS_SECRET_ACCESS_KEY",
        "fs.s3a.session.token": "AWS_SESSION_TOKEN",
        "fs.s3a.endpoint": "AWS_ENDPOINT_URL",
        "fs.s3a.endpoint.region": "AWS_REGION",
    }
    options = {there: known[here] for here, there in names.items() if known.get(here)}
    if options.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    return options


def append_version(
    _: Any,
    place: Place,
    table: str,
    parts: Sequence[Part],
    *,
    mode: str,
    dates: Sequence[str | None],
    run: str,
    removes: Sequence[str] = (),
) -> None:
    """Commits these files to the log of a table, as its next version, unless this run has done so before. Of
    days with `removes` all files go: those that stay are among `parts` under other names."""
    from deltalake import DeltaTable, Schema
    from deltalake.transaction import CommitProperties, Transaction

    schema = Schema.from_arrow(dated_schema(table))
    uri = place.display(table)
    options = options_of(place)
    found = DeltaTable.create(
        uri, schema, mode="ignore", partition_by=["date"], storage_options=options or None
    )
    done = f"kwsniff-{run}"
    if found.transaction_version(done) is not None:
        return
    known = {field.name for field in found.schema().fields}
    new = [field for field in schema.fields if field.name not in known]
    if new:
        found.alter.add_columns(new)
    now = int(time.time() * 1000)
    mode = "replace-dates" if removes else mode
    filters = [("date", "in", [day or "" for day in dates])] if mode == "replace-dates" else None
    if mode == "replace-dates" and not dates:
        return
    found.create_write_transaction(
        [*in_threads(lambda part: _add(place, part, now), parts)],
        "append" if mode == "append" else "overwrite",
        found.schema(),
        ["date"],
        filters,
        commit_properties=CommitProperties(
            custom_metadata={"kwsniff_run_id": run}, app_transactions=[Transaction(done, 1, now)]
        ),
    )


def _add(place: Place, part: Part, time_ms: int) -> Any:
    from deltalake.transaction import AddAction

    return AddAction(
        part.path.partition("/")[2],
        part.size,
        {"date": date_of(part.path)},
        time_ms,
        True,
        file_statistics(place, part),
    )
