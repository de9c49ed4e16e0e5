"""A vendor's layouts: a folder in addition to kwsniff's own, read immediately and as a whole.

    9999_echo.layout     an API, in the same notation; the number is its key
    NAME.layout          schemas
    errors.txt enums.txt additions to Kafka's

A file that cannot be used is an error, so that it does not silently have no effect.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import NoReturn, TypeVar

from kwsniff.errors import LayoutError
from kwsniff.layout.grammar import parse_api_line, parse_layout
from kwsniff.layout.model import ApiRange
from kwsniff.layout.reference import ErrorCode, parse_enums, parse_errors
from kwsniff.layout.tokens import fail

_Value = TypeVar("_Value")
_Key = TypeVar("_Key", int, str)


class Vendor:
    """The content of a folder; empty without one. Raises LayoutError."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.texts: dict[str, str] = {}
        """Path -> contents."""
        self.apis: list[ApiRange] = []
        self.schemas: list[str] = []
        """Paths of files of schemas."""
        self.errors: Mapping[int, ErrorCode] = {}
        self.enums: Mapping[str, Mapping[int, str]] = {}
        if folder is not None:
            self._read(folder)

    def refuse(self, table: str, word: str) -> NoReturn:
        """A line of errors.txt or enums.txt that redefines Kafka's."""
        file = next(file for file in self.texts if Path(file).name == table)
        lines = enumerate(self.texts[file].splitlines(), 1)
        number = next(number for number, line in lines if line.split()[:1] == [word])
        fail(file, number, f"'{word}' is already defined")

    def _read(self, folder: Path) -> None:
        if not folder.is_dir():
            raise LayoutError(f"{folder} is not a folder of layouts")
        for path in sorted(folder.iterdir()):
            if path.suffix in (".layout", ".txt") and not path.name.startswith("."):
                try:
                    self.texts[str(path)] = path.read_text("utf-8")
                except (OSError, UnicodeDecodeError) as error:
                    raise LayoutError(f"{path}: cannot be read ({error})") from error
        for file, text in self.texts.items():
            if file.endswith(".txt"):
                self._read_table(file, text)
            elif Path(file).name[0].isdigit():
                self._read_api(file, text)
            else:
                self._read_schemas(file, text)
        if not self.apis and not self.schemas:
            raise LayoutError(f"{folder}: no layouts (files like 9999_echo.layout) in this folder")

    def _read_table(self, file: str, text: str) -> None:
        if Path(file).name == "errors.txt":
            self.errors = parse_errors(text, file)
        elif Path(file).name == "enums.txt":
            self.enums = parse_enums(text, file)

    def _read_api(self, file: str, text: str) -> None:
        api = parse_api_line(text.partition("\n")[0], file)
        number = Path(file).name.partition("_")[0]
        if not number.isdigit() or int(number) != api.key:
            fail(file, 1, f"api {api.key} must be in a file {api.key}_NAME.layout")
        checksum = blake2b("\0".join(self.texts.values()).encode(), digest_size=7).digest()
        self.apis.append(api._replace(checksum=int.from_bytes(checksum)))

    def _read_schemas(self, file: str, text: str) -> None:
        layout = parse_layout(text, file)
        if layout.api is not None:
            fail(file, 1, f"an API must be in a file {layout.api.key}_NAME.layout")
        if layout.header_uses or any(message.section == "header" for message in layout.messages):
            fail(file, 1, "only Kafka's layouts define headers and their use")
        self.schemas.append(file)


class Vendors:
    """The content of several folders. Raises LayoutError."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._all = [Vendor(folder) for folder in folders]
        self.texts = {path: text for each in self._all for path, text in each.texts.items()}
        self.apis = [api for each in self._all for api in each.apis]
        self.schemas = [path for each in self._all for path in each.schemas]

    def errors_beside(self, ours: Mapping[int, ErrorCode]) -> Mapping[int, ErrorCode]:
        """Kafka's error codes and theirs; none may be there twice."""
        for each in self._all:
            ours = _beside(each, "errors.txt", ours, each.errors)
        return ours

    def enums_beside(self, ours: Mapping[str, Mapping[int, str]]) -> Mapping[str, Mapping[int, str]]:
        """The same of enums."""
        for each in self._all:
            ours = _beside(each, "enums.txt", ours, each.enums)
        return ours


def _beside(
    vendor: Vendor, table: str, ours: Mapping[_Key, _Value], theirs: Mapping[_Key, _Value]
) -> Mapping[_Key, _Value]:
    for key in theirs:
        if key in ours:
            vendor.refuse(table, str(key))
    return {**ours, **theirs}
