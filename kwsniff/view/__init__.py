"""Tapes for people: trees, hexdumps, JSON."""
