"""Redaction: hides passwords, SCRAM data, tokens and HMACs of a capture, and records unless requested.

``decode`` shows everything; verbs that show captures hide first, then draw. If a part is hidden, so are the
bytes of the field around it: raw bytes never appear next to their redacted content.
"""

from functools import lru_cache
from typing import Any, Final

from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.layout.meaning import Meaning
from kwsniff.layout.model import Field
from kwsniff.layout.settings import HIDDEN_VALUE, Settings
from kwsniff.view.embedded import find_inner
from kwsniff.view.membership import JSON, PUBLIC_NAMES
from kwsniff.view.model import Inner, Message, Place, Surroundings
from kwsniff.view.tree import Node, Tree

_PASSWORD_TYPE: Final = 9

Fields = tuple[Field, ...]


class Redacted(str):
    """The placeholder for hidden content."""

    __slots__ = ()


def redact(tree: Tree) -> bool:
    """Replace secrets, and values of settings that are not known to be public, in place; null stays.
    Returns whether
    there were any. Kafka's own settings are public (``layout/settings.py``), unless the broker marks one as
    sensitive.
    """
    fields, settings = tree.shape.fields, (tree.catalog or load_catalog()).settings
    found = False
    todo: list[tuple[Node, Node | None]] = [(root, None) for root in tree.roots]
    while todo:
        node, above = todo.pop()
        # Elements of an array belong to the struct that the array is in.
        struct = above if node.count >= 0 else node
        for child in node.children:
            field = fields[child.op]
            if not child.is_leaf:
                todo.append((child, struct))
            elif field is None or child.value is None:
                continue
            elif _is_secret(field, node, above, tree, settings):
                child.value = Redacted(f"<redacted, {child.end - child.start} bytes>")
                found = True
            elif field.meaning is Meaning.ERROR_MESSAGE and isinstance(child.value, str):
                told = settings.without_values(child.value)
                if told != child.value:
                    child.value, found = Redacted(told), True
    return found


def _is_secret(field: Field, struct: Node, above: Node | None, tree: Tree, settings: Settings) -> bool:
    if field.meaning is not Meaning.CONFIG_VALUE:
        return field.meaning is Meaning.SECRET
    setting = {child.name: child.value for child in struct.children}
    around = {child.name: child.value for child in above.children} if above else {}
    name = setting.get("name", setting.get("key"))
    if not isinstance(name, str) or not settings.is_public(name):
        return True
    if "is_sensitive" in around:  # a synonym: belongs to the enclosing setting
        setting = around
    if "is_sensitive" in tree.shape.names and "is_sensitive" not in setting:
        return True  # cut off before that flag
    return bool(setting.get("is_sensitive")) or setting.get("config_type") == _PASSWORD_TYPE


def hide(
    message: Message,
    around: Surroundings | None = None,
    *,
    payload: bool = False,
    secrets: bool = False,
) -> None:
    """Decode the message's bytes fields, then hide in place what was not requested.

    ``payload``: keys, values and headers of records, and bytes that no layout is known for. ``secrets``:
    what is marked secret, sensitive settings, contents of envelopes.
    """
    if message.inner is None:
        message.inner = find_inner(message, around)
    carries = _carries(message.catalog, message.api_key, message.direction == "response")
    message.rest_hidden = (
        (not payload and carries.records)
        or (not secrets and carries.secrets)
        or (not payload and not carries.known)
    )
    if not secrets:
        redact(message.tree)
    _hide_inside(message.tree, message.inner, payload=payload, secrets=secrets)
    if not secrets and _is_envelope(message.catalog, message.api_key):
        _hide_bytes(message.tree)


class _Carries:
    """Secrets that messages of an API may contain, in any version; a response may repeat the request's."""

    def __init__(self, own: Fields | None, other: Fields | None, is_envelope: bool) -> None:
        meanings = {one.meaning for one in _all_fields(own or ())}
        asked = {one.meaning for one in _all_fields(other or ())}
        self.known = own is not None
        self.records = Meaning.RECORDS in meanings
        self.secrets = is_envelope or bool((meanings | asked) & {Meaning.SECRET, Meaning.CONFIG_VALUE})


