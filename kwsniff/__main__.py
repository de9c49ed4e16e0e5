"""`python -m kwsniff` is `kwsniff`."""

import sys

from kwsniff.cli.main import run

if __name__ == "__main__":
    sys.exit(run())
