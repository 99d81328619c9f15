"""`estragon train rllib`: any Godot game, learned with Ray RLlib."""

import dataclasses

from estragon.trainers.rllib.settings import RllibSettings


@dataclasses.dataclass(frozen=True)
class TrainRllibCommand(RllibSettings):
    """Train the agents of a Godot game with Ray RLlib.

    Options that are not given are read from .rlcontroller/training_config.json, if it exists, then
    from the YAML file.
    """

    def run(self) -> int:
        """Train, or play."""
        self.check()
        from estragon.trainers.rllib.plan import plan_of
        from estragon.trainers.rllib.training import play, train

        return (play if self.inference else train)(plan_of(self))
