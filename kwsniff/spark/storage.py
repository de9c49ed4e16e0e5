"""Storage that tasks and driver share: a local folder, or a URI of a store.

A URI (`s3a://`, `gs://`, `abfs://`, `hdfs://`) is reached through Arrow's file systems, so that neither Spark
nor its workers need jars for it. Credentials are those of Spark's configuration (`fs.s3a.access.key` and its
kin, by whatever way they came into it), else those of the environment, as the stores' own clients find them.
Nothing is renamed, and no folder has to be made or seen.
"""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.fs as pafs

from kwsniff.errors import OutputError
from kwsniff.spark.file_systems import attempts_at, file_system, is_uri
from kwsniff.spark.hadoop import Settings
from kwsniff.spark.stored_file import StoredFile

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_AT_A_TIME: Final = 16
_COPIED_BYTES: Final = 8 << 20
_READ_WHOLE_BYTES: Final = 1 << 20
_DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Place:
    """A folder, by a path or a URI. It travels to tasks with the settings that open it."""

    root: str
    settings: Settings = ()

    @property
    def is_local(self) -> bool:
        """Whether it is a path of this machine."""
        return not is_uri(self.root)

    @property
    def folder(self) -> Path:
        """The path. For places of this machine only."""
        assert self.is_local  # noqa: S101 - who asks has looked
        return Path(self.root)

    def inside(self, name: str) -> "Place":
        """A folder inside."""
        return Place(str(self.folder / name) if self.is_local else f"{self.root}/{name}", self.settings)

    def display(self, path: str) -> str:
        """A file inside, as a person names it."""
        return str(self.folder / path) if self.is_local else f"{self.root}/{path}"

    def open_input(self, path: str) -> Any:
        """A file inside, to read anywhere in it. Raises OSError."""
        if self.is_local:
            return pa.OSFile(os.fsencode(self.folder / path), "rb")
        files, root = file_system(self.root, self.settings)
        file = StoredFile(files.open_input_file(f"{root}/{path}"), attempts_at(self.root, self.settings))
        if file.size() > _READ_WHOLE_BYTES:
            return pa.PythonFile(file, "r")
        with file:
            return pa.BufferReader(file.readall())  # one request in place of several

    def open_output(self, path: str) -> Any:
        """A new file inside; it is there once it is closed. Raises OSError.

        In a store no folders are made; here those between the place and the file are.
        """
        if self.is_local:
            return pa.OSFile(os.fsencode(self._make(path)), "wb")
        files, root = file_system(self.root, self.settings)
        return files.open_output_stream(f"{root}/{path}", compression=None)  # whatever a name ends with

    def open_parquet(self, path: str, **options: Any) -> "pq.ParquetFile":
        """A parquet file inside; a context that closes it. Raises OSError."""
        import pyarrow.parquet as pq

        if self.is_local:
            return pq.ParquetFile(str(self.folder / path), **options)
        return pq.ParquetFile(self.open_input(path), **options)

    def size(self, path: str) -> int | None:
        """In bytes; None: there is no such file."""
        if self.is_local:
            try:
                with (self.folder / path).open("rb") as file:  # opened: a network's memory of it may be old
                    return os.fstat(file.fileno()).st_size
            except FileNotFoundError:
                return None
        files, root = file_system(self.root, self.settings)
        found = files.get_file_info(f"{root}/{path}")
        return int(found.size) if found.type == pafs.FileType.File else None

    def files(self, name: str = "") -> list[str]:
        """All files below a folder inside, by their paths in this place."""
        if self.is_local:
            found = [path for path in (self.folder / name).rglob("*") if path.is_file()]
            return sorted(str(path.relative_to(self.folder)) for path in found)
        files, root = file_system(self.root, self.settings)
        chosen = pafs.FileSelector(f"{root}/{name}".rstrip("/"), recursive=True, allow_not_found=True)
        infos = [info for info in files.get_file_info(chosen) if info.type == pafs.FileType.File]
        return sorted(str(PurePosixPath(info.path).relative_to(root)) for info in infos)

    def read_text(self, path: str) -> str | None:
        """None: there is no such file."""
        try:
            with self.open_input(path) as file:
                return bytes(file.read()).decode("utf-8", "replace")
        except FileNotFoundError:
            return None

    def write_text(self, path: str, text: str) -> None:
        """Replaces a small file."""
        with self.open_output(path) as file:
            file.write(text.encode())

    def copy(self, source: str, target: str) -> None:
        """A file inside once more, under another name; by the store itself where it can do that."""
        if not self.is_local:
            files, root = file_system(self.root, self.settings)
            try:
                files.copy_file(f"{root}/{source}", f"{root}/{target}")
            except (OSError, NotImplementedError):  # Hadoop has no copies, S3 none of more than 5 GB
                pass
            else:
                return
        with self.open_input(source) as old, self.open_output(target) as new:
            while data := old.read(_COPIED_BYTES):
                new.write(data)

    def remove(self, paths: Iterable[str]) -> None:
        """Missing files are not an error."""
        for _ in in_threads(self._remove, paths):
            pass

    def remove_folder(self, name: str) -> None:
        """With all that is in it."""
        if self.is_local:
            import shutil

            shutil.rmtree(self.folder / name, ignore_errors=True)
            return
        files, root = file_system(self.root, self.settings)
        try:
            files.delete_dir(f"{root}/{name}")
        except OSError:  # stores have several words for a folder that is not there
            if self.files(name):
                raise

    def _remove(self, path: str) -> None:
        if self.is_local:
            (self.folder / path).unlink(missing_ok=True)
            return
        files, root = file_system(self.root, self.settings)
        try:
            files.delete_file(f"{root}/{path}")
        except FileNotFoundError:
            return

    def _make(self, path: str) -> Path:
        """The folders inside are made; the place itself never is: a worker that does not see it says so."""
        for each in reversed(Path(path).parents[:-1]):
            try:
                (self.folder / each).mkdir(exist_ok=True)
            except FileNotFoundError as error:
                raise self.explain_missing() from error
        return self.folder / path

    def check(self) -> None:
        """Raises OutputError where a folder that the driver made is not seen."""
        if self.is_local and not self.folder.is_dir():
            raise self.explain_missing()

    def explain_missing(self) -> OutputError:
        """What to say then."""
        return OutputError(
            f"{self.folder.parent}: workers do not see the output folder; "
            "it must be on storage that all workers share"
        )


def write_checked(place: Place, path: str, data: bytes) -> str:
    """Writes a file; returns its digest, for `read_checked`."""
    with place.open_output(path) as file:
        file.write(data)
    return blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()


def read_checked(place: Place, path: str, digest: str) -> bytes:
    """The bytes of a file. Raises OutputError where they are missing, or not those of the digest."""
    try:
        with place.open_input(path) as file:
            data = bytes(file.read())
    except FileNotFoundError as error:
        raise OutputError(
            f"{place.display(path)} is missing: the state of an earlier run was in it"
        ) from error
    if blake2b(data, digest_size=_DIGEST_BYTES).hexdigest() != digest:
        raise OutputError(f"{place.display(path)} is damaged: an earlier run left other bytes there")
    return data


def in_threads(work: Any, items: Iterable[Any]) -> Iterator[Any]:
    """Small requests to a store, several at a time, in their order."""
    with ThreadPoolExecutor(_AT_A_TIME) as threads:
        yield from threads.map(work, items)
