"""`estragon train scene`: train the agents of a SpaceTime scene with the scene's own rewards."""

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from estragon.spacetime.config import PORT
from estragon.spacetime.scenes import MOST_ISLANDS, PRESETS, SceneName, ScenePreset
from estragon.support.files import ensure_writable
from estragon.support.options import check_span, optional


@dataclasses.dataclass(frozen=True)
class TrainSceneCommand:
    """Train the agents of a SpaceTime scene with PPO.

    Writes models/<experiment_name>_step_<N>.zip, _final.zip and _final.onnx, and
    logs/<experiment_name>, in the output folder.
    """

    preset: SceneName = "vr_locomotion"
    """The scene, and how it is trained unless other options say so."""
    timesteps: Annotated[int | None, optional("N")] = None
    """Steps of all agents together."""
    num_envs: Annotated[int | None, optional("N")] = None
    """Islands side by side in one game, at most 64; each has one agent, or several."""
    save_frequency: int = 10_000
    """Steps between checkpoints."""
    resume: Annotated[Path | None, optional("CHECKPOINT")] = None
    """Continue from a checkpoint until all steps are done."""
    experiment_name: Annotated[str | None, optional("NAME")] = None
    """Name of the files; default: that of the preset and _v1."""
    viz: bool = False
    """Show the game."""
    scene: Annotated[str | None, optional("SCENE")] = None
    """Another scene."""
    task: Annotated[str | None, optional("NAME")] = None
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
        chosen = self._chosen()
        name = self.experiment_name or f"{self.preset}_v1"
        check_span("--timesteps", chosen.timesteps, 1)
        check_span("--num_envs", chosen.num_envs, 1, MOST_ISLANDS)
        check_span("--seed", self.seed, 0, 2**31 - 1)
        check_span("--save_frequency", self.save_frequency, 1)
        models = self.output / "models"
        final = models / f"{name}_final.zip"
        ensure_writable(final)
        from estragon.support import paths
        from estragon.trainers.sb3.settings import Sb3Hyperparameters, Sb3Settings
        from estragon.trainers.sb3.training import Additions, resumed, train

        parameters = {"rigs": chosen.num_envs} | ({"task": chosen.task} if chosen.task else {})
        settings = Sb3Settings(
            env_path=str(paths.godot_project()),
            scene=chosen.scene,
            viz=self.viz,
            arguments={f"parameter.{key}": value for key, value in parameters.items()},
            timesteps=chosen.timesteps,
            experiment_dir=self.output / "logs",
            experiment_name=name,
            seed=self.seed,
            save_checkpoint_frequency=self.save_frequency,
            save_model_path=final,
            onnx_export_path=final.with_suffix(".onnx"),
            inline_parameters=chosen.plan,
            normalize=chosen.normalize,
            policy_layers=chosen.policy_layers,
            linear_lr_schedule=chosen.linear_lr_schedule,
            hyperparameters=Sb3Hyperparameters(
                n_steps=max(chosen.rollout // chosen.num_envs, 16),
                **{"n_epochs": 10, **chosen.hyperparameters},
            ),
        )
        if self.resume is not None:
            settings = resumed(settings, self.resume)
        additions = Additions(
            checkpoint_path=lambda steps: models / f"{name}_step_{steps}.zip",
            resume_flag="--resume",
        )
        with self._api(chosen.scene, parameters) if self.api else contextlib.nullcontext():
            if self.api:
                settings = dataclasses.replace(
                    settings, env_path=None, scene=None, wire="http", port=self.port
                )
            return train(settings, additions=additions)

    def _chosen(self) -> ScenePreset:
        given = {name: getattr(self, name) for name in ("scene", "task", "timesteps", "num_envs")}
        known = {name: value for name, value in given.items() if value is not None}
        return dataclasses.replace(PRESETS[self.preset], **known)

    @contextlib.contextmanager
    def _api(self, scene: str, parameters: Mapping[str, object]) -> Iterator[None]:
        """Check that a game answers, or start one; load the scene, and print how fast it is."""
        from estragon.spacetime.client import GodotAPIClient
        from estragon.spacetime.serve import running_scene, wait_until_loaded

        with contextlib.ExitStack() as opened:
            client = opened.enter_context(GodotAPIClient(self.port))
            if client.health_check():
                print(f"[API] a game answers on port {self.port}")
                client.load_scene(scene)
                wait_until_loaded(client)
            else:
                print(f"[API] no game answers on port {self.port}: starting one")
                client, _ = opened.enter_context(
                    running_scene(scene, self.port, window=self.viz, parameters=parameters)
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
