"""Decoded messages for display: trees, hexdumps, JSON."""
