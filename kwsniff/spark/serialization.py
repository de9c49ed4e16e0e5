"""Results of tasks and the state of a stream as JSON: plain values, and registered classes.

Planted bytes become such values or a ValueError; they cannot refer to code. An object with one key represents
other types than plain JSON: `{"tuple": [1, 2]}`, `{"bytes": "AAE="}`, `{"Part": ["groups", ...]}`.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, Final, TypeVar

from kwsniff import errors

Class = TypeVar("Class", bound=type)

_KNOWN: Final[dict[str, type]] = {}
_ERRORS: Final = {
    each.__name__: each
    for each in (*errors.KwsniffError.__subclasses__(), errors.KwsniffError)
    if each.__module__ == errors.__name__
}
_AS_IT_IS: Final = (bool, int, float, str)
_SEQUENCES: Final[dict[str, Callable[[Any], Any]]] = {"tuple": tuple, "set": set, "frozenset": frozenset}


def register(kind: Class) -> Class:
    """Registers a dataclass or a NamedTuple by name; usable as a decorator."""
    if _KNOWN.setdefault(kind.__name__, kind) is not kind:
        raise ValueError(f"there are two classes {kind.__name__}")
    return kind


def dump(value: Any) -> bytes:
    """The value as JSON. Raises TypeError for one that is neither plain nor of a known class."""
    return json.dumps(_plain(value)).encode("ascii")


def load(data: bytes) -> Any:
    """The value that was dumped. Raises ValueError for bytes that are none."""
    try:
        return _value(json.loads(data))
    except (TypeError, KeyError, RecursionError) as error:
        raise ValueError("is not a value written by kwsniff") from error


def _plain(value: Any) -> Any:
    kind = type(value)
    if value is None or kind in _AS_IT_IS:
        return value
    if kind is list:
        return [*map(_plain, value)]
    return {kind.__name__: _inner(kind, value)}


def _inner(kind: type, value: Any) -> Any:
    name = kind.__name__
    if kind is dict:
        return [[_plain(key), _plain(each)] for key, each in value.items()]
    if kind is bytes:
        return b64encode(value).decode("ascii")
    if _SEQUENCES.get(name) is kind:
        return [*map(_plain, value)]
    if _ERRORS.get(name) is kind:
        return str(value)
    if _KNOWN.get(name) is not kind:
        raise TypeError(f"{name} is not a plain value")
    return [_plain(getattr(value, field)) for field in _names(kind)]


def _value(found: Any) -> Any:
    if isinstance(found, list):
        return [*map(_value, found)]
    if isinstance(found, dict):
        ((name, inner),) = found.items()
        return _object(name, inner)
    return found


def _object(name: str, inner: Any) -> Any:
    if name == "dict":
        return {_value(key): _value(each) for key, each in inner}
    if name == "bytes":
        return b64decode(inner, validate=True)
    if name in _SEQUENCES:
        return _SEQUENCES[name](map(_value, inner))
    if name in _ERRORS:
        return _ERRORS[name](inner)
    kind = _KNOWN[name]
    return kind(**dict(zip(_names(kind), map(_value, inner), strict=True)))


def _names(kind: type) -> tuple[str, ...]:
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    names: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
    return names
