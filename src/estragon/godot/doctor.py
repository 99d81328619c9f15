"""`estragon godot doctor`: what is missing on this machine to play a match in Godot."""

import dataclasses
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from estragon.godot import find
from estragon.godot.debian import NEEDED_MB
from estragon.godot.display import display, find_xvfb, has_display
from estragon.godot.process import GodotProcess
from estragon.support import paths
from estragon.support.errors import UserError

START_TIMEOUT_SEC = 60.0
PROJECT = {
    "project.godot": 'config_version=5\n\n[application]\n\nrun/main_scene="res://main.tscn"\n',
    "main.tscn": '[gd_scene format=3]\n\n[node name="Main" type="Node"]\n',
}
DEVICE = "Using Device: "


@dataclasses.dataclass(frozen=True)
class Finding:
    """The result of one check."""

    good: bool
    text: str
    needed: bool = True
    """Whether a match cannot be played without it."""

    def __str__(self) -> str:
        """One line of output."""
        mark = "ok" if self.good else "BAD" if self.needed else "note"
        return f"{mark:<5} {self.text}"


def examine() -> Iterator[Finding]:
    """Check everything, starting Godot to do so."""
    try:
        search = find.search_godot()
    except UserError as error:
        yield Finding(good=False, text=str(error))
        return
    for reason in search.skipped:
        yield Finding(good=False, text=f"skipped {reason}", needed=False)
    yield _disk()
    if (godot := search.found) is None:
        yield Finding(good=False, text="no usable Godot 4: run estragon godot install")
        return
    origin = godot.origin
    if origin == "private copy" and (manifest := find.read_manifest(find.engine_folder())):
        origin = f"private copy from {manifest.origin}"
    yield Finding(good=True, text=f"Godot {godot.version} ({origin}): {godot.path}")
    try:
        _run(godot.path, ["--headless"], None)
        yield Finding(good=True, text="headless start")
    except UserError as error:
        yield Finding(good=False, text=f"headless start: {error}")
    yield from _pictures(godot.path)


def _pictures(godot: Path) -> Iterator[Finding]:
    where = "a display"
    if not has_display():
        xvfb = find_xvfb()
        origin = " (private copy)" if xvfb == find.private_program(find.xvfb_folder()) else ""
        where = f"Xvfb{origin}: {xvfb}"
    try:
        with display(640, 360, install=False) as env:
            yield Finding(good=True, text=f"pictures: drawn on {where}")
            said = _run(godot, ["--rendering-driver", "opengl3", "--audio-driver", "Dummy"], env)
    except UserError as error:
        yield Finding(good=False, text=f"pictures: {error}", needed=False)
        return
    devices = [line.partition(DEVICE)[2] for line in said if DEVICE in line]
    renderer = devices[0] if devices else "Godot reported none, so it did not draw"
    yield Finding(good=bool(devices), text=f"GL renderer: {renderer}", needed=False)


def _run(godot: Path, arguments: list[str], env: dict[str, str] | None) -> list[str]:
    """Run an empty project for one frame; returns Godot's output."""
    with tempfile.TemporaryDirectory(prefix="estragon-") as name:
        folder = Path(name)
        for file, text in PROJECT.items():
            (folder / file).write_text(text)
        words = [*arguments, "--path", name, "--quit"]
        advice = "start it by hand to see more; it may be damaged"
        with GodotProcess(words, folder=folder, godot=godot, env=env, advice=advice) as process:
            status = process.wait("an empty project's first frame", START_TIMEOUT_SEC)
            if status != 0:
                raise process.error(f"an empty project ended with status {status}")
            return process.lines()


def _disk() -> Finding:
    place = paths.home()
    while not place.exists():
        place = place.parent
    free_mb = shutil.disk_usage(place).free / 1e6
    text = f"{free_mb:.0f} MB free for {paths.home()}"
    return Finding(free_mb >= NEEDED_MB, text, needed=False)
