"""Findings of recordings, which tests of findings need, too: made once."""

from tests.findings.conftest import findings_of, tables_of

__all__ = ["findings_of", "tables_of"]
