"""The process of a session: runs one `estragon` command, outlives the controller, and leaves word.

Started as `python -m estragon.controller.detached FOLDER WORDS…`. While it runs it holds the lock
in FOLDER, so that any controller can tell that it lives; at its end it writes its exit code.
"""

import os
import runpy
import sys
from pathlib import Path

from estragon.support.files import locked, write_json, write_whole

LOCK, PID, EXIT = "lock", "pid", "exit.json"
LOCK_TIMEOUT_SEC = 10.0


def main(folder: Path, words: list[str]) -> int:
    """Run the command."""
    with locked(folder / LOCK, timeout_sec=LOCK_TIMEOUT_SEC):
        write_whole(folder / PID, str(os.getpid()).encode())
        sys.argv = ["estragon", *words]
        code = 1
        try:
            runpy.run_module("estragon", run_name="__main__", alter_sys=True)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        finally:
            write_json(folder / EXIT, {"code": code})
        return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
