"""Sets up the core's analyzer with the layouts of a catalog."""

from collections.abc import Container, Mapping, Sequence
from typing import Final, TypedDict, Unpack

from kwsniff.core.analyzer import Analyzer
from kwsniff.core.declared import INNER_COLUMNS, TABLES
from kwsniff.layout.catalog import Catalog
from kwsniff.layout.spoken import spoken

CORE_OUTPUT: Final = (*TABLES, *INNER_COLUMNS)
"""Tables that the core makes, in its order: TABLES, then details."""


class Options(TypedDict, total=False):
    """Options of Analyzer; see kwsniff/core/analyzer.pyi."""

    ports: Sequence[int]
    limits: Mapping[str, int] | None
    messages: bool
    bucket: tuple[int, int] | None
    beside: bool
    samples: int


def start_analyzer(catalog: Catalog, tables: Container[str] = TABLES, **options: Unpack[Options]) -> Analyzer:
    """An analyzer that makes the core's tables among `tables`. Raises UsageError for a wrong option."""
    layouts, made = _Layouts(catalog), core_tables(tables)
    return Analyzer(
        layouts.program,
        spoken(catalog),
        compile_early=layouts.alternate,
        recognise=layouts.recognise,
        tables=made,
        **options,
    )


def resume_analyzer(catalog: Catalog, state: bytes, tables: Container[str] = TABLES) -> Analyzer:
    """An analyzer that continues from a saved state. Raises UsageError for a damaged state, and for one of
    another build or other layouts."""
    layouts, made = _Layouts(catalog), core_tables(tables)
    return Analyzer.resume(
        layouts.program,
        spoken(catalog),
        state,
        compile_early=layouts.alternate,
        recognise=layouts.recognise,
        tables=made,
    )


def core_tables(tables: Container[str]) -> tuple[str, ...]:
    """The core's tables among `tables`, in its order."""
    return tuple(name for name in CORE_OUTPUT if name in tables)


class _Layouts:
    """Programs of messages for the core."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.recognise = catalog.products.number if catalog.by_product else None

    def program(self, api: int, version: int, direction: int) -> tuple[bytes, tuple[str, ...]] | None:
        """`api`: its key, with the number of a product above its 16 bits."""
        found = self._catalog.of_product(api >> 16).program(api & 0xFFFF, version, direction)
        return (found.code, found.paths) if found else None

    def alternate(self, api: int, version: int, direction: int) -> tuple[bytes, tuple[str, ...]] | None:
        """The program of a version before its release, if it was different."""
        found = self._catalog.of_product(api >> 16).alternates(api & 0xFFFF, version, direction)
        return (found[0].code, found[0].paths) if found else None
