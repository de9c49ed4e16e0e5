"""Planted faults: small changes of the package that some test must notice.

`lists/*.toml` lists them: a file, a text that it has once, what stands there instead, and what that
changes. All of them are built into one copy of the checkout, each behind a switch. `python -m tests.faults`
turns on one after the other, runs the tests named beside it and writes `score.tsv`. It runs on demand: a
round takes as long as the tests do.
"""
