"""Parts rewritten with a change, and copies of parts that are read more than once."""

import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pyarrow as pa

from kwsniff.spark.parts import Part, part_writer
from kwsniff.spark.storage import Place
from kwsniff.temporary import temporary_folder

_LONGEST_NAME = 48


def rewrite_part(
    part: Part,
    change: Callable[[pa.Table], pa.Table],
    prefix: str,
    *,
    staging: Place,
    root: Place | None = None,
    dictionaries: Sequence[str] = (),
) -> Part:
    """A file in `staging` with the rows of `part`, row group by row group, as `change` gives them back.

    `prefix` begins its name. `root` is the place of `part` where that is another one; `dictionaries` are
    columns to read as such, which is faster for texts that repeat.
    """
    old = PurePosixPath(part.path)
    name = old.name.removeprefix(f"{prefix}-")[-_LONGEST_NAME:]
    path = str(old.with_name(f"{prefix}-{uuid.uuid4().hex[:12]}-{name}"))
    read = (root or staging).open_parquet(part.path, read_dictionary=list(dictionaries))
    with read as file, staging.open_output(path) as target:
        with part_writer(target, part.table, file.schema_arrow) as writer:
            for group in range(file.num_row_groups):
                writer.write_table(change(file.read_row_group(group)).cast(file.schema_arrow))
        size = target.tell()
    return replace(part, path=path, size=size)


@contextmanager
def local_folder(staging: Place, parts: Sequence[Part]) -> Iterator[Path]:
    """The folder that has these parts: that of `staging`, or one with copies of what is in a store."""
    if staging.is_local:
        yield Path(staging.folder)
        return
    with temporary_folder() as copies:
        yield copy_parts(staging, parts, Path(copies))


def copy_parts(staging: Place, parts: Sequence[Part], folder: Path) -> Path:
    """The folder, with these parts of a store."""
    for part in parts:
        (folder / part.path).parent.mkdir(parents=True, exist_ok=True)
        with staging.open_input(part.path) as source, (folder / part.path).open("wb") as target:
            shutil.copyfileobj(source, target, 8 << 20)
    return folder
