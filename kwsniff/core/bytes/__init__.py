"""Captured bytes and the memory they are kept in: checked reads, growing buffers, hashes, saved states."""
