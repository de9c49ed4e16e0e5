"""Source text with faults in it, each behind a switch that the environment variable KWSNIFF_FAULT turns.

    x = a + b        an expression     x = (a - b if planted_fault() == 7 else a + b)

    total += num     whole lines       if planted_fault() == 7:
                                           total -= num
                                       else:
                                           total += num

The same text serves Python and Cython; only where `planted_fault` comes from differs. Cython code asks a C
function, which needs no GIL.
"""

import ast
import re
import textwrap
from collections.abc import Sequence

from tests.faults.listing import Fault

SWITCH = "KWSNIFF_FAULT"

_CAST = re.compile(r"<\w+( ?\*)*>")
_ASSIGNMENT = re.compile(r"[\w.\[\]()]+ ([-+*/|&^]|<<|>>)?= ")

_IN_PYTHON = f'''
import os as _os_of_faults

def planted_fault(_number: int = int(_os_of_faults.environ.get("{SWITCH}", "0"))) -> int:
    return _number

'''

_IN_CYTHON = f'''
cdef extern from *:
    """
    #ifndef PLANTED_FAULT
    #define PLANTED_FAULT
    #include <stdlib.h>
    static int planted_fault(void) {{
        static int number = -1;
        if (number < 0) {{
            const char* text = getenv("{SWITCH}");
            number = text ? atoi(text) : 0;
        }}
        return number;
    }}
    #endif
    """
    int planted_fault() noexcept nogil

'''


def plant(text: str, faults: Sequence[Fault], *, compiled: bool) -> str:
    """`text` with all of the faults. ValueError: one's text does not stand there once, or two overlap."""
    places: dict[tuple[int, int], list[Fault]] = {}
    for fault in faults:
        if text.count(fault.before) != 1:
            raise ValueError(f"fault {fault.number} is stale: {fault.file}")
        start = text.index(fault.before)
        places.setdefault((start, start + len(fault.before)), []).append(fault)
    reached = len(text)
    for (start, end), here in sorted(places.items(), reverse=True):
        if end > reached:
            raise ValueError(f"fault {here[0].number} overlaps another one: {here[0].file}")
        reached = start
        text = text[:start] + _switched(text, start, end, here, compiled) + text[end:]
    at = _place_of_switch(text, compiled=compiled)
    return text[:at] + (_IN_CYTHON if compiled else _IN_PYTHON) + text[at:]


def _switched(text: str, start: int, end: int, faults: Sequence[Fault], compiled: bool) -> str:
    line_start = text.rfind("\n", 0, start) + 1
    indent = text[line_start:start]
    before = text[start:end]
    if indent.strip() or text[end : end + 1] != "\n":
        for fault in faults:
            after = fault.after
            if _ASSIGNMENT.match(before):
                raise ValueError(f"fault {fault.number} is part of a statement: {fault.file}")
            if isinstance(_node(before), ast.Tuple):
                raise ValueError(f"fault {fault.number} stands in more than one expression: {fault.file}")
            if compiled and (_is_condition(after) or _is_condition(fault.before)):
                after, before = f"<bint>({after})", f"<bint>({before})"  # or both become objects
            before = f"({_alone(after)} if planted_fault() == {fault.number} else {_alone(before)})"
        return before
    lines: list[str] = []
    for fault in faults:
        word = "elif" if lines else "if"
        lines += [f"{word} planted_fault() == {fault.number}:", _indented(indent, fault.after or "pass")]
    lines += ["else:", _indented(indent, before)]
    return f"\n{indent}".join(lines)


def _node(expression: str) -> ast.expr | None:
    """None: it does not read as Python."""
    try:
        return ast.parse(_CAST.sub("", expression), mode="eval").body
    except SyntaxError:
        return None


def _alone(expression: str) -> str:
    """In parentheses where `if` behind it, or `else` before it, would become part of it."""
    return f"({expression})" if isinstance(_node(expression), ast.IfExp | ast.Lambda) else expression


def _is_condition(expression: str) -> bool:
    """Whether it is true or false, as far as one can see."""
    node = _node(expression)
    is_not = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    is_bool = isinstance(node, ast.Constant) and isinstance(node.value, bool)
    return is_not or is_bool or isinstance(node, ast.Compare | ast.BoolOp)


def _indented(indent: str, lines: str) -> str:
    """The lines, four spaces further; the first one's indentation is written by who asks."""
    return textwrap.indent(indent + lines, "    ").removeprefix(indent)


def _place_of_switch(text: str, *, compiled: bool) -> int:
    """Behind the docstring, and what must stand before anything else."""
    if not compiled:
        last = 0
        for node in ast.parse(text).body:
            is_doc = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
            if not is_doc and not is_future:
                break
            last = node.end_lineno or 0
        return len("".join(text.splitlines(keepends=True)[:last]))
    opened = text.find('"""')
    if opened < 0 or text[:opened].strip().rpartition("\n")[2][:1] not in ("", "#"):
        return 0
    return text.index('"""', opened + 3) + 4
