"""Incidents whose cause is known."""
