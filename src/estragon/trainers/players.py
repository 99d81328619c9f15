"""Any model as a player of a game: an SB3 model, an RLlib checkpoint, an ONNX file, or chance."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecMonitor

from estragon.envs.parameter_feed import ParameterFeed
from estragon.envs.pettingzoo_env import policy_of
from estragon.envs.pool import PoolProperties
from estragon.onnx.compare import OnnxRuntime
from estragon.onnx.torch_export import OUTPUT, STATE_IN, STATE_OUT
from estragon.support.errors import UserError
from estragon.support.files import read_json
from estragon.support.parameters import Plan
from estragon.trainers.metrics import EndedEpisode
from estragon.trainers.run import MANIFEST
from estragon.trainers.sb3.learner import Sb3Adapter
from estragon.trainers.sb3.model_file import ModelFile
from estragon.trainers.sb3.settings import Sb3Settings
from estragon.trainers.sb3.training import Sb3Player, ended_episodes, open_games

RANDOM = "random"


@dataclasses.dataclass(frozen=True)
class OpenPlayer:
    """A player in its games."""

    num_agents: int
    step: Callable[[], list[EndedEpisode]]
    """One step of all agents; returns the episodes that ended, `episode.agent` in the info says
    whose."""
    games: PoolProperties
    """What the games say about themselves."""

    @property
    def feed(self) -> ParameterFeed:
        """The parameters of the games, if it was opened with some."""
        if self.games.parameter_feed is None:
            raise ValueError("the games were opened without parameters")
        return self.games.parameter_feed


@contextlib.contextmanager
def open_player(
    model: str, settings: Sb3Settings, plan: Plan | None = None
) -> Iterator[OpenPlayer]:
    """Start the games of a model, and set parameters if any; the same seed, the same episodes."""
    path = Path(model).expanduser()
    if model != RANDOM and path.is_dir() and not (path / "model.zip").exists():
        with _open_rllib(path, settings, plan) as player:
            yield player
        return
    source = None
    if model != RANDOM and path.suffix != ".onnx":
        path = path / "model.zip" if path.is_dir() else path
        source = ModelFile(path, settings.algo, trust=settings.trust)
    with contextlib.closing(open_games(settings, None, plan=plan)) as games:
        unwrapped: Any = games.unwrapped
        if source is not None:
            learner = Sb3Adapter.resumed(settings, source, games)
            learner.env.seed(settings.seed)
            yield OpenPlayer(games.num_envs, Sb3Player(learner).step, unwrapped)
        else:
            games.seed(settings.seed)
            act = random_actions(games, settings.seed) if model == RANDOM else OnnxPolicy(path)
            yield OpenPlayer(games.num_envs, _steps(games, act), unwrapped)


def game_settings(
    model: str,
    game: str | None = None,
    *,
    scene: str | None = None,
    action_repeat: int | None = None,
    **more: Any,
) -> Sb3Settings:
    """The settings to play a model; what is not given is that of the model's run."""
    given: dict[str, Any] = {"env_path": game, "scene": scene, "action_repeat": action_repeat}
    run = game_of_run(model)
    known: dict[str, Any] = {
        key: run.get(key) if value is None else value for key, value in given.items()
    }
    if known["env_path"] is None:
        raise UserError(f"{model} does not lie in a run's folder; give --game")
    if game is None:
        known["arguments"] = dict(run.get("arguments") or {})
    settings = Sb3Settings(**known, **more, inference=True, resume_model_path=Path(model))
    settings.check()
    return settings


def game_of_run(model: str) -> dict[str, Any]:
    """The options of the run that a model is from; empty if it does not lie in a run's folder."""
    path = Path(model).expanduser().absolute()
    for folder in (path, *path.parents[:2]):
        if (folder / MANIFEST).is_file():
            options: dict[str, Any] = read_json(folder / MANIFEST, dict[str, Any])["options"]
            return options
    return {}


@contextlib.contextmanager
def _open_rllib(path: Path, settings: Sb3Settings, plan: Plan | None) -> Iterator[OpenPlayer]:
    from estragon.trainers.rllib.checkpoint import Checkpoint
    from estragon.trainers.rllib.env import GameEnv
    from estragon.trainers.rllib.ray_session import be_quiet
    from estragon.trainers.rllib.training import RllibPlayer, check_roles, load_policies

    be_quiet()
    source = Checkpoint.find(path)
    policies = load_policies(source, trust=settings.trust)
    mapping = policy_of if len(policies) > 1 else lambda *_, **__: next(iter(policies))
    game = settings.game_options() | {"seed": settings.seed, "parameters": plan}
    with contextlib.closing(GameEnv(game)) as env:
        check_roles(source, env.roles(mapping))
        player = RllibPlayer(policies, env, mapping, seed=settings.seed)
        yield OpenPlayer(player.num_agents, lambda: [ended for _, ended in player.step()], env)


