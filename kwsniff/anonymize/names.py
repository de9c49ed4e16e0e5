"""Replacement of names: of the same length, letter for letter and digit for digit, by a key.

A name consists of words, with punctuation between them. The same word has the same replacement everywhere, so
that a member id still begins with its client id. Different words have different replacements. Words
of Kafka itself (names.txt) stay: rules and tables know them.
"""

import re
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from hashlib import blake2b
from ipaddress import ip_address
from typing import Final, NamedTuple

from kwsniff.anonymize.addresses import Addresses
from kwsniff.layout.names import PublicNames

KEY_BYTES: Final = 32
_WORD: Final = re.compile(r"[^\W_]+")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_HEX: Final = re.compile(r"(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{8,}")
_MARK_BYTES: Final = 8
_MOST_CACHED: Final = 100_000
_MOST_MAPPED: Final = 1_000_000
_LONGEST_CACHED: Final = 256


class Detail(Enum):
    """What is kept of a value, from most to least."""

    DISTINCT = 2
    """Punctuation, and what is a letter or a digit; the first eight of these depend on the whole value."""
    SHAPE = 1
    """The same, with equal letters and digits: compresses as well as before."""
    SIZE = 0


class _Alphabet(NamedTuple):
    """Consecutive characters that replace each other."""

    first: int
    size: int


_DIGITS, _LOWER, _UPPER = _Alphabet(0x30, 10), _Alphabet(0x61, 26), _Alphabet(0x41, 26)
_HEX_LETTERS: Final = _Alphabet(0x61, 6)
_TWO_BYTES, _THREE_BYTES, _FOUR_BYTES = (
    _Alphabet(0x430, 32), _Alphabet(0x4E00, 20_000), _Alphabet(0x20000, 40_000)
)  # fmt: skip
"""Of letters that take as many bytes of UTF-8."""


class Names:
    """Names and addresses by a key of 32 bytes. ``seen``: name -> its replacement."""

    def __init__(self, key: bytes, public: PublicNames) -> None:
        self.key = key
        self.public = public
        self.addresses = Addresses(key)
        self.seen: dict[str, str] = {}
        self._cached = lru_cache(_MOST_CACHED)(self._word)

    def name(self, data: bytes) -> bytes:
        """A name's bytes replaced."""
        text = data.decode("utf-8", "surrogateescape")
        new = self.text(text)
        if new != text:
            self._keep(text, new)
        return new.encode("utf-8", "surrogateescape")

    def word(self, data: bytes) -> bytes:
        """A value of a list that Kafka or a library defines: what names.txt does not have is replaced like a
        name; numbers stay."""
        text = data.decode("utf-8", "surrogateescape")
        if text in self.public.settings:
            return data
        new = _LETTERS.sub(lambda found: self._replace(found[0]), _without_odd(text))
        if new != text:
            self._keep(text, new)
        return new.encode("utf-8", "surrogateescape")

    def text(self, text: str) -> str:
        """Replaces the words and addresses of a text."""
        if text in self.public.whole:
            return text
        parts, at = [], 0
        for begin, end in [*self.addresses.find(text), (len(text), len(text))]:
            parts.append(_WORD.sub(lambda found: self._replace(found[0]), _without_odd(text[at:begin])))
            if begin < end:
                new = self.addresses.text(text[begin:end])
                if new != text[begin:end]:
                    self._keep(text[begin:end], new)
                parts.append(new)
            at = end
        return "".join(parts)

    def sasl(self, data: bytes) -> bytes:
        """A SASL token: names, nonces and proofs replaced, the names of SCRAM's attributes kept."""
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            kept = _gss_mechanism(data)
            return data[:kept] + bytes(len(data) - kept)
        if any(ord(character) < 32 and character not in "\0\x01\t\n\r" for character in text):
            return bytes(len(data))
        parts, at = [], 0
        for found in _ATTRIBUTE.finditer(text):
            parts += [self._attribute(text[at : found.start()]), found[0]]
            at = found.end()
        return "".join([*parts, self._attribute(text[at:])]).encode("utf-8", "surrogateescape")

    def _attribute(self, text: str) -> str:
        new = self.text(text)
        for name, other in zip(_SPLIT.split(text), _SPLIT.split(new), strict=False):
            if name != other and len(name) == len(other):
                self._keep(name, other)
        return new

    def value(self, data: bytes, detail: Detail = Detail.DISTINCT) -> bytes:
        """A record's key or value. What is not text becomes zeros, behind eight bytes for a hash."""
        if not _is_text(data):
            mark = self._mark(data)[: len(data)] if detail is Detail.DISTINCT else b""
            return mark + bytes(len(data) - len(mark))
        if detail is Detail.SIZE:
            return b"a" * len(data)
        new = bytearray(data.translate(_FLATTENED))
        if detail is Detail.DISTINCT:
            mark, at = self._mark(data), 0
            for byte in mark:
                while at < len(new) and new[at] not in _SIZES:
                    at += 1
                if at == len(new):
                    break
                new[at] += byte % _SIZES[new[at]]
                at += 1
        return bytes(new)

    def _mark(self, data: bytes) -> bytes:
        return blake2b(b"value" + data, digest_size=_MARK_BYTES, key=self.key).digest()

    def list_replacements(self) -> Mapping[str, str]:
        """Names and addresses that were replaced, sorted, with their replacements."""
        addresses = {str(ip_address(old)): str(ip_address(new)) for old, new in self.addresses.seen.items()}
        return dict(sorted({**addresses, **self.seen}.items()))

    def _keep(self, name: str, new: str) -> None:
        if len(self.seen) < _MOST_MAPPED:
            self.seen[name] = new

    def _replace(self, word: str) -> str:
        if word in self.public.words:
            return word
        return self._cached(word) if len(word) <= _LONGEST_CACHED else self._word(word)

    def _word(self, word: str) -> str:
        is_hex = _HEX.fullmatch(word) is not None
        alphabets = [_alphabet(character, is_hex) for character in word]
        shape = bytes(alphabet.size & 0xFF for alphabet in alphabets)
        for _ in range(64):
            word = self._shift(self._shift(word, alphabets, shape)[::-1], alphabets[::-1], shape[::-1])[::-1]
            if word not in self.public.words and (is_hex or not _HEX.fullmatch(word)):
                break
        return word

    def _shift(self, word: str, alphabets: list[_Alphabet], shape: bytes) -> str:
        """Moves each character within its alphabet, by the key and the characters before it."""
        state = blake2b(b"word" + shape, digest_size=8, key=self.key)
        out = []
        for character, (first, size) in zip(word, alphabets, strict=True):
            step = int.from_bytes(state.copy().digest(), "big")
            out.append(chr(first + (ord(character) - first + step) % size))
            state.update(character.encode())
        return "".join(out)


