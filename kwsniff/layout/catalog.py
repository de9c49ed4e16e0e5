"""Everything under dissectors/kafka, read when it is first asked for.

``apis`` reads the first line of each API's file; a file is parsed when one of its messages is wanted; a
program is compiled once per (api, version, direction).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Final

from kwsniff.errors import LayoutError
from kwsniff.layout.check import check_layout, check_versions
from kwsniff.layout.grammar import parse_api_line, parse_layout
from kwsniff.layout.model import REQUEST, RESPONSE, ApiRange, Field, HeaderUse, LayoutFile, Message
from kwsniff.layout.program import Program, compile_message, compile_schema
from kwsniff.layout.reference import ErrorCode, Releases, parse_enums, parse_errors, parse_releases
from kwsniff.layout.words import fail

__all__ = ["ApiRange", "Catalog", "ErrorCode", "Program", "Releases", "SchemaRange", "load_catalog"]

_HEADERS: Final = "headers.layout"
_SECTIONS: Final = ("request", "response")


@dataclass(frozen=True, slots=True)
class SchemaRange:
    """A schema found inside bytes fields and records. ``number``: its record or key type, if it has one."""

    name: str
    versions: tuple[int, ...]
    flexible_from: int
    number: int | None
    module: str


class Catalog:
    """The layouts of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._layouts: dict[str, LayoutFile] = {}
        self._programs: dict[tuple[int, int, int], Program | None] = {}
        self._schema_programs: dict[tuple[str, int], Program | None] = {}

    @cached_property
    def apis(self) -> Mapping[int, ApiRange]:
        """API key -> name and versions, ascending."""
        ranges: dict[int, ApiRange] = {}
        for path in self.folder.glob("[0-9]*_*.layout"):
            with path.open(encoding="utf-8") as lines:
                api = parse_api_line(lines.readline(), path.name)
            if api.key in ranges:
                fail(path.name, 1, f"api key {api.key} is in {ranges[api.key].file} already")
            ranges[api.key] = api
        if not ranges:
            raise LayoutError(f"{self.folder}: no layouts (files like 01_fetch.layout) in this folder")
        return dict(sorted(ranges.items()))

    def api(self, name: str | int) -> ApiRange | None:
        """The API of that key or name, however it is written (1, Fetch, fetch, list_offsets, ListOffsets)."""
        text = str(name).strip().lower().replace("_", "").replace("-", "")
        if text.isdigit():
            return self.apis.get(int(text))
        return next((api for api in self.apis.values() if api.name.lower() == text), None)

    def layout(self, api_key: int) -> LayoutFile | None:
        """The parsed and checked file of an API."""
        api = self.apis.get(api_key)
        return self._read(api.file) if api else None

    def message(self, api_key: int, direction: int) -> Message | None:
        """Request (0) or response (1) of an API, all versions."""
        layout = self.layout(api_key)
        if layout is None or direction not in (REQUEST, RESPONSE):
            return None
        section = _SECTIONS[direction]
        return next(m for m in layout.messages if m.section == section and not m.releases)

    def program(self, api_key: int, version: int, direction: int) -> Program | None:
        """The program of a message, or None where the API or version is not known."""
        key = (api_key, version, direction)
        if key not in self._programs:
            message = self.message(api_key, direction)
            known = message is not None and version in message.versions
            self._programs[key] = self._compile(message, api_key, version) if known and message else None
        return self._programs[key]

    def alternates(self, api_key: int, version: int, direction: int) -> tuple[Program, ...]:
        """Early-access layouts under the same version number; to be tried when the newest one fails."""
        layout = self.layout(api_key)
        if layout is None or direction not in (REQUEST, RESPONSE):
            return ()
        return tuple(
            self._compile(message, api_key, version)
            for message in layout.messages
            if message.releases and message.section == _SECTIONS[direction] and version in message.versions
        )

    def header_version(self, api_key: int, version: int, direction: int) -> int | None:
        """Header version of a message, also above the known versions; None for an unknown API."""
        api = self.apis.get(api_key)
        if api is None:
            return None
        return self._header_version(api_key, version, direction, version >= api.flexible_from)

    @cached_property
    def headers(self) -> tuple[Message, Message]:
        """Request header and response header."""
        request, response = self._read(_HEADERS).messages
        return request, response

    @cached_property
    def _schemas(self) -> Mapping[str, Message]:
        schemas: dict[str, Message] = {}
        for path in sorted(self.folder.glob("[a-z]*.layout")):
            for message in self._read(path.name).messages:
                if message.section == "schema" and not message.releases:
                    if message.name in schemas:
                        fail(
                            path.name,
                            message.line,
                            f"schema '{message.name}' is in {schemas[message.name].file}",
                        )
                    schemas[message.name] = message
        return schemas

    @cached_property
    def schemas(self) -> Mapping[str, SchemaRange]:
        """Name -> versions of every schema that is not an API's message."""
        return {
            name: SchemaRange(name, m.versions, m.flexible_from, m.number, m.file.removesuffix(".layout"))
            for name, m in self._schemas.items()
        }

    def schema_alternates(self, name: str, version: int) -> tuple[Program, ...]:
        """Early-access layouts of a schema under the same version number."""
        known = self._schemas.get(name)
        if known is None:
            return ()
        return tuple(
            compile_schema(message, version)
            for message in self._read(known.file).messages
            if message.name == name and message.releases and version in message.versions
        )

    def schema_message(self, name: str) -> Message | None:
        """A schema in all its versions."""
        return self._schemas.get(name)

    def schema(self, name: str, version: int) -> Program | None:
        """The program of a schema, or None where the name or version is not known."""
        key = (name, version)
        if key not in self._schema_programs:
            message = self._schemas.get(name)
            known = message is not None and version in message.versions
            self._schema_programs[key] = compile_schema(message, version) if known and message else None
        return self._schema_programs[key]

    @cached_property
    def errors(self) -> Mapping[int, ErrorCode]:
        """Every error code, ascending."""
        return parse_errors((self.folder / "errors.txt").read_text("utf-8"), "errors.txt")

    @cached_property
    def releases(self) -> Releases:
        """Which Kafka release speaks which versions."""
        return parse_releases((self.folder / "releases.tsv").read_text("utf-8"), "releases.tsv")

    @cached_property
    def enums(self) -> Mapping[str, Mapping[int, str]]:
        """Names of coded values: enum name -> code -> name."""
        return parse_enums((self.folder / "enums.txt").read_text("utf-8"), "enums.txt")

    def check(self) -> int:
        """Parse, check and compile everything; returns the number of programs. Raises LayoutError."""
        count = 0
        for api in self.apis.values():
            for message in self._read(api.file).messages:
                check_versions(message)
                self._check_enums(message, message.fields)
                for version in message.versions:
                    self._compile(message, api.key, version)
                    count += not message.releases
        for name, schema in self._schemas.items():
            check_versions(schema)
            self._check_enums(schema, schema.fields)
            count += sum(self.schema(name, version) is not None for version in schema.versions)
        return count

    def _check_enums(self, message: Message, fields: Sequence[Field]) -> None:
        for field in fields:
            if field.enum and field.enum not in self.enums:
                fail(message.file, field.line, f"'{field.enum}' is not an enum of enums.txt")
            self._check_enums(message, field.children)

    def _read(self, file: str) -> LayoutFile:
        if file not in self._layouts:
            path = self.folder / file
            try:
                layout = parse_layout(path.read_text("utf-8"), file)
            except (OSError, UnicodeDecodeError) as error:
                raise LayoutError(f"{path}: cannot be read ({error})") from error
            check_layout(layout)
            self._layouts[file] = layout
        return self._layouts[file]

    def _compile(self, message: Message, api_key: int, version: int) -> Program:
        direction = _SECTIONS.index(message.section)
        flexible = version >= message.flexible_from
        number = self._header_version(api_key, version, direction, flexible)
        return compile_message(
            message, version, api=api_key, header=self.headers[direction], header_version=number
        )

    def _header_version(self, api_key: int, version: int, direction: int, flexible: bool) -> int:
        general: HeaderUse | None = None
        for use in self._read(_HEADERS).header_uses:
            if use.direction != direction:
                continue
            if use.api == api_key and use.versions is not None and version in use.versions:
                return use.header_version
            if use.api is None and use.flexible is flexible:
                general = use
        if general is None:
            raise LayoutError(f"{_HEADERS}:1: no 'use {_SECTIONS[direction]}' line fits api {api_key}")
        return general.header_version


@cache
def load_catalog(folder: Path | None = None) -> Catalog:
    """The catalog of the layouts that come with kwsniff, or of another folder. Nothing is read yet."""
    if folder is None:
        package = import_module("kwsniff.dissectors.kafka")
        folder = Path(next(iter(package.__path__)))
    return Catalog(folder)
