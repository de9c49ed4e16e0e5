"""Builds a tree from tape and layout, the one source of JSON, text and hexdump.

A node is a field on the wire. Containers hold nodes, leaves hold a Python value: int,
bool, float, str, bytes, None, or a list of these for arrays of scalars and strings. Offsets count from the
first byte of the message (header included, size prefix not). A tape may stop anywhere; the tree then has
the fields before that.
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from struct import Struct, iter_unpack, unpack_from
from typing import Final, NamedTuple

from kwsniff.layout.catalog import Catalog
from kwsniff.layout.model import Field
from kwsniff.layout.program import Flag, Kind, Program

_CELL: Final = "<IIq"
_OP: Final = Struct("<BBBBIII")
_DOUBLE: Final = Struct(">d")
_OPS_START: Final = 16
_U32: Final = 0xFFFFFFFF
_LETTERS: Final = {1: "b", 2: "b", 3: "h", 4: "i", 5: "q", 6: "H", 7: "I", 8: "d"}
_WIDTHS: Final = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 2, 7: 4}

# Plain ints: comparing with an IntEnum member costs several times more, once per cell.
_END, _BOOL, _STRING, _BYTES = int(Kind.END), int(Kind.BOOL), int(Kind.STRING), int(Kind.BYTES)
_ARRAY, _ARRAY_SCALAR, _ARRAY_STRING = int(Kind.ARRAY), int(Kind.ARRAY_SCALAR), int(Kind.ARRAY_STRING)
_STRUCT, _TAGS, _TAG, _UUID, _FLOAT64 = (
    int(Kind.STRUCT),
    int(Kind.TAGS),
    int(Kind.TAG),
    int(Kind.UUID),
    int(Kind.FLOAT64),
)
_STRUCTURE: Final = frozenset((_ARRAY, _STRUCT, _TAGS, _TAG, _ARRAY_STRING))
_VARINTS: Final = (int(Kind.VARINT), int(Kind.VARLONG), int(Kind.UVARINT))

_NO_CHILDREN: "list[Node]" = []

Value = int | float | str | bytes | list["Value"] | None


class Node:
    """A field on the wire.

    ``name`` is the field's name, or its index in an array. ``start`` is the first byte of the value (after
    length or count), ``end`` the byte after it. ``is_leaf``: it has a value; otherwise it has children.
    ``count`` is the count an array of structs declared, -1 for everything else.
    """

    __slots__ = ("children", "count", "end", "is_leaf", "name", "op", "start", "value")

    def __init__(  # noqa: PLR0917 -- positional: made once per field
        self,
        name: str | int,
        op: int,
        start: int,
        end: int,
        value: Value,
        children: "list[Node] | None" = None,
    ) -> None:
        self.name = name
        self.op = op
        self.start = start
        self.end = end
        self.value = value
        self.is_leaf = children is None
        self.children = _NO_CHILDREN if children is None else children
        self.count = -1


class Shape:
    """Attributes of a program for building trees, computed once."""

    __slots__ = ("elements", "fields", "kinds", "names", "program", "records", "top")

    def __init__(self, program: Program) -> None:
        ops = [_OP.unpack_from(program.code, at) for at in range(_OPS_START, len(program.code), _OP.size)]
        self.program = program
        self.fields: tuple[Field | None, ...] = program.fields
        self.kinds = tuple(op[0] for op in ops)
        self.records = tuple(bool(op[1] & Flag.RECORDS) for op in ops)
        self.elements = tuple(op[6] for op in ops)
        self.names = tuple(field.name if field else "" for field in program.fields)
        # Structs at depth 0: header and body, or the body alone.
        self.top: tuple[int, ...] = (0,) if ops[ops[0][4]][0] == _END else (0, ops[0][4])


# More than the number of layouts: only programs that are recompiled each time can exceed it.
_MOST_SHAPES: Final = 2000
_shapes: dict[int, Shape] = {}


def shape_of(program: Program) -> Shape:
    """The program's shape, made once per program (it keeps the program alive, so that its id stays
    unique)."""
    shape = _shapes.get(id(program))
    if shape is None:
        if len(_shapes) >= _MOST_SHAPES:
            _shapes.clear()
        shape = _shapes[id(program)] = Shape(program)
    return shape


class UnknownTag(NamedTuple):
    """An unknown tagged field: pointer, tag, places of its payload and its struct."""

    path: str
    tag: int
    start: int
    size: int
    struct: tuple[int, int]


class Tree:
    """A message, as far as it was read.

    ``roots`` are the top-level structs in order (header, body; a schema has only a body). ``unknown_tags``
    come parents first, in the order in which their structs begin; ``wrong_sizes`` (path, declared - used)
    are known tagged fields whose payload was longer or shorter than declared. Paths are JSON pointers into
    the body; the header's begin with ``header:``. ``topics``: names of topic ids from other messages;
    ``catalog``: meanings of numbers (None: the current one).
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.roots: list[Node] = []
        self.unknown_tags: list[UnknownTag] = []
        self.wrong_sizes: list[tuple[str, int]] = []
        self.open: list[Node] = []
        self.strings_left = 0
        self.topics: Mapping[str, str] = {}
        self.catalog: Catalog | None = None

    @property
    def header(self) -> Node | None:
        """The header, or None: a schema, or nothing was read."""
        return self.roots[0] if len(self.shape.top) == 2 and self.roots else None

    @property
    def body(self) -> Node | None:
        """The body, or None if the error is before it."""
        return self.roots[-1] if len(self.roots) == len(self.shape.top) else None

    def open_root(self, op: int, start: int) -> None:
        """Begin the header or the body."""
        root = Node("", op, start, start, None, [])
        self.roots.append(root)
        self.open.append(root)

    def open_container(self, node: Node) -> Node:
        """Add a struct, array or element to the innermost open container and make it the innermost."""
        self.open[-1].children.append(node)
        self.open.append(node)
        return node

    def pointer(self) -> str:
        """JSON pointer of the innermost open container."""
        names = "".join([f"/{node.name}" for node in self.open[1:]])
        before_body = len(self.roots) < len(self.shape.top) == 2
        in_header = self.open[0] is self.header if self.open else before_body
        return f"header:{names}" if in_header else names

    def break_path(self, op: int) -> str:
        """JSON pointer of the place where a run that ended at ``op`` stopped."""
        path = self.pointer()
        if self.open and self.open[-1].count >= 0:
            path += f"/{len(self.open[-1].children)}"
        if op < len(self.shape.names) and self.shape.kinds[op] not in (_END, _TAGS) and self.shape.names[op]:
            path += f"/{self.shape.names[op]}"
            if self.strings_left:
                values = self.open[-1].children[-1].value
                path += f"/{len(values)}" if isinstance(values, list) else ""
        return path

    def walk(self) -> Iterator[tuple[int, Node]]:
        """Every node with its depth, in wire order."""
        stack = [(0, node) for node in reversed(self.roots)]
        while stack:
            depth, node = stack.pop()
            yield depth, node
            if node.children:
                stack.extend((depth + 1, child) for child in reversed(node.children))


