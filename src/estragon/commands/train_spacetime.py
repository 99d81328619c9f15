"""`estragon train spacetime`: train an agent that walks in VR without making people sick."""

import dataclasses
import json
from typing import Annotated, Literal

from estragon.spacetime.config import RLConfig
from estragon.support.errors import UserError
from estragon.support.options import check_span, optional

Preset = Literal["quick_test", "full_training", "curriculum_learning", "comfort_optimized"]


@dataclasses.dataclass(frozen=True)
class TrainSpacetimeCommand:
    """Train VR navigation with Stable-Baselines3, or evaluate a trained model.

    Paths may begin with user://, Godot's folder for data of the game.
    """

    preset: Annotated[Preset | None, optional("NAME")] = None
    """quick_test (10,000 steps), full_training (5,000,000), curriculum_learning (3,000,000 in three
    stages) or comfort_optimized (1,000,000)."""
    config: Annotated[str | None, optional("FILE")] = None
    """A JSON file; its values go before those of the preset."""
    timesteps: Annotated[int | None, optional("N")] = None
    """Steps of all rigs together."""
    resume: Annotated[str | None, optional("CHECKPOINT")] = None
    """Continue from a checkpoint until all steps are done."""
    eval: Annotated[str | None, optional("MODEL")] = None
    """Evaluate this model instead of training."""
    episodes: int = 20
    """Held-out episodes of --eval."""
    verbose: bool = False
    """Print the whole configuration."""
    save_config: Annotated[str | None, optional("FILE")] = None
    """Write the configuration to a JSON file first."""
    launch: bool = True
    """Start Godot; --no-launch uses a game that runs, over HTTP with its token in API_TOKEN."""
    window: bool = False
    """Show the game."""
    port: Annotated[int | None, optional("PORT")] = None
    """Port of the game's HTTP API, with --no-launch or wire http."""
    seed: Annotated[int | None, optional("N")] = None
    """Seed of the games and of the initial weights."""
    output: Annotated[str | None, optional("FOLDER")] = None
    """Where checkpoints, best_models and logs are written; default: user://ml_training."""
    onnx: Annotated[str | None, optional("FILE")] = None
    """Also export the final policy as ONNX, for games."""

    def run(self) -> int:
        """Train, or evaluate."""
        from estragon.godot.user_data import resolve

        check_span("--episodes", self.episodes, 1)
        config = self.configuration()
        if self.verbose:
            print(json.dumps(config.to_dict(), indent=2))
        if self.save_config is not None:
            config.to_json(resolve(self.save_config))
            print(f"configuration saved to {resolve(self.save_config)}")
        from estragon.trainers.sb3.navigation import Navigation

        navigation = Navigation(config, launch=self.launch, window=self.window)
        if self.eval is not None:
            if self.resume is not None:
                raise UserError("--eval does not train: leave out --resume")
            model = resolve(self.eval)
            print(f"{model}: {navigation.evaluate(model, self.episodes).summary()}")
            return 0
        return navigation.train(
            resume=None if self.resume is None else resolve(self.resume),
            onnx=None if self.onnx is None else resolve(self.onnx),
        )

    def configuration(self) -> RLConfig:
        """The defaults, then the preset, then the file, then the options."""
        from estragon.godot.user_data import resolve

        config = RLConfig() if self.preset is None else RLConfig.preset(self.preset)
        if self.config is not None:
            config = RLConfig.from_json(resolve(self.config), base=config)
        training, environment = config.training, config.environment
        training.total_timesteps = self.timesteps or training.total_timesteps
        training.seed = training.seed if self.seed is None else self.seed
        training.output_dir = self.output or training.output_dir
        environment.port = environment.port if self.port is None else self.port
        config.check()
        return config
