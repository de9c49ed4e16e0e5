"""Fixtures every room's tests share."""

from pathlib import Path

import pytest

pytest.register_assert_rewrite(
    "tests.pipeline.compare"
)  # before any test imports it: lets it explain what differed

_SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference material beside the checkout; tests that need it skip where it is not there."""
    if not _SHARED.is_dir():
        pytest.skip("reference material (../shared) is not beside this checkout")
    return _SHARED
