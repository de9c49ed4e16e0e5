"""Trying to break the compiled core: damaged captures, messages, programs, record sets.

    python -m tests.hostile.fuzz        the targets against the built core, inputs flush against a guard page
    python -m tests.hostile.sanitize    the same against a core built with AddressSanitizer and UBSan

Everything is seeded: a target, a seed and a number of executions name a run exactly. What once broke
something stands in crashes/ with the test that keeps it mended.
"""