_SPLIT: Final = re.compile(r"[\0\x01,=]")
_ATTRIBUTE: Final = re.compile(r"^[nyp](?=[,=])|(?<=,)[a-z](?==)|^[a-z](?==)|=2C|=3D")
_FLATTENED: Final = bytes(
    0x30 if 0x30 <= byte < 0x3A else 0x61 if 0x61 <= byte < 0x7B or byte > 0x7F else 0x41
    if 0x41 <= byte < 0x5B else byte
    for byte in range(256)
)  # fmt: skip
_SIZES: Final = {0x30: 10, 0x61: 26, 0x41: 26}


def _gss_mechanism(data: bytes) -> int:
    """How many bytes of a GSS-API token say which mechanism it is of (RFC 2743 3.1)."""
    if len(data) < 4 or data[0] != 0x60:
        return 0
    at = 2 + (data[1] & 0x7F if data[1] & 0x80 else 0)
    if data[at : at + 1] != b"\x06" or at + 1 >= len(data) or data[at + 1] > 16:
        return 0
    return min(at + 2 + data[at + 1], len(data))


def _is_text(data: bytes) -> bool:
    try:
        return data.translate(None, b"\t\n\r").decode("utf-8").isprintable()
    except UnicodeDecodeError:
        return False


def _without_odd(text: str) -> str:
    """Without bytes that are not UTF-8, and characters that are neither ASCII nor letters."""
    if text.isascii():
        return text
    return "".join(
        each if each.isascii() or each.isalnum() else "\udcff" * len(each.encode("utf-8", "surrogateescape"))
        for each in text
    )


def _alphabet(character: str, is_hex: bool) -> _Alphabet:
    if "0" <= character <= "9":
        return _DIGITS
    if "a" <= character <= "z":
        return _HEX_LETTERS if is_hex else _LOWER
    if "A" <= character <= "Z":
        return _UPPER
    size = len(character.encode("utf-8", "surrogateescape"))
    return (_TWO_BYTES, _THREE_BYTES, _FOUR_BYTES)[size - 2]
