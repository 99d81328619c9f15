"""How the agents of every stage of a run fare against those of every other."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from estragon.support.errors import UserError
from estragon.support.files import read_json

Share = Annotated[float, Meta(ge=0.0, le=1.0)]


class PlayedStage(Struct, frozen=True):
    """A moment of training from which both roles were kept."""

    name: str
    agent_steps: float


class Elo(Struct, frozen=True):
    """Ratings, one a stage."""

    seeker: list[float]
    hider: list[float]


class CrossPlay(Struct, frozen=True):
    """Every seeker against every hider."""

    stages: Annotated[list[PlayedStage], Meta(min_length=1)]
    seeker_win_rate: list[list[Share]]
    """Rows are the seekers by stage, columns the hiders."""
    episodes: int
    """Matches each pair played."""
    elo: Elo


def read_cross_play(path: Path) -> CrossPlay:
    """Read and check the file a run writes at its end."""
    loaded = read_json(path, CrossPlay)
    count = len(loaded.stages)
    rows = loaded.seeker_win_rate
    if [len(row) for row in rows] != [count] * count:
        raise UserError(f"{path}: seeker_win_rate: expected {count} rows of {count}")
    if (len(loaded.elo.seeker), len(loaded.elo.hider)) != (count, count):
        raise UserError(f"{path}: elo: expected {count} ratings a role")
    return loaded
