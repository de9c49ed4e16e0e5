"""The content of a layout file, independent of the text format and of the program's bytes."""

from typing import Final, Literal, NamedTuple

from kwsniff.layout.meaning import Meaning

#: Last version of an open range, and the first flexible version of a message that is never flexible.
OPEN: Final = 32767

REQUEST: Final = 0
RESPONSE: Final = 1

Section = Literal["request", "response", "header", "schema"]


class Versions(NamedTuple):
    """An inclusive range of versions."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        if self.last == OPEN:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    def overlaps(self, other: "Versions") -> bool:
        """Whether some version is in both."""
        return self.first <= other.last and other.first <= self.last

    def within(self, other: "Versions") -> bool:
        """Whether every version of this range is in the other, and there is at least one."""
        return other.first <= self.first <= self.last <= other.last


class Field(NamedTuple):
    """One line of a layout.

    ``type`` is a scalar's name, ``string``, ``string16``, ``bytes``, ``records``, ``rest`` or ``struct``;
    with ``array`` it is the element's type. ``versions`` is resolved: always inside the parent's.
    ``nullable`` is the part of ``versions`` in which null is legal, or None. ``default`` (tagged fields
    only) is the value if absent, as text, or None for the type's zero.
    """

    name: str
    type: str
    array: bool
    nullable: Versions | None
    meaning: Meaning
    enum: str
    versions: Versions
    tag: int | None
    default: str | None
    children: tuple["Field", ...]
    line: int

    def text(self) -> str:
        """The type as a layout file writes it, without the version range of a ``?``."""
        if self.type == "struct":
            base = "[]" if self.array else "{}"
        else:
            base = f"[{self.type}]" if self.array else self.type
        return base + ("?" if self.nullable else "")


class Message(NamedTuple):
    """A request, a response, a header or a schema, in all its versions.

    ``releases`` names the Kafka releases an alternate layout belongs to and is empty otherwise. ``number``
    is the record type or key type of a schema that has one. ``zigzag``: lengths and counts are zigzag
    varints, as in record format 2.
    """

    section: Section
    name: str
    versions: tuple[int, ...]
    flexible_from: int
    zigzag: bool
    number: int | None
    releases: str
    fields: tuple[Field, ...]
    file: str
    line: int

    @property
    def span(self) -> Versions:
        """Lowest to highest version."""
        return Versions(self.versions[0], self.versions[-1])


#: Range for traits that apply to all versions.
EVERY: Final = Versions(0, OPEN)


class Traits(NamedTuple):
    """Traits on the first line, after key, name and versions; empty or None: not given."""

    internal: bool = False
    rendezvous: bool = False
    fallback: bool = False
    wraps: bool = False
    sasl: bool = False
    controller: bool = False
    question: bool = False
    shared: Versions | None = None
    tokens: Versions | None = None
    unnumbered: Versions | None = None
    records: str = ""
    offsets: str = ""
    cluster: str = ""
    detail: str = ""
    topics: str = ""
    describe: str = ""
    acl: str = ""
    group: str = ""
    group_kind: str = ""
    """`classic`, or one of the newer protocols; empty without a role in a group."""
    transaction: str = ""
    transaction_versions: Versions = EVERY
    """In other versions the API has another use."""


class ApiRange(NamedTuple):
    """An API key with its versions; request and response of an API always have the same ones.

    ``flexible_from`` is ``OPEN`` (32767) for an API that has no flexible version.
    """

    key: int
    name: str
    min_version: int
    max_version: int
    flexible_from: int
    file: str
    traits: Traits = Traits()
    checksum: int = 0
    """Checksum of the file, for a vendor's file."""

    @property
    def versions(self) -> Versions:
        """Lowest to highest version."""
        return Versions(self.min_version, self.max_version)


class HeaderUse(NamedTuple):
    """The header version of messages: for every API (``api`` None) or for one API's versions."""

    direction: int
    header_version: int
    flexible: bool | None
    api: int | None
    versions: Versions | None


class LayoutFile(NamedTuple):
    """The content of one file."""

    file: str
    api: ApiRange | None
    messages: tuple[Message, ...]
    header_uses: tuple[HeaderUse, ...]
