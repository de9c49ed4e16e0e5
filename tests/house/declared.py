"""What the core has from the declarations: `python -m tests.house.declared` writes it anew.

Tables and closed lists are declared in kwsniff/tables, limits in kwsniff/limits.py, meanings of fields in
kwsniff/layout/meaning.py, first bytes of other protocols in dissectors/protocols.txt. C cannot read those:
numbers, names, and the shapes of what a saved state holds are written down for it.
tests/house/test_declared.py fails when they differ.
"""

import hashlib
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path

from kwsniff.layout.meaning import Meaning
from kwsniff.layout.protocols import MOST_BYTES, SIDES, ForeignProtocol, load_protocols
from kwsniff.limits import Limits
from kwsniff.tables.column import Column
from kwsniff.tables.enums import ABSENT, CORE_WORDS, FIRST
from kwsniff.tables.schema import CORE_TABLES, INNER, TABLES

from .tree import CORE

_MADE = "Made by `python -m tests.house.declared`"
_STRUCT = re.compile(r"^cdef (?:packed )?(?:struct|enum)\b[^\n]*:\n(?:(?:[ \t]+[^\n]*)?\n)*", re.MULTILINE)


FILLED = (*CORE_TABLES, *INNER)
"""Tables that the core fills, in the order of their numbers."""


def core_columns(table: str) -> list[Column]:
    """Those that the core fills: without what is derived from others, what findings say, and the run."""
    return [column for column in (TABLES | INNER)[table].own if column.delivered]


def declared_pxd() -> str:
    """kwsniff/core/declared.pxd."""
    parts = [
        "# cython: language_level=3",
        f"# {_MADE}: edit kwsniff/tables, not this file.",
        "#",
        "# Tables, columns and words of closed lists, as numbers; their names in this order: declared.py.",
        "",
        _enum("tables", [f"TABLE_{table.upper()}" for table in FILLED], "NUM_TABLES"),
    ]
    for table in FILLED:
        names = [f"{table}_{column.name}".upper() for column in core_columns(table)]
        parts.append(_enum(f"columns of {table}", names, f"NUM_{table.upper()}_COLUMNS"))
    for name, words in CORE_WORDS.items():
        members = [f"{name}_{word}".upper() for word in words]
        first = FIRST.get(name, 0)
        absent = [f"{name}_{ABSENT[name]}".upper()] if name in ABSENT else []
        parts.append(_enum(name, members, f"NUM_{_plural(name)}", first=first, absent=absent))
    return "\n".join(parts)


def declared_py() -> str:
    """kwsniff/core/declared.py."""
    lines = [
        f'"""{_MADE}: edit kwsniff/tables, not this file.',
        "",
        "What the core fills, in the order of the numbers in declared.pxd.",
        '"""',
        "",
        "from collections.abc import Mapping",
        "from typing import Final",
        "",
        "# fmt: off",
        "TABLES: Final = (",
        *_wrapped(f'"{table}",' for table in CORE_TABLES),
        ")",
        "",
        *_columns("COLUMNS", CORE_TABLES),
        '"""Table -> name, kind (`enum:` and a list of ENUMS), nullable of each of its columns."""',
        "",
        *_columns("INNER_COLUMNS", INNER),
        '"""The same of tables that stay inside; their numbers follow."""',
        "",
        "ENUMS: Final[Mapping[str, tuple[str, ...]]] = {",
    ]
    for name, words in CORE_WORDS.items():
        lines += [f'    "{name}": (', *_wrapped((f'"{word}",' for word in words), 8), "    ),"]
    return "\n".join([*lines, "}", '"""Closed list -> its words."""', ""])


def _columns(name: str, tables: Iterable[str]) -> Iterator[str]:
    yield f"{name}: Final[Mapping[str, tuple[tuple[str, str, bool], ...]]] = {{"
    for table in tables:
        items = (f'("{c.name}", "{_kind(c)}", {c.null is not None}),' for c in core_columns(table))
        yield from (f'    "{table}": (', *_wrapped(items, 8), "    ),")
    yield "}"


def limits_pxd() -> str:
    """kwsniff/core/limits.pxd."""
    members = "".join(f"    int64_t {field.name}\n" for field in fields(Limits))
    return (
        "# cython: language_level=3\n"
        f"# {_MADE}: edit kwsniff/limits.py, not this file.\n"
        "from libc.stdint cimport int64_t\n\n"
        f"cdef struct Limits:\n{members}"
    )


def meaning_pxd() -> str:
    """kwsniff/core/wire/meaning.pxd."""
    members = "".join(f"    MEANING_{each.name} = {each.value}\n" for each in sorted(Meaning))
    return (
        "# cython: language_level=3\n"
        f"# {_MADE}: edit kwsniff/layout/meaning.py, not this file.\n"
        "#\n"
        "# What a field means, as the layouts' third column says it.\n\n"
        f"cdef enum Meaning:\n{members}"
    )


