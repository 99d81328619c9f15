"""The film of a training run."""

import time
from pathlib import Path
from typing import Literal

from estragon.selfplay.checkpoint import TagRun
from estragon.show.film.filmed_run import read_run
from estragon.show.film.make import Made, Script, make_film
from estragon.show.film.plan import QUALITIES
from estragon.show.film.renderers import choose_renderer
from estragon.support.progress import Progress


def film_name(folder: Path) -> Path:
    """The name of a film that is begun now."""
    return folder / f"learn_progress-{time.strftime('%Y%m%d-%H%M%S')}.mp4"


def film_run(
    folder: TagRun,
    output: Path,
    progress: Progress,
    *,
    quality: Literal["low", "high"],
    renderer: Literal["auto", "godot", "top-down"],
    overwrite: bool = False,
    keep_frames: bool = False,
) -> Made:
    """Film a run."""
    run = read_run(folder)
    script = Script(
        run=run.facts,
        stages=run.stages,
        policies=run.digest,
        rules=run.task.rules,
        layouts=run.task.layouts,
        quality=QUALITIES[quality],
        renderer=choose_renderer(renderer, progress.say),
    )
    return make_film(
        script,
        output,
        folder=folder.path,
        progress=progress,
        overwrite=overwrite,
        keep_frames=keep_frames,
    )
