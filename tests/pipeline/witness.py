"""tshark, asked through pyshark, as a second reader of Kafka captures."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kwsniff.verify.tshark import messages

# Newest version tshark 4.0 dissects, per API key (its table is that of Kafka 2.5).
NEWEST = {
    0: 8, 1: 11, 2: 5, 3: 9, 8: 8, 9: 7, 10: 3, 11: 7, 12: 4, 13: 4, 14: 5, 15: 5, 16: 3, 17: 1, 18: 3, 19: 5,
    20: 4, 22: 3, 23: 3, 24: 1, 25: 1, 26: 1, 28: 3, 36: 2,
}  # fmt: skip
# Its error code field is not told from others, or the layout is misread: only header facts are compared.
NO_ERRORS = {11, 14}


def pdus(path: Path, ports: Sequence[int]) -> list[dict[str, Any]]:
    """One entry per Kafka message that tshark sees, in the order of their frames."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    pytest.importorskip("pyshark")
    return [
        {
            "frame": seen.frame,
            "to_broker": seen.receiver[1] in ports,
            "api_key": seen.api_key,
            "api_version": seen.api_version,
            "correlation_id": seen.correlation_id,
            "client_id": seen.client_id,
            "request_frame": seen.request_frame,
            "errors": list(seen.errors or ()),
        }
        for found in messages(str(path), ports)
        for seen in found
    ]
