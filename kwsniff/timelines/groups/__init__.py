"""Consumer groups over time: members, heartbeats, rebalances."""
