"""`estragon eval scene`: a trained model plays a SpaceTime scene."""

import dataclasses
import math
from pathlib import Path
from typing import Annotated

from estragon.spacetime.scenes import PRESETS, SceneName
from estragon.support.files import ensure_writable
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
    random: bool = False
    """Play with random actions, to compare."""
    trace: Annotated[Path | None, optional("FILE")] = None
    """Write the actions of the best episode to a JSON file."""
    figure: str = "reward"
    """What --trace compares: the reward, or a number of the game's info."""
    replay: Annotated[Path | None, optional("FILE")] = None
    """Play the actions of such a file again instead."""
    viz: bool = False
    """Show the game."""
    seed: int = 1_000_000_007
    """Seed of the game; by default episodes that no training has seen."""

    def run(self) -> int:
        """Play."""
        check_span("--episodes", self.episodes, 1)
        check_span("--seed", self.seed, 0, 2**31 - 1)
        if self.trace is not None:
            ensure_writable(self.trace)
        from estragon.support import paths
        from estragon.trainers.sb3 import evaluating, traces
        from estragon.trainers.sb3.settings import Sb3Settings

        preset = PRESETS[self.preset]
        task = self.task or preset.task
        settings = Sb3Settings(
            env_path=str(paths.godot_project()),
            scene=self.scene or preset.scene,
            viz=self.viz,
            arguments={"parameter.rigs": 1} | ({"parameter.task": task} if task else {}),
            seed=self.seed,
            inference=True,
        )
        if self.replay is not None:
            before = traces.Trace.read(self.replay)
            again = traces.replay(before, settings)
            for key, value in before.figures.items():
                print(f"{key:20} {value:12.3f} {again.figures.get(key, math.nan):12.3f}")
            return 0
        model = self.model or Path("rl_training/models") / f"{self.preset}_v1_final.zip"
        with evaluating.opened(settings, None if self.random else model) as player:
            if self.trace is not None:
                best = traces.record(settings, player.env, player.act, self.episodes, self.figure)
                best.write(self.trace)
                print(
                    f"{self.trace}: seed {best.seed}, {len(best.actions)} actions, {best.figures}"
                )
                return 0
            found = evaluating.play_episodes(player.model, player.env, self.episodes)
        for number, (reward, steps) in enumerate(
            zip(found.rewards, found.lengths, strict=True), start=1
        ):
            print(f"[Episode {number}] Finished: Reward={reward:.2f}, Steps={steps}")
        print(found.summary())
        return 0
