"""The bytes of a message next to the fields that begin in them."""

from typing import Final

from kwsniff.view.model import Message
from kwsniff.view.redact import Redacted
from kwsniff.view.text import format_value

_WIDTH: Final = 16


def render(message: Message) -> str:
    """Lines of offset, 16 bytes in hex, the same as ASCII, and the leaves whose value begins there."""
    starts: dict[int, list[str]] = {}
    hidden: set[int] = set()
    for _, node in message.tree.walk():
        if node.is_leaf:
            starts.setdefault(node.start // _WIDTH, []).append(f"{node.name}={format_value(node.value)}")
            if isinstance(node.value, Redacted):
                hidden.update(range(node.start, node.end))
    if message.rest_hidden:
        for tag in message.tree.unknown_tags:
            hidden.update(range(tag.start, tag.start + tag.size))
        if message.error is not None:
            hidden.update(range(message.error.offset, len(message.data)))
    if message.error is not None:
        starts.setdefault(message.error.offset // _WIDTH, []).append(f"! {message.error.code}")
    lines = []
    for at in range(0, len(message.data), _WIDTH):
        piece = message.data[at : at + _WIDTH]
        pairs = ["**" if at + i in hidden else f"{byte:02x}" for i, byte in enumerate(piece)]
        chars = [
            "*" if at + i in hidden else chr(byte) if 32 <= byte < 127 else "."
            for i, byte in enumerate(piece)
        ]
        columns = f"{at:08x}  {' '.join(pairs[:8]):<23}  {' '.join(pairs[8:]):<23}  |{''.join(chars):<16}|"
        lines.append(f"{columns}  {'  '.join(starts.get(at // _WIDTH, ()))}".rstrip())
    return "\n".join(lines)
