"""A film of how play changed while it was learned: for every stage a card and an eventful match."""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from estragon.show.film.choice import Choice, find_match
from estragon.show.film.compose import Film
from estragon.show.film.encode import encode_film
from estragon.show.film.facts import RunFacts, StageFacts, time_text
from estragon.show.film.plan import Quality, Scene, match_times
from estragon.show.film.renderers import Renderer
from estragon.show.film.shots import Shot
from estragon.show.film.work import ensure_room, key_of, work_folder
from estragon.show.trajectories.trajectory import Trajectory, read_trajectory, records_of
from estragon.support.errors import UserError
from estragon.support.files import ensure_writable, write_whole
from estragon.support.progress import Progress
from estragon.tag.layout import Layout
from estragon.tag.matches import Player
from estragon.tag.rules import Rules


class Stage(NamedTuple):
    """Two players of some moment in training, and what is known of them."""

    facts: StageFacts
    seeker: Player
    hider: Player


@dataclass(frozen=True)
class Script:
    """What a film is to show, and how."""

    run: RunFacts
    stages: Sequence[Stage]
    policies: str
    """A digest of everybody who plays."""
    rules: Rules
    layouts: Sequence[Layout]
    quality: Quality
    renderer: Renderer

    def key(self) -> str:
        """The same for the same film."""
        game = [self.rules, list(self.layouts), self.run, self.policies, self.quality]
        look = [self.renderer.name, self.renderer.fingerprint()]
        return key_of(msgspec.json.encode([*game, *look]))


class Made(NamedTuple):
    """What came of it."""

    film_sec: float
    frames: int
    drawn: int
    """Frames that were drawn this time."""
    work: Path
    """The folder of the drawn frames, which is gone unless they were to be kept."""


def make_film(
    script: Script,
    output: Path,
    *,
    folder: Path,
    progress: Progress,
    overwrite: bool = False,
    keep_frames: bool = False,
) -> Made:
    """Make a film, or go on with it where an earlier attempt was stopped.

    Args:
        script: what it shows.
        output: the MP4; written whole, or not at all.
        folder: of the run; the work is done in a folder inside it.
        progress: is told what happens.
        overwrite: whether the output may be there already.
        keep_frames: whether the drawn frames stay when the film is there.
    """
    _refuse_to_overwrite(output, overwrite)
    ensure_writable(output)
    with work_folder(folder, script.key()) as work:
        progress.step("choosing matches")
        scenes = _scenes(script, work, _countdown(progress, "stages"))
        shots = [scene.shot for scene in scenes]
        missing = sum(len(shot.missing(script.quality.size)) for shot in shots)
        ensure_room(work, script.quality.size, missing)
        progress.step("drawing", f"{missing} frames, {script.renderer.name}")
        script.renderer.draw(shots, script.quality, _countdown(progress, "frames"))
        film = Film(script.run, tuple(scenes), script.quality)
        progress.step("encoding")
        frames = encode_film(film, work / "film.mp4", _countdown(progress, "frames"))
        _refuse_to_overwrite(output, overwrite)
        write_whole(output, (work / "film.mp4").read_bytes())
        if not keep_frames:
            shutil.rmtree(work)
    return Made(frames / script.quality.fps, frames, missing, work)


def _refuse_to_overwrite(output: Path, overwrite: bool) -> None:
    if output.exists() and not overwrite:
        raise UserError(f"{output} is there already; say --overwrite, or name another --output")


def _countdown(progress: Progress, unit: str) -> Callable[[int, int], None]:
    """Tells how far something is, and how long the rest will take at the pace since it began."""
    begun: tuple[float, int] | None = None

    def tell(done: int, total: int) -> None:
        nonlocal begun
        now = time.monotonic()
        if begun is None:
            begun = now, done
        since, first = begun
        left = time_text((total - done) * (now - since) / (done - first)) if done > first else "?"
        progress.update(done, total, f" {unit}, {left} left")

    return tell


def _scenes(script: Script, work: Path, tell: Callable[[int, int], None]) -> list[Scene]:
    """The scenes of a film; matches that were chosen before are not chosen again."""
    chosen = work / "chosen.json"
    if not chosen.is_file():
        choices = []
        for number, stage in enumerate(script.stages):
            choice, match = find_match(
                stage.seeker, stage.hider, rules=script.rules, layouts=script.layouts
            )
            lines = (msgspec.json.encode(record) for record in records_of(match))
            write_whole(_match_file(work, number), b"\n".join(lines) + b"\n")
            choices.append(choice)
            tell(number + 1, len(script.stages))
        write_whole(chosen, msgspec.json.encode(choices))
    choices = msgspec.json.decode(chosen.read_bytes(), type=list[Choice])
    return [
        _scene(script, stage.facts, choice, _match_file(work, number), work / f"scene_{number}")
        for number, (stage, choice) in enumerate(zip(script.stages, choices, strict=True))
    ]


def _match_file(work: Path, number: int) -> Path:
    return work / f"match_{number}.jsonl"


def _scene(script: Script, facts: StageFacts, choice: Choice, file: Path, frames: Path) -> Scene:
    match = read_trajectory(file)
    end_sec = float(match.seconds[-1])
    tag_sec = match.tags[-1].tick / match.start.ticks_per_second if match.tags else None
    times = match_times(end_sec, tag_sec, script.quality.fps)
    winner = "" if match.winner < 0 else _role_at_the_end(match, match.winner)
    return Scene(
        facts=facts,
        chosen=chosen_text(choice, script.rules),
        shot=Shot(file, frames, times),
        end_sec=end_sec,
        limit_sec=match.start.time_limit_sec,
        tag_sec=tag_sec,
        verdict=verdict_of(match, script.rules),
        winner=winner,
        ends_above=bool(match.positions[-1, :, 2].mean() < 0.0),
    )


def _role_at_the_end(match: Trajectory, agent: int) -> str:
    return "seeker" if match.is_seeker[-1, agent] else "hider"


def chosen_text(choice: Choice, rules: Rules) -> str:
    """How a match came into the film."""
    who = "the seeker" if rules.rule_set.tag_ends_episode else "the first seeker"
    return f"chosen from {choice.matches} matches; {who} wins {choice.seeker_wins:.0%} of them"


def verdict_of(match: Trajectory, rules: Rules) -> str:
    """How a match ended, in a few words."""
    seconds = float(match.seconds[-1])
    if match.tagged:
        return f"tagged after {seconds:.1f} s"
    if rules.rule_set.tag_ends_episode:
        return f"survived {seconds:g} s"
    tags = len(match.tags)
    return f"{tags} {'tag' if tags == 1 else 'tags'} in {seconds:g} s"
