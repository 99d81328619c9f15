"""The film of a training run: for every stage a card and an eventful match."""

import contextlib
import hashlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from estragon import __version__
from estragon.selfplay.checkpoint import TagRun
from estragon.show.charts.draw import draw_charts
from estragon.show.film_overlays import encode_film
from estragon.show.film_plan import Choice, Scene, plan_scene, time_text
from estragon.show.film_renderers import Renderer, Shot, TopDownRenderer
from estragon.show.film_run import FilmedRun, find_match, read_filmed_run
from estragon.show.frames import PARTIAL, QUALITIES, OnProgress, Quality, film_name
from estragon.show.trajectory import encode_trajectory
from estragon.show.trajectory_reader import read_trajectory
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import cannot_write, ensure_writable, locked, write_whole
from estragon.support.progress import Progress

BYTES_PER_PIXEL = 0.3
"""Of a drawn frame as a PNG, at most as far as was seen."""


class Made(NamedTuple):
    """A finished film."""

    film_sec: float
    frames: int
    drawn: int
    """Frames that were drawn this time."""
    work: Path
    """The folder of the drawn frames, removed unless they were to be kept."""


def draw_results(run: TagRun, progress: Progress, *, film: bool) -> tuple[list[Path], Path | None]:
    """Draw the charts of a run and, if asked for, the quick film, which needs no Godot."""
    progress.step("charts")
    charts = draw_charts(run.path, run.root / "charts")
    if not film:
        return charts, None
    output = film_name(run.root)
    make_film(
        read_filmed_run(run),
        output,
        quality=QUALITIES["low"],
        renderer=TopDownRenderer(),
        folder=run.path,
        progress=progress,
    )
    return charts, output


def make_film(
    run: FilmedRun,
    output: Path,
    *,
    quality: Quality,
    renderer: Renderer,
    folder: Path,
    progress: Progress,
    overwrite: bool = False,
    keep_frames: bool = False,
) -> Made:
    """Make a film, or resume one that was interrupted.

    Args:
        run: what it shows.
        output: the MP4; written whole, or not at all.
        quality: its size and rate.
        renderer: draws the matches.
        folder: of the run; the work is done in a folder inside it.
        progress: is told what happens.
        overwrite: whether to replace an existing output.
        keep_frames: whether the drawn frames stay when the film is finished.
    """
    _check_output(output, overwrite)
    ensure_writable(output)
    with _work_folder(folder, film_key(run, quality, renderer)) as work:
        progress.step("choosing matches")
        scenes = _scenes(run, quality, work, _time_left(progress, "stages"))
        shots = [scene.shot for scene in scenes]
        missing = sum(len(shot.missing(quality.size)) for shot in shots)
        _check_disk(work, quality.size, missing)
        progress.step("drawing", f"{missing} frames, {renderer.name}")
        renderer.draw(shots, quality, _time_left(progress, "frames"))
        progress.step("encoding")
        film = work / "film.mp4"
        frames = encode_film(run.facts, scenes, quality, film, _time_left(progress, "frames"))
        _check_output(output, overwrite)
        write_whole(output, film.read_bytes())
        if not keep_frames:
            shutil.rmtree(work)
    return Made(frames / quality.fps, frames, missing, work)


def film_key(run: FilmedRun, quality: Quality, renderer: Renderer) -> str:
    """A name that depends on everything a film's frames depend on, this program included."""
    digest = hashlib.sha256(__version__.encode())
    for room in ("show", "tag"):
        for path in sorted((paths.PACKAGE / room).rglob("*.py")):
            digest.update(path.read_bytes())
    game = [run.rules, list(run.layouts), run.facts, run.policies, quality]
    digest.update(msgspec.json.encode([*game, renderer.name, renderer.fingerprint()]))
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def _work_folder(run: Path, key: str) -> Iterator[Path]:
    """The folder of the film with this key, for one process at a time.

    What a killed process was writing is removed, and everything complete is kept.
    """
    folder = run / "film" / key
    with locked(run / "film" / "lock", timeout_sec=0.0):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for path in folder.rglob("*"):
                if path.name.startswith(".") or path.name.endswith(PARTIAL):
                    path.unlink()
        except OSError as error:
            raise cannot_write(folder, error) from error
        yield folder


def _check_output(output: Path, overwrite: bool) -> None:
    if output.exists() and not overwrite:
        raise UserError(f"{output} already exists; use --overwrite, or another --output")


def _check_disk(folder: Path, size: tuple[int, int], frames: int) -> None:
    needed = BYTES_PER_PIXEL * size[0] * size[1] * frames
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise UserError(
            f"{folder}: {frames} frames need up to {needed / 1e9:.1f} GB, and only "
            f"{free / 1e9:.1f} GB are free; free some space, or use --quality low"
        )


def _time_left(progress: Progress, unit: str) -> OnProgress:
    """Reports how far a step is, and the time left at the pace since it began."""
    begun: tuple[float, int] | None = None

    def report(done: int, total: int) -> None:
        nonlocal begun
        now = time.monotonic()
        if begun is None:
            begun = now, done
        since, first = begun
        left = time_text((total - done) * (now - since) / (done - first)) if done > first else "?"
        progress.update(done, total, f" {unit}, {left} left")

    return report


def _scenes(run: FilmedRun, quality: Quality, work: Path, on_progress: OnProgress) -> list[Scene]:
    """The scenes of a film; matches that were chosen before are not chosen again."""
    chosen = work / "chosen.json"
    files = [work / f"match_{number}.jsonl" for number in range(len(run.stages))]
    if not chosen.is_file():
        found = []
        for (_, seeker, hider), file in zip(run.stages, files, strict=True):
            choice, match = find_match(seeker, hider, rules=run.rules, layouts=run.layouts)
            write_whole(file, encode_trajectory(match))
            found.append(choice)
            on_progress(len(found), len(files))
        write_whole(chosen, msgspec.json.encode(found))
    choices = msgspec.json.decode(chosen.read_bytes(), type=list[Choice])
    return [
        plan_scene(
            read_trajectory(file),
            stage.facts,
            choice,
            Shot(file, work / f"scene_{number}"),
            rules=run.rules,
            fps=quality.fps,
        )
        for number, (stage, choice, file) in enumerate(zip(run.stages, choices, files, strict=True))
    ]