def fold(program: Program, cells: bytes, data: bytes) -> Tree:
    """The tree of a tape (``engine.run``'s cells over ``data`` with ``program``)."""
    shape = shape_of(program)
    kinds, names = shape.kinds, shape.names
    tree = Tree(shape)
    stack = tree.open
    for op, start, value in iter_unpack(_CELL, cells):
        kind = kinds[op]
        if not stack:
            if kind == _STRUCT:
                tree.open_root(op, start)
            continue
        top = stack[-1]
        if top.count >= 0:
            # The first cell of the array's next element.
            top = tree.open_container(Node(len(top.children), op, start, start, None, []))
        if kind in _WIDTHS:
            leaf = Node(names[op], op, start, start + _WIDTHS[kind], value if kind != _BOOL else value != 0)
        elif kind in (_STRING, _BYTES):
            end = start + value if value > 0 else start
            leaf = Node(names[op], op, start, end, _text_or_bytes(kind, data, start, value))
        elif kind == _END:
            _close(stack, start)
            continue
        elif kind in _STRUCTURE:
            _add_structure(tree, op, start, value, data)
            continue
        else:
            leaf = _rare_leaf(shape, op, start, value, data)
        top.children.append(leaf)
    if len(tree.unknown_tags) > 1:
        tree.unknown_tags.sort(key=lambda tag: tag.struct)
    return tree


def _add_structure(tree: Tree, op: int, start: int, value: int, data: bytes) -> None:
    # Cells other than leaves: they change the struct they are in, or the cells after them.
    kind, name, top = tree.shape.kinds[op], tree.shape.names[op], tree.open[-1]
    if kind in (_ARRAY, _STRUCT):
        node = Node(name, op, start, start, None, None if value < 0 else [])
        if kind == _ARRAY:
            node.count = value
        if value > 0:
            tree.open_container(node)
        else:
            top.children.append(node)
    elif kind == _TAGS:
        place = (top.start, len(tree.open))
        tree.unknown_tags.append(UnknownTag(tree.pointer(), value >> 32, start, value & _U32, place))
    elif kind == _TAG:
        tree.wrong_sizes.append((f"{tree.pointer()}/{name}", value))
    elif tree.strings_left:
        tree.strings_left -= 1
        array = top.children[-1]
        if isinstance(array.value, list):
            array.value.append(_text_or_bytes(tree.shape.elements[op], data, start, value))
        array.end = start + value
    else:
        tree.strings_left = max(value, 0)
        top.children.append(Node(name, op, start, start, None if value < 0 else []))


def _close(stack: list[Node], end: int) -> None:
    stack.pop().end = end
    if stack and stack[-1].count >= 0:
        stack[-1].end = end
        if len(stack[-1].children) == stack[-1].count:
            stack.pop()


def _text_or_bytes(kind: int, data: bytes, start: int, length: int) -> str | bytes | None:
    if length < 0:
        return None
    piece = data[start : start + length]
    return piece.decode("utf-8", "replace") if kind == _STRING else piece


def uuid_text(raw: bytes) -> str:
    """Kafka's text of a uuid: 22 characters of URL-safe base64."""
    return urlsafe_b64encode(raw)[:22].decode()


def _rare_leaf(shape: Shape, op: int, start: int, value: int, data: bytes) -> Node:
    kind, name = shape.kinds[op], shape.names[op]
    if kind == _UUID:
        return Node(name, op, start, start + 16, uuid_text(data[start : start + 16]))
    if kind == _FLOAT64:
        return Node(name, op, start, start + 8, _DOUBLE.unpack_from(data, start)[0])
    if kind == _ARRAY_SCALAR:
        values, end = _scalars(shape.elements[op], data, start, value)
        return Node(name, op, start, end, values)
    end = start + 1
    if kind in _VARINTS:
        while data[end - 1] & 128:
            end += 1
    return Node(name, op, start, end, value)


def _scalars(kind: int, data: bytes, start: int, count: int) -> tuple[list[Value] | None, int]:
    if count < 0:
        return None, start
    if kind == _UUID:
        end = start + 16 * count
        return [uuid_text(data[at : at + 16]) for at in range(start, end, 16)], end
    format_ = Struct(f">{count}{_LETTERS[kind]}")
    values: list[Value] = list(unpack_from(format_.format, data, start))
    return ([value != 0 for value in values] if kind == _BOOL else values), start + format_.size
