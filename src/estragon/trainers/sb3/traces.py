"""Episodes as files of actions: what an agent found in a scene can be played again without it."""

import contextlib
import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Self

import msgspec
import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from estragon.support.errors import UserError
from estragon.support.files import read_json, write_json
from estragon.trainers.metrics import Episodes
from estragon.trainers.sb3.settings import Sb3Settings
from estragon.trainers.sb3.training import SEEDS, open_games

Act = Callable[[Any], np.ndarray]
REWARD = "reward"


@dataclasses.dataclass(frozen=True)
class Trace:
    """One episode of one agent: the seed of the game, and all actions."""

    scene: str
    arguments: dict[str, float | str]
    """Of the game."""
    seed: Annotated[int, msgspec.Meta(ge=0, lt=SEEDS)]
    actions: list[list[float]]
    reward: float
    figures: dict[str, float]
    """Of the game's last info."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file."""
        return read_json(path, cls)

    def write(self, path: Path) -> None:
        """Write a file."""
        write_json(path, dataclasses.asdict(self))


def record(settings: Sb3Settings, env: VecEnv, act: Act, episodes: int, figure: str) -> Trace:
    """Play episodes of one agent, each with a seed of its own; the one with the highest figure.

    That one is played once more in a game of its own, as every replay will be: what hundreds of
    bodies do also depends on the episodes before.

    Args:
        settings: of the games.
        env: the games, with one agent.
        act: from observations (1, …) to actions (1, …).
        episodes: how many are played.
        figure: a key of the game's info, or `reward`.
    """
    found = []
    for number in range(episodes):
        seed = (settings.seed + number) % SEEDS
        found.append(_play(settings, env, lambda observed, _: act(observed), seed))
        if figure not in found[-1].figures | {REWARD: 0.0}:
            known = ", ".join([REWARD, *found[-1].figures])
            raise UserError(f"the game's info has no number '{figure}'; use one of {known}")
    best = max(found, key=lambda trace: (trace.figures | {REWARD: trace.reward})[figure])
    return replay(best, settings)


def replay(trace: Trace, settings: Sb3Settings) -> Trace:
    """Play the same actions again; the figures are what happened this time."""
    settings = dataclasses.replace(settings, scene=trace.scene, arguments=trace.arguments)
    with contextlib.closing(open_games(settings, None)) as games:
        space = games.action_space
        # Of one discrete action the shape is empty.
        size = math.prod(space.shape or ())
        if wrong := next((each for each in trace.actions if len(each) != size), None):
            raise UserError(
                f"not a trace of this game: its actions have {size} numbers, not {len(wrong)}"
            )

        def act(_: Any, step: int) -> np.ndarray:
            if step >= len(trace.actions):
                raise UserError(f"the trace ends before its episode, after {step} actions")
            return np.array(trace.actions[step], space.dtype).reshape(1, *(space.shape or ()))

        return _play(settings, games, act, trace.seed)


def _play(
    settings: Sb3Settings, env: VecEnv, act: Callable[[Any, int], np.ndarray], seed: int
) -> Trace:
    env.seed(seed)
    observed: Any = env.reset()
    taken: list[list[float]] = []
    done: np.ndarray = np.zeros(1, bool)
    infos: list[dict[str, Any]] = [{}]
    while not done[0]:
        actions = act(observed, len(taken))
        taken.append([float(value) for value in np.atleast_1d(actions[0])])
        observed, _, done, infos = env.step(actions)
    if "game_lost" in infos[0]:
        raise UserError(f"the game was lost: {infos[0]['game_lost']}")
    ended = Episodes()
    ended.add(float(infos[0]["episode"]["r"]), infos[0]["episode"]["l"], infos[0])
    return Trace(
        scene=settings.scene or "",
        arguments=dict(settings.arguments or {}),
        seed=seed,
        actions=taken,
        reward=ended.reward_mean,
        figures=ended.custom_means(),
    )
