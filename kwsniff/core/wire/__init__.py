"""The decoder: programs run over bytes, record sets, and the facts that a message holds."""
