"""What a hunt is asked for, and what it has found so far, as written to its folder."""

import dataclasses
from pathlib import Path

import msgspec

from estragon.envs.launch import Launch
from estragon.judge.hunt.user_oracles import UserOracles
from estragon.judge.hunt.usual import Usual

STATE = "hunt.json"


@dataclasses.dataclass(frozen=True)
class HuntSettings:
    """What to hunt, and how."""

    launch: Launch
    output: Path
    minutes: float
    games: int
    explorers: tuple[str, ...]
    model: Path | None
    user: UserOracles

    @property
    def game(self) -> Path:
        """What is played."""
        return Path(str(self.launch.env_path))


class Bug(msgspec.Struct):
    """A bug in the result; details are in its trace."""

    oracle: str
    key: str
    text: str
    place: list[float]
    trace: str
    """File name, relative to the output folder."""
    first_seen: str
    found_sec: float
    explorer: str
    length: int
    first_length: int
    is_short: bool = False
    """Whether its trace was shortened."""


class HuntState(msgspec.Struct):
    """What a hunt has found so far, as written to the output folder."""

    game: str
    scene: str | None
    digest: str
    played_sec: float = 0.0
    steps: int = 0
    cells: int = 0
    returns: int = 0
    returned: int = 0
    """How often Go-Explore returned to a cell, and how often it really was that cell."""
    unconfirmed: dict[str, int] = {}
    """Findings that did not show again in a replay, by signature."""
    explorers: dict[str, dict[str, float]] = {}
    bugs: list[Bug] = []
    usual: Usual = msgspec.field(default_factory=Usual)
    level: float = 1.0
    """The size of the level."""

    @property
    def determinism(self) -> str:
        """What is known about it, in words."""
        if not self.returns:
            return "not tested"
        share = self.returned / self.returns
        warning = "" if share > 0.9 else "; the game is not deterministic: traces may fail"
        return f"{self.returned} of {self.returns} returns led to the same cell{warning}"
