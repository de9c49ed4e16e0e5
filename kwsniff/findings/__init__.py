"""Findings: rules over tables that say what is wrong, who has to act, and which calls prove it."""
