"""Brokers that may be proxies, and hosts that they may connect from: a quick look at connections.

A proxy accepts connections as a broker and opens others as a client. It has the same address on both sides,
or its upstream connections have the client ids of others.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

import pyarrow as pa

from kwsniff.tables.arrays import whole_numbers
from kwsniff.tables.compute import filter_rows
from kwsniff.tables.grouping import Groups

COLUMNS: Final = ("broker_address", "broker_port", "client_address", "client_id", "caller", "calls")
"""The columns of connections that are read."""
OF_SERVERS: Final = ("replica", "controller")
"""Callers that are brokers, and never a proxy."""
_MOST: Final = 20_000
"""Distinct combinations of addresses and client ids; of more, none is looked at."""

Endpoint = tuple[str, int]


class PossibleProxies(NamedTuple):
    """Where proxies may be."""

    endpoints: frozenset[Endpoint]
    """Brokers that may be proxies."""
    hosts: frozenset[str]
    """Clients that may be proxies."""


def find_possible_proxies(connections: Iterable[pa.RecordBatch]) -> PossibleProxies:
    """`connections`: rows with COLUMNS. Empty in most captures without a proxy."""
    legs: set[tuple[Endpoint, str, str | None]] = set()
    for batch in connections:
        spoke = filter_rows(batch, whole_numbers(batch["calls"], null=0) > 0)
        for address, port, host, client_id, caller in (
            Groups(spoke, COLUMNS[:-1]).labels() if len(spoke) else ()
        ):
            if caller not in OF_SERVERS:
                legs.add(((address, port), host, client_id))
        if len(legs) > _MOST:
            return PossibleProxies(frozenset(), frozenset())
    found = [*_with_one_address(legs), *_with_one_client_id(legs)]
    return PossibleProxies(frozenset(endpoint for endpoint, _ in found), frozenset(host for _, host in found))


def _with_one_address(legs: Iterable[tuple[Endpoint, str, str | None]]) -> Iterable[tuple[Endpoint, str]]:
    """Brokers whose address is that of a client of another broker."""
    reached = defaultdict(set)
    for endpoint, host, _ in legs:
        reached[host].add(endpoint)
    endpoints = {endpoint for endpoint, _, _ in legs}
    return [
        (endpoint, endpoint[0]) for endpoint in endpoints if reached.get(endpoint[0], {endpoint}) - {endpoint}
    ]


def _with_one_client_id(legs: Iterable[tuple[Endpoint, str, str | None]]) -> Iterable[tuple[Endpoint, str]]:
    """Brokers with a client id that another host uses at another broker."""
    users = defaultdict(set)
    for endpoint, host, client_id in legs:
        if client_id:
            users[client_id].add((endpoint, host))
    found = []
    for each in users.values():
        hosts = {host for _, host in each}
        if len(hosts) > 1 and len({endpoint for endpoint, _ in each}) > 1:
            found += [(endpoint, host) for endpoint in {endpoint for endpoint, _ in each} for host in hosts]
    return found
