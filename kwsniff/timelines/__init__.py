"""What happened over many calls: rebalances, transactions, and names of topics that come late."""
