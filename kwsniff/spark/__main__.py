"""`python -m kwsniff.spark INPUT... -o DIR`, and the job for spark-submit: the verb `kwsniff pipeline`."""

import sys

from kwsniff.cli.main import run

if __name__ == "__main__":
    sys.exit(run(["pipeline", *sys.argv[1:]]))
