"""Lets the shared comparisons explain what differed."""

import pytest

pytest.register_assert_rewrite("tests.pipeline.compare")
