"""The benchmark: `python -m tests.perf [--quick] [--size MB]`.

It makes its own captures, runs kwsniff and tshark on them in turn on the same machine, and prints ratios.
Nothing here decides whether a test passes, except that the counts of calls must be those of the script.
"""
