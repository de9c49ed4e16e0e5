"""Captures without names: names replaced by others of the same length, what is not understood by zeros."""
