"""Clients as their requests show them configured."""
