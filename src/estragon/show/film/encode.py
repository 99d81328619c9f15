"""A film put together: every frame composed, in order, into one MP4."""

from collections.abc import Callable
from pathlib import Path

from estragon.show.film.compose import Composer, Film
from estragon.show.film.plan import Moment, moments
from estragon.show.film.workers import in_order, workers
from estragon.show.frames.encode import Mp4Writer

_composer: Composer


def encode_film(film: Film, path: Path, tell: Callable[[int, int], None]) -> int:
    """Write the film whole; returns its number of frames.

    Args:
        film: all drawn frames of its scenes must be there.
        path: the MP4.
        tell: hears how many frames are written, and of how many.
    """
    size, fps = film.quality
    for scene in film.scenes:
        scene.shot.check(size)
    frames = moments(film.scenes, fps)
    with workers(_prepare, film) as pool, Mp4Writer(path, size, fps) as writer:
        for done, pixels in enumerate(in_order(pool, _compose, frames), start=1):
            writer.add_pixels(pixels)
            tell(done, len(frames))
    return len(frames)


def _prepare(film: Film) -> None:
    global _composer  # noqa: PLW0603 - one a worker
    _composer = Composer(film)


def _compose(moment: Moment) -> bytes:
    return _composer.compose(moment).tobytes()
