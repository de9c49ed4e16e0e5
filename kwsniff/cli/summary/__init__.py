"""The summary of an analysis as text."""
