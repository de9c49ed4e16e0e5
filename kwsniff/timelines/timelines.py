"""What is followed over many calls while the rows pass: rebalances and transactions."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kwsniff.layout.catalog import Catalog
from kwsniff.tables.arrays import Bits, valid_rows, whole_numbers
from kwsniff.tables.rows import batch_of
from kwsniff.timelines import rebalances, transactions
from kwsniff.timelines.rebalance import Rebalance
from kwsniff.timelines.rebalances import Group, Rebalances, group_roles
from kwsniff.timelines.transactions import Producer, Transaction, Transactions, transaction_roles

TIMELINES = ("groups", "transactions")
COLUMNS = tuple(dict.fromkeys((*rebalances.COLUMNS, *transactions.COLUMNS)))
"""Columns of api_calls that are looked at."""
STATE_CLASSES = (Group, Rebalance, Producer, Transaction)


def relevant(batch: pa.RecordBatch, catalog: Catalog) -> Bits:
    """Which calls can make a difference to a timeline."""
    keys = whole_numbers(batch["api_key"], null=-1)
    of_groups = np.isin(keys, [*group_roles(catalog)]) & valid_rows(batch["group_id"])
    return of_groups | (np.isin(keys, [*transaction_roles(catalog)]) & valid_rows(batch["transactional_id"]))


class Timelines:
    """Takes batches of api_calls and gives batches of groups and transactions. Memory is bounded."""

    def __init__(self, catalog: Catalog) -> None:
        self.rebalances = Rebalances(catalog)
        error_names = {code: error.name for code, error in catalog.errors.items()}
        self.transactions = Transactions(error_names, catalog)

    def add(self, batch: pa.RecordBatch) -> None:
        """Calls in the order in which they ended."""
        self.rebalances.add(batch)
        self.transactions.add(batch)

    def state(self) -> tuple[Any, ...]:
        """What is followed, of plain values and of STATE_CLASSES; rows have to be taken before."""
        return self.rebalances.state(), self.transactions.state()

    def resume(self, state: tuple[Any, ...]) -> None:
        """Goes on where another stood."""
        groups, producers = state
        self.rebalances.resume(groups)
        self.transactions.resume(producers)

    def finish(self) -> None:
        """No more calls come."""
        self.rebalances.finish()
        self.transactions.finish()

    def take(self, at_least: int) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Table name and rows, for the tables that have so many rows."""
        for table, rows in (("groups", self.rebalances.rows), ("transactions", self.transactions.rows)):
            if len(rows) >= at_least:
                yield table, batch_of(table, rows)
                rows.clear()
