"""`estragon train sb3`: train the agents of any Godot game with Stable-Baselines3."""

import dataclasses

from estragon.trainers.sb3.settings import Sb3Settings


@dataclasses.dataclass(frozen=True)
class TrainSb3Command(Sb3Settings):
    """Train the agents of a Godot game with Stable-Baselines3.

    Options not given here come from .rlcontroller/training_config.json, if it exists.
    """

    def run(self) -> int:
        """Train, or play."""
        self.check()
        from estragon.trainers.sb3.training import play, train

        if self.inference and self.resume_model_path is not None:
            return play(self, self.resume_model_path)
        return train(self)