@lru_cache(maxsize=512)
def _carries(catalog: Catalog, api_key: int | None, direction: int) -> _Carries:
    both = [catalog.message(api_key, which) if api_key is not None else None for which in (0, 1)]
    own, other = both[direction], both[1 - direction]
    return _Carries(
        own.fields if own else None, other.fields if other else None, _is_envelope(catalog, api_key)
    )


def _is_envelope(catalog: Catalog, api_key: int | None) -> bool:
    api = catalog.apis.get(api_key) if api_key is not None else None
    return api is not None and api.traits.wraps


def _all_fields(fields: tuple[Field, ...]) -> list[Field]:
    return [inner for field in fields for inner in (field, *_all_fields(field.children))]


def _hide_inside(tree: Tree, inner: dict[Place, Inner], *, payload: bool, secrets: bool) -> bool:
    """Hide secrets in the content of a tree's bytes fields, and the bytes themselves if part of their
    content was
    hidden or is unknown. Returns whether anything was hidden."""
    hidden = {place for place, one in inner.items() if _hide_in(one, payload=payload, secrets=secrets)}
    any_hidden = False
    for _, node in tree.walk():
        field = tree.shape.fields[node.op]
        if not isinstance(node.value, bytes) or not node.value:
            continue
        place = node.start, node.op
        foreign = field and field.meaning is Meaning.SCHEMA and not _is_understood(inner.get(place))
        records = field and field.meaning is Meaning.RECORDS
        if place in hidden or (records and not payload) or (foreign and not payload and not secrets):
            node.value = _hidden(node.end - node.start)
            any_hidden = True
    return any_hidden


def _is_understood(found: Inner | None) -> bool:
    """Whether layouts describe every byte; of metrics only names are decoded, of other content nothing."""
    return found is not None and (found.message is not None or (found.tree is not None and found.is_read))


def _hide_in(found: Inner, *, payload: bool, secrets: bool) -> bool:
    """Hide inside one bytes field; True if its raw bytes must not be shown either."""
    if found.message is not None:
        hide(found.message, payload=payload, secrets=secrets)
        return not secrets
    was_secret = found.tree is not None and not secrets and redact(found.tree)
    if found.tree is not None:
        was_secret |= _hide_inside(found.tree, found.inner, payload=payload, secrets=secrets)
    if found.name == JSON and not payload and not secrets:
        found.facts = _without_foreign(found.facts)
    if found.records is None:
        return was_secret
    return _hide_in_records(found, payload=payload, secrets=secrets)


def _hide_in_records(found: Inner, *, payload: bool, secrets: bool) -> bool:
    secret_records = {
        place for place, one in found.in_records.items() if _hide_in(one, payload=payload, secrets=secrets)
    }
    for number, batch in enumerate(found.records.batches if found.records else ()):
        for index, record in enumerate(batch["records"]):
            for name in ("key", "value"):
                is_secret = (number, index, name) in secret_records
                if not payload or is_secret:
                    _hide_entry(record, name)
            for header in record.get("headers") or () if not payload else ():
                _hide_entry(header, "value")
    return bool(secret_records)


def _without_foreign(said: Any) -> Any:
    """Facts on a registry's members, with values only for known names."""
    if not isinstance(said, dict):
        return HIDDEN_VALUE
    return {
        name: _without_foreign(value)
        if isinstance(value, dict)
        else value
        if name in PUBLIC_NAMES
        else HIDDEN_VALUE
        for name, value in said.items()
    }


def _hide_bytes(tree: Tree) -> None:
    for _, node in tree.walk():
        field = tree.shape.fields[node.op]
        if isinstance(node.value, bytes) and field and field.meaning is Meaning.SCHEMA:
            node.value = Redacted(f"<redacted, {node.end - node.start} bytes>")


def _hide_entry(record: dict[str, Any], name: str) -> None:
    value = record[name]
    if value is not None and not isinstance(value, Redacted):
        record[name] = _hidden(_decoded_size(value))


def _hidden(size: int) -> Redacted:
    return Redacted(f"<hidden, {size} bytes>")


def _decoded_size(base64: str) -> int:
    """Size of the bytes that a base64 text encodes."""
    return len(base64) // 4 * 3 - base64.count("=", -2)
