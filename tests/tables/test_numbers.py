"""Numbers of columns that are looked at many at a time."""

import numpy as np
import pytest

from kwsniff.tables.arrays import among


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.int64])
def test_those_among_some_are_found_as_numpy_finds_them(kind: type[np.generic]) -> None:
    values = np.array([0, 1, 18, -1, -2, 32_767, -32_768, 18, 3], kind)
    for some in ((), (18,), (0, 1, 32_767), range(100)):
        np.testing.assert_array_equal(among(values, some), np.isin(values, [*some]))
