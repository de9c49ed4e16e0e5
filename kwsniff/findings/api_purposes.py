"""The purposes of APIs, by the traits of their layouts: SQL macros for rules, sets of names for code.

`is_heartbeat(api_name)` in a query is true for every API whose layout has the trait, a vendor's too: a new
kind of group needs a line in its layout, and no change in a rule.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kwsniff.layout.catalog import Catalog, load_catalog
from kwsniff.layout.model import Traits
from kwsniff.layout.traits import (
    ACKNOWLEDGED,
    ACQUIRED,
    BROKERS,
    CLASSIC,
    COMMITTED,
    COORDINATORS,
    FETCHED,
    LISTED,
    PRODUCED,
    VERSIONS,
)  # fmt: skip

if TYPE_CHECKING:
    import duckdb

PURPOSES: Final[Mapping[str, Callable[[Traits], bool]]] = {
    "is_produce": lambda traits: traits.records == PRODUCED,
    "is_log_fetch": lambda traits: traits.records == FETCHED,
    "is_share_fetch": lambda traits: traits.records == ACQUIRED,
    "is_fetch": lambda traits: traits.records in (FETCHED, ACQUIRED),
    "is_acknowledge": lambda traits: traits.records == ACKNOWLEDGED,
    "is_list_offsets": lambda traits: traits.offsets == LISTED,
    "is_commit": lambda traits: traits.offsets == COMMITTED,
    "is_metadata": lambda traits: traits.cluster == BROKERS,
    "is_api_versions": lambda traits: traits.cluster == VERSIONS,
    "is_find_coordinator": lambda traits: traits.cluster == COORDINATORS,
    "is_group_wait": lambda traits: traits.rendezvous,
    "is_join": lambda traits: traits.group == "join",
    "is_leave": lambda traits: traits.group == "leave",
    "is_heartbeat": lambda traits: traits.group in ("heartbeat", "epoch"),
    "is_classic_heartbeat": lambda traits: traits.group == "heartbeat",
    "is_epoch_heartbeat": lambda traits: traits.group == "epoch",
    "is_describe_group": lambda traits: traits.describe not in ("", CLASSIC),
    "is_describe_classic_group": lambda traits: traits.describe == CLASSIC,
    "is_init_producer": lambda traits: traits.transaction == "init",
    "is_transaction_step": lambda traits: (
        traits.transaction in ("init", "add_partitions", "add_offsets", "end")
    ),
    "is_sasl": lambda traits: traits.sasl,
    "is_internal": lambda traits: traits.internal,
    "is_controller_call": lambda traits: traits.controller,
    "is_question": lambda traits: traits.question,
    "is_create_topics": lambda traits: traits.topics == "created",
    "is_delete_topics": lambda traits: traits.topics == "deleted",
    "is_topic_change": lambda traits: traits.topics != "",
    "needs_describe": lambda traits: traits.acl == "describe",
    "needs_read": lambda traits: traits.acl == "read",
    "needs_write": lambda traits: traits.acl == "write",
    "needs_create": lambda traits: traits.acl == "create",
    "needs_delete": lambda traits: traits.acl == "delete",
}
"""Name of a macro over `api_name` -> whether an API with these traits has the purpose. A newer kind of group
joins, leaves and stays by one call, its epoch heartbeat; the generation in it shows which."""


def names_of(purpose: str) -> frozenset[str]:
    """Names of the APIs with a purpose, in kwsniff's layouts and those of KWSNIFF_LAYOUTS."""
    return _names_of(load_catalog(), purpose)


@lru_cache(maxsize=256)
def _names_of(catalog: Catalog, purpose: str) -> frozenset[str]:
    has = PURPOSES[purpose]
    return frozenset(api.name for api in catalog.apis.values() if has(api.traits))


def add_purpose(database: "duckdb.DuckDBPyConnection", purpose: str) -> None:
    """Adds the macro of this name, which is null where the name of the API is."""
    listed = ", ".join(f"'{name}'" for name in sorted(names_of(purpose)))
    database.execute(f"create or replace temp macro {purpose}(api_name) as api_name in ({listed})")
