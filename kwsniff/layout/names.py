"""names.txt: the kind of each field with text or bytes, and words that may be shown."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kwsniff.layout.meaning import WORDS, Meaning
from kwsniff.layout.tokens import fail

KINDS: Final = ("name", "word", "sasl", "value", "schema", "records")
UNKNOWN: Final = "value"
"""The kind of fields that names.txt does not have."""
_SECTIONS: Final = ("fields", "whole", "words")


class PublicNames(NamedTuple):
    """``kinds``: name and meaning of a field -> its kind. ``whole`` (names) and ``words`` (of names) stay;
    ``settings``: names of Kafka's settings."""

    kinds: Mapping[tuple[str, Meaning], str]
    whole: frozenset[str]
    words: frozenset[str]
    settings: frozenset[str]

    def kind(self, name: str, meaning: Meaning) -> str:
        """What a field holds."""
        return self.kinds.get((name, meaning), UNKNOWN)


def parse_names(text: str, file: str, settings: frozenset[str]) -> PublicNames:
    """The content of names.txt. Raises LayoutError with ``file:line``."""
    kinds: dict[tuple[str, Meaning], str] = {}
    found: dict[str, set[str]] = {"whole": set(), "words": set()}
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if not line[0].isspace():
            section = words[0]
            if section not in _SECTIONS or len(words) > 1:
                fail(file, number, f"unknown section '{line.strip()}' (expected: {', '.join(_SECTIONS)})")
        elif section == "fields":
            if len(words) != 3 or words[2] not in KINDS or (words[1] != "-" and words[1] not in WORDS):
                fail(file, number, f"'{line.strip()}' is not: name, meaning or -, one of {', '.join(KINDS)}")
            meaning = Meaning.NONE if words[1] == "-" else WORDS[words[1]]
            if (words[0], meaning) in kinds:
                fail(file, number, f"'{words[0]} {words[1]}' is given twice")
            kinds[words[0], meaning] = words[2]
        elif section:
            found[section].update(words)
        else:
            fail(file, number, f"before the first section: '{line.strip()}'")
    return PublicNames(kinds, frozenset(found["whole"]), frozenset(found["words"]), settings)
