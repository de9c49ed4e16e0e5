"""`python -m kwsniff` is `kwsniff`."""

from kwsniff.cli.main import main

if __name__ == "__main__":
    main()