Act = Callable[[dict[str, np.ndarray], spaces.Space[Any], np.ndarray], np.ndarray]
"""Observations of all agents, an agent's action space, and who begins an episode → actions."""


def random_actions(games: VecMonitor, seed: int) -> Act:
    """Actions drawn from the game's action space."""
    games.action_space.seed(seed)
    return lambda _, space, begins: np.array([space.sample() for _ in begins])


class OnnxPolicy:
    """An ONNX file as games run it: deterministic, with a state of its own for each agent."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise UserError(f"{path} does not exist")
        self._path, self._runtime = path, OnnxRuntime()
        self._runtime.load(path)
        self._state: np.ndarray | None = None
        self.fed: list[dict[str, np.ndarray]] | None = None
        """If it is a list, the inputs of every decision are added to it."""

    def __call__(
        self, observed: dict[str, np.ndarray], does: spaces.Space[Any] | None, begins: np.ndarray
    ) -> np.ndarray:
        """The action of every agent; without an action space, continuous ones."""
        inputs = self.feed(observed, begins)
        if self.fed is not None:
            self.fed.append(inputs)
        return self.decode(self.said(inputs), does)

    def feed(self, observed: dict[str, np.ndarray], begins: np.ndarray) -> dict[str, np.ndarray]:
        """The file's inputs; where an episode begins, with an empty memory."""
        batch = len(begins)
        if self._state is not None:
            self._state[begins] = 0.0
        inputs = {}
        for port in self._runtime.inputs:
            if port.name == STATE_IN:
                widths = [size for size in port.shape[1:] if isinstance(size, int)]
                fresh = np.zeros((batch, *widths), np.float32)
                inputs[port.name] = fresh if self._state is None else self._state
            elif port.name in observed:
                inputs[port.name] = _as_sent(observed[port.name])
            elif port.name == "obs":
                parts = [_as_sent(part).reshape(batch, -1) for part in observed.values()]
                inputs[port.name] = np.concatenate(parts, axis=1)
            else:
                inputs[port.name] = np.ones(batch, port.dtype)
        return inputs

    def said(self, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """The outputs that mean actions; the memory is kept for the next decision."""
        outputs = self._runtime.run(inputs)
        if STATE_OUT in outputs:
            self._state = outputs[STATE_OUT].copy()
        return outputs[OUTPUT]

    def decided(self, inputs: Mapping[str, np.ndarray], does: spaces.Space[Any]) -> np.ndarray:
        """Actions for inputs that were given before."""
        return self.decode(self._runtime.run(inputs)[OUTPUT], does)

    def decode(self, output: np.ndarray, does: spaces.Space[Any] | None) -> np.ndarray:
        """The actions that outputs mean."""
        if does is None:
            return np.asarray(np.clip(output, -1.0, 1.0))
        width = output.shape[1]
        if isinstance(does, spaces.Box) and width in (does.shape[0], 2 * does.shape[0]):
            clipped: np.ndarray = np.clip(output[:, : does.shape[0]], does.low, does.high)
            return clipped
        sizes = np.atleast_1d(getattr(does, "nvec", getattr(does, "n", 0))).tolist()
        if width != sum(sizes):
            raise UserError(f"{self._path} is of another game: it has {width} outputs")
        parts = np.split(output, np.cumsum(sizes)[:-1], axis=1)
        chosen = np.stack([part.argmax(axis=1) for part in parts], axis=1)
        return chosen if isinstance(does, spaces.MultiDiscrete) else chosen[:, 0]


def _as_sent(part: np.ndarray) -> np.ndarray:
    """Observations of one key as games give them to a model: images have their channels last."""
    if part.dtype == np.uint8 and part.ndim == 4:
        part = part.transpose(0, 2, 3, 1)
    return part.astype(np.float32).reshape(len(part), *(part.shape[1:] or (1,)))


def _steps(games: VecMonitor, act: Act) -> Callable[[], list[EndedEpisode]]:
    observed: Any = games.reset()
    begins = np.ones(games.num_envs, bool)

    def step() -> list[EndedEpisode]:
        nonlocal observed, begins
        observed, _, begins, infos = games.step(act(observed, games.action_space, begins))
        return ended_episodes(begins, infos)

    return step
