"""`estragon train scene`: train the agents of a SpaceTime scene with the scene's own rewards."""

import contextlib
import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from estragon.spacetime.config import PORT, SCENE
from estragon.support.files import ensure_writable
from estragon.support.options import check_span, optional


@dataclasses.dataclass(frozen=True)
class TrainSceneCommand:
    """Train the agents of a SpaceTime scene with PPO.

    Writes models/<experiment_name>_step_<N>.zip, _final.zip and _final.onnx, and
    logs/<experiment_name>, in the output folder.
    """

    timesteps: int = 100_000
    """Steps of all agents together."""
    num_envs: int = 4
    """Agents that learn side by side in one game."""
    save_frequency: int = 10_000
    """Steps between checkpoints."""
    experiment_name: str = "vr_locomotion_v1"
    """Name of the files."""
    viz: bool = False
    """Show the game."""
    scene: str = SCENE
    """The scene."""
    task: Annotated[str | None, optional("NAME")] = "course"
    """The scene's parameter `task`."""
    output: Path = Path("rl_training")
    """Folder of models and logs."""
    seed: int = 0
    """Seed of the game and of the initial weights."""
    api: bool = False
    """Train over the HTTP API: in the game that answers on --port, with its token in API_TOKEN, or
    in one that is started."""
    port: int = PORT
    """Port of the HTTP API, with --api."""

    def run(self) -> int:
        """Train."""
        for name in ("timesteps", "num_envs", "save_frequency"):
            check_span(f"--{name}", getattr(self, name), 1)
        models = self.output / "models"
        final = models / f"{self.experiment_name}_final.zip"
        ensure_writable(final)
        from estragon.support import paths
        from estragon.trainers.sb3.settings import Sb3Hyperparameters, Sb3Settings
        from estragon.trainers.sb3.training import Additions, train

        settings = Sb3Settings(
            env_path=str(paths.godot_project()),
            scene=self.scene,
            viz=self.viz,
            arguments={f"parameter.{name}": value for name, value in self._parameters().items()},
            timesteps=self.timesteps,
            experiment_dir=self.output / "logs",
            experiment_name=self.experiment_name,
            seed=self.seed,
            save_checkpoint_frequency=self.save_frequency,
            save_model_path=final,
            normalize=True,
            onnx_export_path=final.with_suffix(".onnx"),
            hyperparameters=Sb3Hyperparameters(
                # An update per 2,048 steps of all agents, whatever their number.
                n_steps=max(2048 // self.num_envs, 16),
                n_epochs=10,
                batch_size=256,
                learning_rate=5e-4,
                # With 0.99, arriving sooner is worth more than a vignette costs.
                gamma=0.9999,
                ent_coef=0.0,
            ),
        )
        additions = Additions(
            checkpoint_path=lambda steps: models / f"{self.experiment_name}_step_{steps}.zip"
        )
        with self._api() if self.api else contextlib.nullcontext():
            if self.api:
                settings = dataclasses.replace(
                    settings, env_path=None, scene=None, wire="http", port=self.port
                )
            return train(settings, additions=additions)

    def _parameters(self) -> dict[str, object]:
        return {"rigs": self.num_envs} | ({"task": self.task} if self.task else {})

    @contextlib.contextmanager
    def _api(self) -> Iterator[None]:
        """Check that a game answers, or start one; load the scene, and print how fast it is."""
        from estragon.spacetime.client import GodotAPIClient
        from estragon.spacetime.serve import running_scene, wait_until_loaded

        with contextlib.ExitStack() as opened:
            client = opened.enter_context(GodotAPIClient(self.port))
            if client.health_check():
                print(f"[API] a game answers on port {self.port}")
                client.load_scene(self.scene)
                wait_until_loaded(client)
            else:
                print(f"[API] no game answers on port {self.port}: starting one")
                client, _ = opened.enter_context(
                    running_scene(
                        self.scene, self.port, window=self.viz, parameters=self._parameters()
                    )
                )
                before = os.environ.get("API_TOKEN")
                os.environ["API_TOKEN"] = client.token
                opened.callback(_restore_token, before)
            print(f"[API] initial performance: {client.get_performance_metrics()}")
            yield


def _restore_token(before: str | None) -> None:
    if before is None:
        os.environ.pop("API_TOKEN", None)
    else:
        os.environ["API_TOKEN"] = before
