"""State over many calls: rebalances, transactions, and late names of topics."""
