"""`python -m estragon` is the `estragon` command."""

import sys

from estragon.cli import main

if __name__ == "__main__":
    sys.exit(main())
