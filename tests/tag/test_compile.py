"""The kernels' cache: one folder for exactly these sources, and old ones are forgotten."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest


def compile_in(home: Path) -> float:
    """Import the engine and play a step with this cache; returns the seconds it took."""
    start = time.monotonic()
    script = (
        "import numpy\n"
        "from estragon.tag.arenas import Arenas\n"
        "arenas = Arenas(2)\n"
        "arenas.reset()\n"
        "arenas.step(numpy.zeros((2, 2, 3), dtype=numpy.float32))\n"
    )
    subprocess.run(
        [sys.executable, "-c", script], check=True, env=os.environ | {"ESTRAGON_HOME": str(home)}
    )
    return time.monotonic() - start


@pytest.mark.prove
def test_kernels_are_compiled_once_and_unused_caches_go(tmp_path: Path) -> None:
    old = tmp_path / "numba" / "0123456789abcdef"
    old.mkdir(parents=True)
    long_ago = time.time() - 40 * 24 * 3600
    os.utime(old, (long_ago, long_ago))
    compile_in(tmp_path)
    caches = list((tmp_path / "numba").iterdir())
    assert len(caches) == 1
    assert caches[0] != old
    compiled = sorted(path.name for path in caches[0].rglob("*.nbc"))
    assert any("_step_span" in name for name in compiled)
    compile_in(tmp_path)
    assert sorted(path.name for path in caches[0].rglob("*.nbc")) == compiled


@pytest.mark.prove
def test_without_a_writable_home_it_still_plays(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    compile_in(blocked)
