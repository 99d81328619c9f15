"""An algorithm with its games: made, gone on with, one iteration after the other, saved."""

import sys
from pathlib import Path
from typing import Any

from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

from estragon.support.errors import UserError
from estragon.trainers.rllib import checkpoint
from estragon.trainers.rllib.build import build, model_of
from estragon.trainers.rllib.checkpoint import About, Checkpoint
from estragon.trainers.rllib.plan import Plan, plain_settings
from estragon.trainers.rllib.ray_session import be_quiet
from estragon.trainers.rllib.runner import steps_of
from estragon.trainers.rllib.survey import Role
from estragon.trainers.spaces import describe, from_plain, to_plain

SEEDS_APART = 100_003
STEPS = "num_env_steps_sampled_lifetime"


class Learner:
    """What learns."""

    def __init__(self, plan: Plan, roles: dict[str, Role], logs: Path | None) -> None:
        """Start env runners and games; go on with a checkpoint, if there is one."""
        before = plan.source.about if plan.source is not None else None
        if plan.source is not None:
            check_roles(plan.source, roles)
        game = dict(plan.game)
        # After a restore the games play other episodes than before.
        game["seed"] = (plan.seed + SEEDS_APART * (before.iteration if before else 0)) % 2**31
        if logs is not None:
            game["log_folder"] = str(logs.absolute())
        self.plan, self.roles = plan, roles
        self.iteration = before.iteration if before else 0
        self.timesteps = before.timesteps if before else 0
        self.env_steps = before.env_steps if before else 0
        self.episodes = before.episodes if before else 0
        self.checkpoints = before.checkpoints if before else 0
        self.algorithm = build(plan, roles, game)
        be_quiet()  # building has made them loud again
        try:
            if plan.source is not None:
                self._restore(plan.source)
        except BaseException:
            self.stop()
            raise

    def train(self) -> dict[str, Any]:
        """One iteration; what RLlib says of it."""
        result: dict[str, Any] = self.algorithm.train()
        self.iteration += 1
        agents, games = steps_of(result)
        self.timesteps += agents
        self.env_steps += games
        return result

    @property
    def lost_runners(self) -> int:
        """Env runners that died, until they are back."""
        return self.plan.runners - int(self.algorithm.env_runner_group.num_healthy_remote_workers())

    def about(self) -> About:
        """In plain words."""
        plan = self.plan
        return About(
            algo=plan.algorithm.name,
            settings=plain_settings(plan.settings),
            model=plan.model,
            models={policy: model_of(plan, policy) for policy in self.roles},
            policies={
                policy: checkpoint.Role(to_plain(role.sees), to_plain(role.does), role.actions)
                for policy, role in self.roles.items()
            },
            iteration=self.iteration,
            timesteps=self.timesteps,
            env_steps=self.env_steps,
            episodes=self.episodes,
            checkpoints=self.checkpoints,
        )

    def save(self, folder: Path) -> Path:
        """Write a checkpoint; one that is there already is this very one."""
        path = folder / f"checkpoint_{self.iteration:06d}"
        if not path.exists():
            self.checkpoints += 1
            try:
                checkpoint.save(self.algorithm, path, self.about())
            except BaseException:
                self.checkpoints -= 1
                raise
        return path

    def stop(self) -> None:
        """End env runners and games."""
        self.algorithm.stop()

    def _restore(self, source: Checkpoint) -> None:
        algorithm = self.algorithm
        if source.about is None:
            warn_of(source)
            try:
                algorithm.restore_from_path(str(source.path.absolute()))
            except Exception as error:
                why = " ".join(str(error).split())[:200]
                raise UserError(f"cannot use {source.path} here: {why}") from error
            self.iteration = int(algorithm.training_iteration)
            return
        try:
            algorithm.learner_group.set_state({"learner": source.state()})
        except (RuntimeError, ValueError, KeyError) as error:
            why = " ".join(str(error).split())[:200]
            raise UserError(f"{source.path} does not fit this game: {why}") from error
        algorithm.env_runner_group.sync_weights(
            from_worker_or_learner_group=algorithm.learner_group, inference_only=True
        )
        # Schedules, such as that of chance, go on where they were.
        told = MetricsLogger()
        told.log_value(STEPS, self.timesteps, reduce="lifetime_sum", with_throughput=True)
        algorithm.metrics.aggregate([told.reduce()], key="env_runners")


def check_roles(source: Checkpoint, roles: dict[str, Role]) -> None:
    """Refuse a checkpoint of another game."""
    if source.about is None:
        return
    learned = {
        policy: (describe(from_plain(role.sees)), describe(from_plain(role.does)))
        for policy, role in source.about.policies.items()
    }
    here = {policy: (describe(role.sees), describe(role.does)) for policy, role in roles.items()}
    if learned != here:
        raise UserError(f"{source.path} is of another game: {_told(learned)}; here {_told(here)}")


def warn_of(source: Checkpoint) -> None:
    """Somebody else's checkpoint runs code."""
    print(
        f"WARNING: {source.path} was not made by Estragon: opening it runs the code in it, "
        "whatever that does; use it only if you trust where it comes from",
        file=sys.stderr,
        flush=True,
    )


def _told(roles: dict[str, tuple[str, str]]) -> str:
    return "; ".join(
        f"{policy} sees {sees} and does {does}" for policy, (sees, does) in sorted(roles.items())
    )
