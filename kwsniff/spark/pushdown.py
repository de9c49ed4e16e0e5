"""Filters that Spark hands to a Python source, as conditions on Arrow batches. Spark 4.0 has none yet."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kwsniff.tables.column import LISTS, Column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter

_COMPUTED: Final = {
    "EqualTo": "equal",
    "GreaterThan": "greater",
    "GreaterThanOrEqual": "greater_equal",
    "LessThan": "less",
    "LessThanOrEqual": "less_equal",
    "In": "is_in",
    "IsNull": "is_null",
    "IsNotNull": "is_valid",
    "StringContains": "match_substring",
    "StringEndsWith": "ends_with",
    "StringStartsWith": "starts_with",
}
"""Classes of pyspark.sql.datasource, by their names: 4.0 does not have them."""
_ON_TEXTS = ("match_substring", "ends_with", "starts_with")


@dataclass(frozen=True)
class Condition:
    """`function` is Arrow's name of the comparison."""

    function: str
    column: str
    value: Any

    def rows(self, batch: "pa.RecordBatch") -> "pa.BooleanArray":
        """Which rows it is true for; null where it is neither true nor false, as in SQL."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values = batch[self.column]
        compare = getattr(pc, self.function)
        if self.function in ("is_null", "is_valid"):
            return compare(values)
        if self.function in _ON_TEXTS:
            return compare(values, self.value)
        if self.function == "is_in":
            known = [value for value in self.value if value is not None]
            return compare(values, value_set=pa.array(known, values.type))
        return compare(values, pa.scalar(self.value, values.type))


def condition(asked: "Filter", columns: Mapping[str, Column]) -> Condition | None:
    """The condition that decides the same; None when Spark must decide it itself."""
    function = _COMPUTED.get(type(asked).__name__)
    path: tuple[str, ...] = getattr(asked, "attribute", ())
    if function is None or len(path) != 1 or path[0] not in columns or columns[path[0]].type in LISTS:
        return None
    value = getattr(asked, "value", None)
    if value is None and function not in ("is_null", "is_valid"):
        return None
    return Condition(function, path[0], value)