def protocols_pxd(protocols: Iterable[ForeignProtocol]) -> str:
    """kwsniff/core/kafka/protocols.pxd."""
    words = list(CORE_WORDS["protocol"])
    lines = [
        f"{{{words.index(each.name)}, {SIDES.index(begin.side)}, {len(begin.data)}, "
        f'"{_escaped(begin.data)}", "{_escaped(begin.mask)}"}},'
        for each in protocols
        for begin in each.beginnings
    ]
    body = "\n".join(f"        {line}" for line in lines)
    return (
        "# cython: language_level=3\n"
        f"# {_MADE}: edit dissectors/protocols.txt, not this file.\n"
        "#\n"
        "# What the streams of other protocols begin with.\n\n"
        "from libc.stdint cimport uint8_t\n\n"
        "cdef extern from *:\n"
        '    """\n'
        "    #include <stdint.h>\n"
        "    typedef struct {\n"
        "        int protocol, side, num;\n"
        f"        uint8_t bytes[{MOST_BYTES + 1}], mask[{MOST_BYTES + 1}];\n"
        "    } kwsniff_beginning;\n"
        f"    #define KWSNIFF_BEGINNINGS {len(lines)}\n"
        "    static const kwsniff_beginning kwsniff_beginnings[] = {\n"
        f"{body}\n"
        "    };\n"
        '    """\n'
        '    ctypedef struct Beginning "kwsniff_beginning":\n'
        "        int protocol\n"
        "        int side            # 0 client, 1 server, 2 either\n"
        "        int num\n"
        "        const uint8_t* bytes\n"
        "        const uint8_t* mask\n"
        '    const int NUM_BEGINNINGS "KWSNIFF_BEGINNINGS"\n'
        '    const Beginning* beginnings "kwsniff_beginnings"\n'
    )


def _escaped(data: bytes) -> str:
    """As a C string has it; octal, because hexadecimal escapes have no end."""
    return "".join(f"\\\\{byte:03o}" for byte in data)


def shapes_pxd(sources: Mapping[str, str]) -> str:
    """kwsniff/core/shapes.pxd: `sources` are the texts of the core's .pxd files by name.

    A saved state holds structs as they lie in memory. Every struct and enum of the core goes into the number,
    without comments and spacing: a state is refused when any of them differs, be its size the same.
    """
    digest = hashlib.sha256()
    for name in sorted(sources):
        for found in _STRUCT.finditer(re.sub(r"#[^\n]*", "", sources[name])):
            digest.update(" ".join(found[0].split()).encode() + b"\n")
    return (
        "# cython: language_level=3\n"
        f"# {_MADE}: of every struct and enum of the core.\n\n"
        "cdef extern from *:\n"
        '    """\n'
        f"    #define KWSNIFF_SHAPES 0x{digest.hexdigest()[:16]}ull\n"
        '    """\n'
        "    const unsigned long long KWSNIFF_SHAPES\n"
    )


def files() -> dict[Path, str]:
    """Path -> text of every file that is made."""
    made = {
        CORE / "declared.pxd": declared_pxd(),
        CORE / "declared.py": declared_py(),
        CORE / "limits.pxd": limits_pxd(),
        CORE / "wire" / "meaning.pxd": meaning_pxd(),
        CORE / "kafka" / "protocols.pxd": protocols_pxd(load_protocols().values()),
    }
    shapes = CORE / "shapes.pxd"
    sources = {path: path.read_text("utf-8") for path in CORE.rglob("*.pxd") if path != shapes} | {
        path: text for path, text in made.items() if path.suffix == ".pxd"
    }
    named = {path.relative_to(CORE).as_posix(): text for path, text in sources.items()}
    return {**made, shapes: shapes_pxd(named)}


def _kind(column: Column) -> str:
    if column.from_layouts:
        return column.name
    return f"enum:{column.enum}" if column.enum else column.type


def _plural(name: str) -> str:
    upper = name.upper()
    return upper[:-1] + "IES" if upper.endswith("Y") else upper + ("ES" if upper.endswith("S") else "S")


def _enum(
    name: str, members: Iterable[str], number: str, *, first: int = 0, absent: Iterable[str] = ()
) -> str:
    lead, *rest = members
    named = [f"{each} = {first - 1}," for each in absent]
    named.append(f"{lead} = {first}," if first or named else f"{lead},")
    return "\n".join(
        [f"cdef enum:  # {name}", *_wrapped([*named, *(f"{each}," for each in rest), number]), ""]
    )


def _wrapped(items: Iterable[str], indent: int = 4) -> Iterator[str]:
    # A constructor call must not be broken at its inner spaces.
    text = " ".join(item.replace(" ", "\0") for item in items)
    for line in textwrap.wrap(text, 110 - indent, break_long_words=False, break_on_hyphens=False):
        yield " " * indent + line.replace("\0", " ")


if __name__ == "__main__":
    for path, text in files().items():
        if not path.is_file() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            sys.stdout.write(f"{path.relative_to(CORE)}\n")
