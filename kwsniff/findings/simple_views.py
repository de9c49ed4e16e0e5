"""Shared views (shared_views/*.sql) made simpler by what figures tell of all calls."""

from collections.abc import Collection, Mapping
from typing import Final

_NO_TWINS: Final = "create temp view twin as select '' as run_id, 0::bigint as connection_id where false"
_NO_UNNAMED: Final = (
    "create temp view unnamed as select '' as run_id, 0::bigint as connection_id, '' as named where false"
)
_NO_ORIGINS: Final = (
    "create temp view origin as select '' as run_id, 0::bigint as connection_id, '' as origin where false"
)
_NO_SERVERS: Final = {
    "client_call": "create temp view client_call as from call",
    "server_error": (
        "create temp view server_error as select '' as run_id, 0::bigint as call_id where false"
    ),
}
_OF_UNNAMED: Final = " left join unnamed u using (run_id, connection_id)"
_OF_ORIGINS: Final = " left join origin using (run_id, connection_id)"
_NAMED: Final = {
    "call": (("coalesce(c.client_id, named, client_address)", "c.client_id"), (_OF_UNNAMED, "")),
    "refusal": (("coalesce(e.client_id, named, e.client_address)", "e.client_id"), (_OF_UNNAMED, "")),
    "latency": (("coalesce(client_id, origin)", "client_id"), (" exclude (origin)", ""), (_OF_ORIGINS, "")),
    "partition_call": (
        ("coalesce(client_id, origin)", "client_id"), (" exclude (origin)", ""), (_OF_ORIGINS, ""),
    ),
}  # fmt: skip
"""View -> parts that find the name of a client, and what is there instead where each call has one: DuckDB
then looks for a client in fewer blocks of rows."""


ABSENT: Final = {
    "twins": ("twin",),
    "unnamed calls": ("unnamed", "origin"),
    "calls of servers": ("server_error",),
}
"""What there may be none of (twins of connections, calls that name no client, ...) -> views then empty.

They stay views: a query that joins one is planned without it, and reads no columns for it.
"""


def are_empty(absent: Collection[str]) -> set[str]:
    """Views that have no rows. `absent`: those of ABSENT that there are none of, among other names."""
    return {view for name in absent for view in ABSENT.get(name, ())}


def simplify(views: Mapping[str, str], absent: Collection[str]) -> dict[str, str]:
    """Views by name, without what no row needs. `absent`: those of ABSENT that there are none of."""
    twins, unnamed, servers = (name not in absent for name in ABSENT)
    simple = dict(views)
    if not twins:
        simple["twin"] = _NO_TWINS
    if not unnamed:
        simple |= {"unnamed": _NO_UNNAMED, "origin": _NO_ORIGINS}
        for name, changes in _NAMED.items():
            for part, instead in changes:
                simple[name] = simple[name].replace(part, instead)
    if not servers:
        simple |= _NO_SERVERS
    return simple
