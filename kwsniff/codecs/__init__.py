"""Decompression of record batches, bounded."""
