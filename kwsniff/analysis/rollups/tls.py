"""What TLS connections show without decryption: suites, round trips, traffic, ends."""

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from kwsniff.tables.arrays import Bits, valid_rows, whole_numbers
from kwsniff.tables.compute import cast, filter_rows
from kwsniff.tables.grouping import Groups

MOST_KINDS: Final = 1_000
"""Kinds that are counted separately; connections of more kinds are not."""
SUMS: Final = tuple(
    f"{side}_{what}"
    for side in ("client", "broker")
    for what in ("bytes", "tls_records", "retransmitted_bytes")
)
_KIND: Final = ("broker_address", "broker_port", "tls_server_name", "tls_version", "tls_cipher")

Kind = tuple[str, int, str | None, str | None]
"""Broker by the name asked for or its address, port, version, cipher suite."""


class ClosedFigures:
    """Connections inside TLS by where they go to and what was agreed on, added up in bounded memory."""

    def __init__(self) -> None:
        self._kinds: dict[Kind, dict[str, Any]] = {}

    def add(self, connections: pa.RecordBatch) -> None:
        """Counts rows of the table connections."""
        batch = filter_rows(connections, _is(connections["protocol"], "tls"))
        if not batch.num_rows:
            return
        groups = Groups(batch, _KIND)
        counts, resets = groups.counts(), groups.counts(_is(batch["ending"], "reset"))
        greeted: Bits = whole_numbers(cast(batch["tls_hello"], pa.int8()), null=0) == 1
        midway = groups.counts(~greeted & ~valid_rows(batch["tls_cipher"]))
        sums = {name: groups.split(batch[name]) for name in SUMS}
        trips = groups.split(batch["round_trip_ns"])
        for place, (address, port, name, version, cipher) in enumerate(groups.labels()):
            found = {name: int(next(parts).sum()) for name, parts in sums.items()}
            trip = next(trips).tolist()
            figures = self._find_figures((address if name is None else name, port, version, cipher))
            if figures is None:
                continue
            found |= {"connections": int(counts[place]), "resets": int(resets[place])}
            found["without_handshake"] = int(midway[place])
            for each, number in found.items():
                figures[each] += number
            known = figures["round_trip_ns"]
            figures["round_trip_ns"] = min([*trip, *([] if known is None else [known])], default=None)

    def _find_figures(self, kind: Kind) -> dict[str, Any] | None:
        if kind not in self._kinds and len(self._kinds) >= MOST_KINDS:
            return None
        empty = {
            "connections": 0,
            "without_handshake": 0,
            "resets": 0,
            "round_trip_ns": None,
            **dict.fromkeys(SUMS, 0),
        }
        return self._kinds.setdefault(kind, empty)

    def as_dicts(self) -> list[Mapping[str, Any]]:
        """Most connections first; round_trip_ns is the least of them."""
        names = ("broker", "broker_port", "tls_version", "tls_cipher")
        rows = [{**dict(zip(names, kind, strict=True)), **each} for kind, each in self._kinds.items()]
        return sorted(rows, key=lambda row: -row["connections"])


def _is(column: pa.DictionaryArray, word: str) -> Bits:
    """Which rows have this word."""
    words = column.dictionary.to_pylist()
    wanted: Bits = whole_numbers(column.indices, null=-1) == (words.index(word) if word in words else -2)
    return wanted
