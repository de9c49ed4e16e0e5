"""Fixtures every room's tests share."""

from pathlib import Path

import pytest

_SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference material beside the checkout; tests that need it skip where it is not there."""
    if not _SHARED.is_dir():
        pytest.skip("reference material (../shared) is not beside this checkout")
    return _SHARED
