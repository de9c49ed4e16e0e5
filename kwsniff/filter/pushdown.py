"""The part of a filter that is pushed down to the core, which decides it before bodies are decoded: by
connection, client id, API, version, time, correlation id."""

from collections.abc import Mapping
from typing import Any, Final

from kwsniff.filter.expression import Filter
from kwsniff.layout.catalog import Catalog
from kwsniff.layout.meaning import Meaning
from kwsniff.layout.model import REQUEST, RESPONSE, ApiRange
from kwsniff.layout.spoken import catalogs, tells_product

_LESSON_REQUEST: Final = 1
_LESSON_RESPONSE: Final = 2
_LESSON_SESSION: Final = 4
_LESSON_WANTED: Final = 8
_TAUGHT: Final = frozenset(
    {
        Meaning.ACKS,
        Meaning.SOFTWARE_NAME,
        Meaning.SOFTWARE_VERSION,
        Meaning.SASL_MECHANISM,
        Meaning.SECRET,
    }
)
"""Of requests: how later messages of the connection are read, and what columns of its later calls have."""
_OF_API: Final = ("api_key", "api_name", "api_version")
_OF_CONNECTION: Final = (
    "connection_id", "client_address", "client_port", "broker_address", "broker_port", "client_id",
)  # fmt: skip
_MOST_VERSIONS: Final = 64
_EARLIEST: Final = -(1 << 63)
_LATEST: Final = (1 << 63) - 1
_MICROSECOND: Final = 1_000
COLUMNS: Final = frozenset({*_OF_API, *_OF_CONNECTION, "request_time", "correlation_id"})
"""Of api_calls: what may be known before a body is decoded."""


class PushedFilter:
    """A filter as the core asks it (core.analyzer.Choice). The core drops only calls that cannot be
    chosen."""

    def __init__(self, filter_: Filter, catalog: Catalog) -> None:
        self._filter = filter_
        self.apis: Mapping[int, tuple[int, bytes]] = {
            number << 16 | api.key: self._of_api(each, api)
            for number, each in catalogs(catalog).items()
            for api in each.own_apis()
        }
        since, until = filter_.span("request_time")  # microseconds, rounded down
        self.times: tuple[int, int] = (
            _EARLIEST if since is None else max(since * _MICROSECOND, _EARLIEST),
            _LATEST if until is None else min(until * _MICROSECOND + _MICROSECOND - 1, _LATEST),
        )
        low, high = filter_.span("correlation_id")
        self.correlation_ids: tuple[int, int] = (
            _EARLIEST if low is None else low,
            _LATEST if high is None else high,
        )

    def may_choose(self, facts: Mapping[str, Any]) -> bool:
        """Whether calls of a connection may be chosen, by its columns of api_calls."""
        return self._filter.may_choose(facts)

    def _of_api(self, catalog: Catalog, api: ApiRange) -> tuple[int, bytes]:
        key = api.key
        wanted = bytes([1]) * _MOST_VERSIONS
        if not self._filter.columns.isdisjoint(_OF_API):
            facts = {"api_key": key, "api_name": api.name}
            if self._filter.may_choose(facts):
                each = (self._filter.may_choose(facts | {"api_version": n}) for n in range(_MOST_VERSIONS))
                wanted = bytes(each) if "api_version" in self._filter.columns else wanted
            else:
                wanted = bytes(_MOST_VERSIONS)
        asked, answered = (catalog.meanings(key, way) for way in (REQUEST, RESPONSE))
        names = catalog.names_topics(key)
        lessons = _LESSON_REQUEST * (names or not asked.isdisjoint(_TAUGHT))
        lessons |= _LESSON_RESPONSE * (names or api.traits.tokens is not None)
        lessons |= _LESSON_RESPONSE * tells_product(api)
        lessons |= _LESSON_SESSION * (Meaning.SESSION_ID in asked | answered)
        lessons |= _LESSON_WANTED * any(wanted)
        return lessons, wanted


def push_down(filter_: Filter, catalog: Catalog) -> PushedFilter | None:
    """None for a filter that only messages decide."""
    return None if filter_.columns.isdisjoint(COLUMNS) else PushedFilter(filter_, catalog)
