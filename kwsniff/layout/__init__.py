"""Layout text to programs: the protocol as data."""
