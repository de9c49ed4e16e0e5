"""Delta Lake's log beside the parquet files of each table, so that engines read the folder as a Delta table.

The files stay as they are: the log (`_delta_log/`) lists them with their sizes, statistics and dates.
Source: the Delta transaction log protocol, as the library deltalake writes it.
"""

import os
import warnings
from collections.abc import Iterable
from pathlib import Path

from kwsniff.errors import OutputError, UsageError
from kwsniff.spark.file_systems import is_uri


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
