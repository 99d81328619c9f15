"""The engine as a program, tested with real processes."""

import sys

if sys.platform == "win32":
    collect_ignore_glob = ["test_*.py"]  # they stage shell scripts and signals
