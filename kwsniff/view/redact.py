"""Hiding what must not be seen in a capture: passwords, SCRAM data, tokens, HMACs.

``decode`` shows all that it is handed; whatever shows captures redacts first, then draws.
"""

from kwsniff.layout.meaning import Meaning
from kwsniff.view.tree import Tree


class Redacted(str):
    """The text that stands for a secret."""

    __slots__ = ()


def redact(tree: Tree) -> None:
    """Replace every value whose field has the meaning ``secret``, in place. Null stays null."""
    fields = tree.shape.fields
    for _, node in tree.walk():
        field = fields[node.op]
        is_secret = field is not None and field.meaning is Meaning.SECRET
        if is_secret and node.is_leaf and node.value is not None:
            node.value = Redacted(f"<redacted, {node.end - node.start} bytes>")
