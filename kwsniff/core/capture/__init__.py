"""Capture files to TCP segments, and one file read by many."""
