"""`estragon train tag` as a process of its own, small enough for a test."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tests.selfplay.staging import short_rules

OPTIONS = ["--rules-file", "rules.json", "--layout", "four_corners", "--seed", "5"]
OPTIONS += ["--steps", "20000", "--arenas", "64", "--horizon", "8", "--minibatch", "256"]
OPTIONS += ["--hidden", "16", "--past", "0.3", "--opening", "0"]
OPTIONS += ["--sparring", "0.2", "--no-film"]
"""25 updates of 800 steps: every stage falls on an update of its own."""
SCRIPT = """
import sys
from functools import partial
from estragon.cli import main
from estragon.selfplay import evaluation, session, trainer
from estragon.show.charts import draw
every_chart = draw.all_charts
draw.all_charts = lambda runs, axis: every_chart(runs, axis)[:4]
draw.occupancy_of_run = partial(draw.occupancy_of_run, matches=16)
session.CHECKPOINT_EVERY_SEC = 0.2
session.StageEvaluator = partial(evaluation.StageEvaluator, matches=16)
evaluation.BEST_RESPONSE_MATCHES = 32
sys.exit(main(["train", "tag", *sys.argv[1:]]))
"""
COMMAND = [sys.executable, "-c", SCRIPT]
"""The command with a checkpoint several times a second, few matches and charts."""
LIMITED = f"""
import resource, sys
limit = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
{SCRIPT}"""
LIMITED_COMMAND = [sys.executable, "-c", LIMITED]
"""The same where no file may grow beyond the bytes that the first word says, as on a full disk."""


def prepared(root: Path, seconds: float = 0.5) -> Path:
    """A folder with rules for short matches."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "rules.json").write_bytes(msgspec.json.encode(short_rules(seconds=seconds)))
    return root


@contextlib.contextmanager
def two_cores() -> Iterator[None]:
    """Processes begun here see two cores at most."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(before)[:2]))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def start(command: list[str], root: Path, *words: str) -> "subprocess.Popen[str]":
    """Begin a command in a folder."""
    with two_cores():
        return subprocess.Popen(
            [*command, *words],
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def finish(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """Wait for its end: exit code, standard output, standard error."""
    try:
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    return process.returncode, out, err


def wait_for(process: "subprocess.Popen[str]", beginning: str) -> None:
    """Until it tells a line that begins so."""
    assert process.stderr is not None
    told = []
    for line in process.stderr:
        told.append(line)
        if line.startswith(beginning):
            return
    raise AssertionError(f"it ended without '{beginning}': {told}")
