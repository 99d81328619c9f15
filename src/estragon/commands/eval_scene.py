"""`estragon eval scene`: a trained model plays a SpaceTime scene."""

import dataclasses
from pathlib import Path
from typing import Annotated

from estragon.spacetime.scenes import PRESETS, SceneName
from estragon.support.options import check_span, optional


@dataclasses.dataclass(frozen=True)
class EvalSceneCommand:
    """Let a trained model play a SpaceTime scene, deterministically, and print every episode."""

    episodes: int = 10
    """Number of episodes."""
    preset: SceneName = "vr_locomotion"
    """The scene, as in `estragon train scene`."""
    model: Annotated[Path | None, optional("FILE")] = None
    """A model (.zip); default: rl_training/models/<preset>_v1_final.zip."""
    scene: Annotated[str | None, optional("SCENE")] = None
    """Another scene."""
    task: Annotated[str | None, optional("NAME")] = None
    """The scene's parameter `task`."""
    viz: bool = False
    """Show the game."""
    seed: int = 1_000_000_007
    """Seed of the game; by default episodes that no training has seen."""

    def run(self) -> int:
        """Play."""
        check_span("--episodes", self.episodes, 1)
        from estragon.support import paths
        from estragon.trainers.sb3.evaluating import play_model
        from estragon.trainers.sb3.settings import Sb3Settings

        preset = PRESETS[self.preset]
        task = self.task or preset.task
        model = self.model or Path("rl_training/models") / f"{self.preset}_v1_final.zip"
        settings = Sb3Settings(
            env_path=str(paths.godot_project()),
            scene=self.scene or preset.scene,
            viz=self.viz,
            arguments={"parameter.rigs": 1} | ({"parameter.task": task} if task else {}),
            seed=self.seed,
            inference=True,
        )
        found = play_model(settings, model, self.episodes)
        for number, (reward, steps) in enumerate(
            zip(found.rewards, found.lengths, strict=True), start=1
        ):
            print(f"[Episode {number}] Finished: Reward={reward:.2f}, Steps={steps}")
        print(found.summary())
        return 0
