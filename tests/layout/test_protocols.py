"""dissectors/protocols.txt: first bytes of other protocols, and what is refused."""

import pytest

from kwsniff.errors import LayoutError
from kwsniff.layout.protocols import Beginning, load_protocols, read_protocols
from kwsniff.tables.enums import WORDS

OWN = {"empty", "kafka", "tls", "socks", "other", "undecided"}
"""Words that the code itself tells: what is none of the text's."""


def test_every_protocol_is_a_word_of_the_table_and_every_word_has_its_bytes() -> None:
    assert set(load_protocols()) == set(WORDS["protocol"]) - OWN


def test_texts_bytes_and_gaps_are_read_in_their_order() -> None:
    found = read_protocols('# a comment\n\nhello 80 81\n    client  "ab" 0d .. ff\n    either  00 01 02\n')
    assert found["hello"].ports == (80, 81)
    assert found["hello"].beginnings == [
        Beginning("client", b"ab\r\0\xff", b"\xff\xff\xff\0\xff"),
        Beginning("either", b"\0\1\2", b"\xff\xff\xff"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ('    client "abc"', 1, "needs a protocol above"),
        ("Hello", 1, "a protocol needs"),
        ("hello x", 1, "a protocol needs"),
        ("hello\nhello", 2, "twice"),
        ('hello\n    nobody "abc"', 2, "unknown side"),
        ("hello\n    client 0", 2, "neither"),
        ('hello\n    client "abc" 0D', 2, "neither"),
        ("hello\n    client 00 .. .. 01", 2, "at least 3"),
        ("hello\n    client" + " 00" * 33, 2, "at most 32"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, line: int, word: str) -> None:
    with pytest.raises(LayoutError, match=rf"^protocols\.txt:{line}: .*{word}"):
        read_protocols(text)
