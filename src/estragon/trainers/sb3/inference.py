"""A trained model at play."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from estragon.support.interrupts import STOP_SIGNALS, deferred_interrupts
from estragon.support.progress import Progress
from estragon.trainers.controller import Controller
from estragon.trainers.metrics import Episodes
from estragon.trainers.sb3.games import open_games
from estragon.trainers.sb3.learner import Learner
from estragon.trainers.sb3.model_file import ModelFile

if TYPE_CHECKING:
    from estragon.trainers.sb3.settings import Sb3Settings


def play(options: "Sb3Settings", model_path: Path) -> int:
    """Play for `timesteps` of all agents, each time what the model thinks best, and tell of it."""
    source = ModelFile(model_path, options.algo)
    controller = Controller()
    controller.forget_stop()
    episodes = Episodes()
    with contextlib.closing(open_games(options, None, source.steps)) as games:
        learner = Learner.resumed(options, source, games)
        if learner.scaling is not None:
            learner.scaling.training = False
        player = _Player(learner)
        with (
            Progress() as progress,
            deferred_interrupts(progress.say, STOP_SIGNALS) as request,
        ):
            progress.step("playing", announced=False)
            for step in range(0, options.timesteps, games.num_envs):
                for info in player.step():
                    episodes.add(info["episode"]["r"], info["episode"]["l"], info)
                progress.update(step + games.num_envs, options.timesteps, " steps")
                if request.made or controller.asks_to_stop():
                    break
        if options.onnx_export_path is not None:
            from estragon.trainers.sb3.onnx_export import export

            export(
                learner.model,
                learner.algorithm.name,
                options.onnx_export_path,
                scales=learner.scales,
            )
            print(f"onnx saved to {options.onnx_export_path}")
    print(episodes.summary())
    return 0


class _Player:
    """A model that decides, with its memory and what it may choose."""

    def __init__(self, learner: Learner) -> None:
        env = learner.env
        self._model: Any = learner.model
        self._env = env
        self._masked = False
        if learner.algorithm.name == "maskable_ppo":
            from sb3_contrib.common.maskable.utils import is_masking_supported

            self._masked = is_masking_supported(env)
        self._seen: Any = env.reset()
        self._memory: Any = None
        self._starts = np.ones(env.num_envs, bool)

    def step(self) -> list[dict[str, Any]]:
        """One step of all agents; the infos of episodes that ended."""
        more: dict[str, Any] = {}
        if self._masked:
            more["action_masks"] = np.stack(self._env.env_method("action_masks"))
        actions, self._memory = self._model.predict(
            self._seen, self._memory, self._starts, deterministic=True, **more
        )
        self._seen, _, self._starts, infos = self._env.step(actions)
        return [infos[seat] for seat in self._starts.nonzero()[0]]
