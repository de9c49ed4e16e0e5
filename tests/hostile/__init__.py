"""Trying to break the compiled core: mutated captures, messages, programs and record sets, and what must still hold.

    python -m tests.hostile.fuzz               the targets against the built core, every input flush against memory's end
    python -m tests.hostile.sanitize           the same against a core built with AddressSanitizer and UBSan

Everything is seeded: a target, a seed and a number of executions name a run exactly. What once broke something
stands in crashes/ with the test that keeps it mended.
"""
