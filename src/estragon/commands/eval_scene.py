"""`estragon eval scene`: a trained model plays a SpaceTime scene."""

import dataclasses
from pathlib import Path
from typing import Annotated

from estragon.spacetime.config import SCENE
from estragon.support.options import check_span, optional


@dataclasses.dataclass(frozen=True)
class EvalSceneCommand:
    """Let a trained model play a SpaceTime scene, deterministically, and print every episode."""

    episodes: int = 10
    """Number of episodes."""
    model: Path = Path("rl_training/models/vr_locomotion_v1_final.zip")
    """A model (.zip)."""
    scene: str = SCENE
    """The scene."""
    task: Annotated[str | None, optional("NAME")] = "course"
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

        settings = Sb3Settings(
            env_path=str(paths.godot_project()),
            scene=self.scene,
            viz=self.viz,
            arguments={"parameter.rigs": 1} | ({"parameter.task": self.task} if self.task else {}),
            seed=self.seed,
            inference=True,
        )
        found = play_model(settings, self.model, self.episodes)
        for number, (reward, steps) in enumerate(
            zip(found.rewards, found.lengths, strict=True), start=1
        ):
            print(f"[Episode {number}] Finished: Reward={reward:.2f}, Steps={steps}")
        print(found.summary())
        return 0
