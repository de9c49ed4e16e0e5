"""`python -m tests.faults [--only N ...] [--list] [--unnoticed] [--jobs N] [--forget]`

Builds a copy of the checkout with every fault in it, turns on one after the other and says whether a test
noticed. A test counts that fails with the fault and passes without. The score goes to tests/faults/score.tsv.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from tests.faults.copy import build_copy, forget_copy
from tests.faults.listing import Fault, find_stale, load_faults
from tests.faults.run import Outcome, try_fault
from tests.faults.score import read_score, summarize, write_score


def run(arguments: Sequence[str] | None = None) -> int:
    """0: every fault was noticed; 1: some were not; 2: nothing could be said of some, or of none."""
    options = _options().parse_args(arguments)
    faults = load_faults()
    chosen = _chosen(faults, options)
    if options.list:
        for fault in chosen:
            print(f"{fault.number:4}  {fault.file}  {fault.changes}")
        return 0
    stale = find_stale(faults)
    if stale:
        print("stale: mend their texts first", *stale, sep="\n  ", file=sys.stderr)
        return 2
    build_copy(faults)
    outcomes = dict(read_score())
    unclear = 0
    for outcome in _outcomes(chosen, options.jobs):
        if isinstance(outcome, RuntimeError):
            unclear += 1
            print(outcome, file=sys.stderr)
            continue
        print(outcome.line(), flush=True)
        outcomes[outcome.number] = outcome
        write_score(faults, outcomes)
    if options.forget:
        forget_copy()
    print(summarize(faults, outcomes))
    if unclear:
        return 2
    return int(any(not outcomes[fault.number].is_noticed for fault in chosen))


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.faults", description=__doc__)
    parser.add_argument("--only", type=int, nargs="+", metavar="N", help="these faults")
    parser.add_argument("--list", action="store_true", help="list the faults and stop")
    parser.add_argument(
        "--unnoticed", action="store_true", help="those that the score has as unnoticed, or has not"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many at a time (default: 1)")
    parser.add_argument("--forget", action="store_true", help="remove the copy when done")
    return parser


def _chosen(faults: Sequence[Fault], options: argparse.Namespace) -> list[Fault]:
    chosen = [fault for fault in faults if not options.only or fault.number in options.only]
    if options.unnoticed:
        noticed = {number for number, outcome in read_score().items() if outcome.is_noticed}
        chosen = [fault for fault in chosen if fault.number not in noticed]
    return chosen


def _outcomes(faults: Sequence[Fault], jobs: int) -> Iterator[Outcome | RuntimeError]:
    with ThreadPoolExecutor(jobs) as pool:
        for done in as_completed([pool.submit(try_fault, fault) for fault in faults]):
            error = done.exception()
            if error is not None and not isinstance(error, RuntimeError):
                raise error
            yield error or done.result()


if __name__ == "__main__":
    sys.exit(run())
