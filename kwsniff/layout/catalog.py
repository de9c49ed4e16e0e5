"""All layouts under dissectors/kafka, loaded on first use, and vendors' layouts in addition.

``apis`` reads the first line of each API's file; a file is parsed on first use of one of its messages; a
program is compiled once per (api, version, direction). A folder that the user names is read and checked
immediately, and holds for every server. Those in dissectors/vendors hold for the servers of their product:
each has a catalog of its own.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Final, NamedTuple

from kwsniff.errors import LayoutError
from kwsniff.layout.api_files import add_api, plain_name, read_api_ranges
from kwsniff.layout.causes import Cause, parse_causes
from kwsniff.layout.check import check_layout, check_versions
from kwsniff.layout.dissectors import dissectors_folder
from kwsniff.layout.folders import ENVIRONMENT, VENDORS, Layouts, named_folders
from kwsniff.layout.grammar import parse_layout
from kwsniff.layout.meaning import Meaning
from kwsniff.layout.model import REQUEST, RESPONSE, ApiRange, Field, HeaderUse, LayoutFile, Message, Versions
from kwsniff.layout.names import PublicNames, parse_names
from kwsniff.layout.products import FILE, Products, parse_products
from kwsniff.layout.program import Program, compile_message, compile_schema
from kwsniff.layout.reference import ErrorCode, Releases, parse_enums, parse_errors, parse_releases
from kwsniff.layout.settings import Settings
from kwsniff.layout.tokens import fail
from kwsniff.layout.vendor import Vendor, Vendors

__all__ = [
    "ENVIRONMENT", "ApiRange", "Catalog", "ErrorCode", "Layouts", "Program", "Releases", "SchemaRange",
    "load_catalog",
]  # fmt: skip

_HEADERS: Final = "headers.layout"
_SECTIONS: Final = ("request", "response")


class SchemaRange(NamedTuple):
    """A schema found inside bytes fields and records. ``number``: its record or key type, if it has one."""

    name: str
    versions: tuple[int, ...]
    flexible_from: int
    number: int | None
    module: str


class Catalog:
    """The layouts of one folder, and those of vendors' folders, which must not redefine them.

    `base`, `product`: the same for the servers of one product, and the folder with what they have beside it.
    """

    def __init__(
        self,
        folder: Path,
        layouts: Sequence[Path] = (),
        *,
        base: "Catalog | None" = None,
        product: Path | None = None,
    ) -> None:
        self.folder = folder
        self.layouts = tuple(layouts)
        """Folders that hold for every server."""
        self._base = base
        self._vendors = Vendors(self.layouts)
        self._product = Vendor(product)
        self._texts = {**self._vendors.texts, **self._product.texts}
        self._layouts: dict[str, LayoutFile] = base._layouts if base else {}
        self._programs: dict[tuple[int, int, int], Program | None] = {}
        self._schema_programs: dict[tuple[str, int], Program | None] = {}

    @cached_property
    def apis(self) -> Mapping[int, ApiRange]:
        """API key -> name and versions, ascending."""
        ranges = dict(self._base.apis) if self._base else read_api_ranges(self.folder)
        names = {plain_name(api.name): api for api in ranges.values()}
        for api in self._vendors.apis:
            if other := names.get(plain_name(api.name)):
                fail(api.file, 1, f"'{api.name}' is already the name of api {other.key}")
            names[plain_name(api.name)] = api
            add_api(ranges, api)
        for api in self._product.apis:
            taken = ranges.get(api.key)
            if plain_name(api.name) not in names and (taken is None or self._is_ours(taken)):
                ranges[api.key] = api
        return dict(sorted(ranges.items()))

    def _is_ours(self, api: ApiRange) -> bool:
        """Whether it is in a folder of kwsniff's own that was named for every server."""
        return Path(api.file).parent.parent == self.folder.parent / VENDORS

    @property
    def added(self) -> list[ApiRange]:
        """The APIs that only the servers of this catalog's product have."""
        return [api for api in self.apis.values() if api.file in self._product.texts]

    @cached_property
    def products(self) -> Products:
        """What shows that a server is a certain product."""
        return parse_products((self.folder / FILE).read_text("utf-8"), FILE)

    @cached_property
    def by_product(self) -> Mapping[int, "Catalog"]:
        """Number of a product in `products`, from 1 -> the catalog for its servers.

        Only of products with layouts of their own, which do not hold for every server already.
        """
        place = self.folder.parent / VENDORS
        there = set(os.listdir(place)) if place.is_dir() else set()  # noqa: PTH208
        return {
            number: Catalog(self.folder, base=self, product=place / name)
            for number, name in enumerate(self.products.names if there else (), 1)
            if name in there and place / name not in self.layouts
        }

    def of_product(self, number: int) -> "Catalog":
        """The catalog for the servers of a product; this one for 0, and without layouts of its own."""
        return self.by_product.get(number, self)

    def own_apis(self) -> list[ApiRange]:
        """Those of every server; in the catalog of a product, those that it adds."""
        return self.added if self._product.texts else [*self.apis.values()]

    def api(self, name: str | int) -> ApiRange | None:
        """The API of that key or name, in any spelling (1, Fetch, fetch, list_offsets, ListOffsets)."""
        text = plain_name(str(name).strip())
        if text.isdigit():
            return self.apis.get(int(text))
        return next((api for api in self.apis.values() if plain_name(api.name) == text), None)

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
        """The program of a message, or None for an unknown API or version."""
        key = (api_key, version, direction)
        if key not in self._programs:
            message = self.message(api_key, direction)
            known = message is not None and version in message.versions
            self._programs[key] = self._compile(message, api_key, version) if known and message else None
        return self._programs[key]

    def alternates(self, api_key: int, version: int, direction: int) -> tuple[Program, ...]:
        """Early-access layouts under the same version number, to try if the newest one fails."""
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
        ours = [path.name for path in sorted(self.folder.glob("[a-z]*.layout"))]
        for file in (*ours, *self._vendors.schemas, *self._product.schemas):
            for message in self._read(file).messages:
                if message.section == "schema" and not message.releases:
                    if message.name in schemas:
                        fail(
                            file, message.line, f"schema '{message.name}' is in {schemas[message.name].file}"
                        )
                    schemas[message.name] = message
        return schemas

    @cached_property
    def schemas(self) -> Mapping[str, SchemaRange]:
        """Name -> versions of every schema that is not an API's message."""
        return {
            name: SchemaRange(name, m.versions, m.flexible_from, m.number, Path(m.file).stem)
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
        """The program of a schema, or None for an unknown name or version."""
        key = (name, version)
        if key not in self._schema_programs:
            message = self._schemas.get(name)
            known = message is not None and version in message.versions
            self._schema_programs[key] = compile_schema(message, version) if known and message else None
        return self._schema_programs[key]

    @cached_property
    def errors(self) -> Mapping[int, ErrorCode]:
        """Every error code, ascending."""
        if self._base:
            return {**self._product.errors, **self._base.errors}
        ours = parse_errors((self.folder / "errors.txt").read_text("utf-8"), "errors.txt")
        return self._vendors.errors_beside(ours)

    @cached_property
    def causes(self) -> Mapping[int, Cause]:
        """Usual causes of Kafka's error codes, and advice."""
        return parse_causes((self.folder / "causes.txt").read_text("utf-8"), "causes.txt")

    @cached_property
    def settings(self) -> Settings:
        """Settings whose values may be shown."""
        return Settings((self.folder / "public_settings.txt").read_text("utf-8"))

    @cached_property
    def names(self) -> PublicNames:
        """Kinds of fields with text or bytes, and words that may be shown."""
        text = (self.folder / "names.txt").read_text("utf-8")
        return parse_names(text, "names.txt", self.settings.names)

    @cached_property
    def releases(self) -> Releases:
        """API versions by Kafka release."""
        return parse_releases((self.folder / "releases.tsv").read_text("utf-8"), "releases.tsv")

    @cached_property
    def enums(self) -> Mapping[str, Mapping[int, str]]:
        """Names of coded values: enum name -> code -> name."""
        if self._base:
            return {**self._product.enums, **self._base.enums}
        ours = parse_enums((self.folder / "enums.txt").read_text("utf-8"), "enums.txt")
        return self._vendors.enums_beside(ours)

    def check(self) -> int:
        """Parse, check and compile everything; returns the number of programs. Raises LayoutError."""
        count = sum(map(self._check_api, self.apis.values()))
        return count + sum(map(self._check_schema, self._schemas.values()))

    def check_vendor(self) -> None:
        """The same for the vendors' folders. Raises LayoutError."""
        if not self._texts:
            return
        _ = self.apis, self.errors, self.enums
        for api in (*self._vendors.apis, *self._product.apis):
            self._check_api(api)
        for schema in self._schemas.values() if self._vendors.schemas or self._product.schemas else ():
            if schema.file in self._texts:
                self._check_schema(schema)

    def _check_api(self, api: ApiRange) -> int:
        count = 0
        for message in self._read(api.file).messages:
            check_versions(message)
            self._check_enums(message, message.fields)
            for version in message.versions:
                self._compile(message, api.key, version)
                count += not message.releases
        return count

    def _check_schema(self, schema: Message) -> int:
        check_versions(schema)
        self._check_enums(schema, schema.fields)
        return sum(self.schema(schema.name, version) is not None for version in schema.versions)

    @cached_property
    def unnamed_requests(self) -> dict[int, Versions]:
        """API key -> versions of its requests whose header has no client id."""
        header = self.headers[REQUEST]
        named = [field.versions for field in header.fields if field.meaning is Meaning.CLIENT_ID]
        return {
            use.api: use.versions
            for use in self._read(_HEADERS).header_uses
            if use.direction == REQUEST and use.api is not None and use.versions is not None
            if not any(use.header_version in versions for versions in named)
        }

    @cache  # noqa: B019 - catalogs live as long as the process
    def meanings(self, api_key: int, direction: int) -> frozenset[Meaning]:
        """Meanings of the fields of a message, in any version; empty for an unknown API."""
        message = self.message(api_key, direction)
        return frozenset(field.meaning for field in _all_fields(message.fields if message else ()))

    @cache  # noqa: B019
    def names_topics(self, api_key: int) -> bool:
        """Whether a message of the API has both topic ids and their names."""
        messages = [self.message(api_key, direction) for direction in (REQUEST, RESPONSE)]
        return any(_names_topics(message.fields) for message in messages if message)

    def _check_enums(self, message: Message, fields: Sequence[Field]) -> None:
        for field in fields:
            if field.enum and field.enum not in self.enums:
                fail(message.file, field.line, f"'{field.enum}' is not an enum of enums.txt")
            self._check_enums(message, field.children)

    def _read(self, file: str) -> LayoutFile:
        if file not in self._layouts:
            path = self.folder / file
            try:
                text = self._texts.get(file)
                layout = parse_layout(path.read_text("utf-8") if text is None else text, file)
            except (OSError, UnicodeDecodeError) as error:
                raise LayoutError(f"{path}: cannot read ({error})") from error
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
            raise LayoutError(f"{_HEADERS}:1: no 'use {_SECTIONS[direction]}' line matches api {api_key}")
        return general.header_version


def _all_fields(fields: Sequence[Field]) -> Iterator[Field]:
    for field in fields:
        yield field
        yield from _all_fields(field.children)


def _names_topics(fields: Sequence[Field]) -> bool:
    ids = [field for field in fields if field.meaning is Meaning.TOPIC_ID and not field.array]
    names = [field for field in fields if field.meaning is Meaning.TOPIC and not field.array]
    beside = any(one.versions.overlaps(other.versions) for one in ids for other in names)
    return beside or any(_names_topics(field.children) for field in fields)


def load_catalog(layouts: Layouts | None = None) -> Catalog:
    """kwsniff's own layouts, and those of vendors' folders: `layouts`, or the environment variable
    KWSNIFF_LAYOUTS ("": none). Raises LayoutError."""
    return _load(named_folders(layouts))


def named_layouts(layouts: Layouts | None = None) -> str | None:
    """The same folders' absolute paths, checked, for processes with another environment; None without a
    folder. Raises LayoutError."""
    load_catalog(layouts)
    return os.pathsep.join(named_folders(layouts)) or None


@cache
def _load(layouts: tuple[str, ...]) -> Catalog:
    catalog = Catalog((dissectors_folder() / "kafka").absolute(), [Path(each) for each in layouts])
    catalog.check_vendor()
    return catalog
