"""`estragon train rllib`: an RLlib algorithm and its games as the learner of a run."""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import ray
import torch
import tree
from gymnasium import spaces
from ray.exceptions import RayError
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModule
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger
from torch.utils.tensorboard import SummaryWriter

from estragon.support.errors import UserError
from estragon.trainers import run as run_loop
from estragon.trainers.controller import Controller
from estragon.trainers.curriculum import RunCurriculum, check_progress
from estragon.trainers.metrics import Counters, EndedEpisode, Episodes
from estragon.trainers.rllib import checkpoint
from estragon.trainers.rllib.checkpoint import About, Checkpoint, PolicySpaces
from estragon.trainers.rllib.env import (
    GameEnv,
    Role,
    close_kept_envs,
    episodes_of,
    flat_space,
    keep_env,
    steps_of,
)
from estragon.trainers.rllib.lessons import RunnerLessons
from estragon.trainers.rllib.plan import (
    DEFAULT_STEPS,
    Plan,
    algorithm_of,
    build,
    config_of_policies,
)
from estragon.trainers.rllib.ray_session import be_quiet, ray_session
from estragon.trainers.run import (
    GAME_LOGS,
    Run,
    describe_run,
    new_run_folder,
    one_line,
    warn,
)
from estragon.trainers.settings import choose_device, note, use_one_thread
from estragon.trainers.spaces import describe, from_plain, to_plain

SPARE_CPUS = 2
MAX_EMPTY_ITERATIONS = 3
"""In a row, after which a run fails."""
SEED_STRIDE = 100_003
ENV_STEPS_METRIC = "num_env_steps_sampled_lifetime"
ALL_MODULES = "__all_modules__"
CONTROLLER_NAMES = {
    "qf_loss": "vf_loss",
    "qf_mean": "q_mean",
    "mean_kl_loss": "kl",
    "default_optimizer_learning_rate": "cur_lr",
    "curr_entropy_coeff": "entropy_coeff",
}
"""RLlib's name → the controller's; metrics have both."""


def train(plan: Plan) -> int:
    """Train; 0 finished or asked to stop, 1 failed, 130 interrupted."""
    settings, name, limits = plan.options, plan.options.experiment_name, plan.limits
    choose_device(settings.device)
    use_one_thread()
    controller = Controller(stop_file=settings.stop_file)
    with new_run_folder(settings.experiment_dir, name, controller) as folder:
        try:
            curriculum = curriculum_of(plan)
            roles = find_roles(plan, curriculum)
            with ray_session(settings.address, plan.runners + SPARE_CPUS):
                logs = folder / GAME_LOGS if settings.address is None else None
                with contextlib.closing(RllibAdapter(plan, roles, logs, curriculum)) as learner:
                    _print_start(learner, folder)
                    about = describe_run("rllib", settings, folder, {"ray": ray.__version__})
                    about |= learner.describe()
                    return Run(
                        learner,
                        folder,
                        controller,
                        name,
                        limits=limits,
                        about=about,
                        curriculum=curriculum,
                    ).execute()
        finally:
            close_kept_envs()


def curriculum_of(plan: Plan) -> RunCurriculum | None:
    """Of the plan's parameters, continued from its checkpoint if there is one."""
    parameters, before, limits = plan.game.get("parameters"), plan.before, plan.limits
    if parameters is None:
        return None
    ends = (limits.timesteps, limits.seconds, limits.iterations)
    check_progress(parameters, has_limit=any(end is not None for end in ends))
    saved, steps = (before.parameters, before.timesteps) if before is not None else (None, 0)
    return RunCurriculum(parameters, plan.rule, saved, steps)


def find_roles(plan: Plan, curriculum: RunCurriculum | None = None) -> dict[str, Role]:
    """Start a game to see what the policies observe and do, and check the curriculum's criteria.

    A game in the editor is kept for the env runner.
    """
    with contextlib.ExitStack() as stack:
        env = stack.enter_context(contextlib.closing(GameEnv(plan.game)))
        roles = env.roles(plan.mapping)
        if curriculum is not None and curriculum.needs_infos:
            curriculum.check_infos(next(iter(env.reset()[1].values())))
        if plan.from_editor:
            stack.pop_all()
            keep_env(env)
    known = plan.file.policies
    if known and (unknown := sorted(set(roles) - set(known))):
        raise UserError(
            f"agents are played by {', '.join(unknown)}, but there is only {', '.join(known)}; "
            "assign agents to policies with policy_mapping_fn"
        )
    return roles


class RllibAdapter:
    """An RLlib algorithm and its games; takes part in a `Run`."""

    resume_flag: ClassVar[str] = "--restore"
    failures: ClassVar[tuple[type[Exception], ...]] = (OSError, RayError, RuntimeError)

    def __init__(
        self,
        plan: Plan,
        roles: dict[str, Role],
        logs: Path | None,
        curriculum: RunCurriculum | None = None,
    ) -> None:
        """Start env runners and games; restore a checkpoint, if there is one."""
        source, state = plan.source, None
        self.counters = Counters()
        if source is not None and source.about is not None:
            check_roles(source, roles)
            state = source.state()
            self.counters = source.about.counters()
        game = dict(plan.game)
        # After a restore the games play other episodes than before.
        game["seed"] = (plan.seed + SEED_STRIDE * self.counters.iteration) % 2**31
        if logs is not None:
            game["log_folder"] = str(logs.absolute())
        self.plan, self.roles = plan, roles
        self._lost_runners = 0
        self._lessons: RunnerLessons | None = None
        self.algorithm = build(plan, roles, game)
        be_quiet()  # building resets the log levels
        try:
            if source is not None:
                self._restore(source, state)
            if curriculum is not None:
                saved = plan.before.parameters if plan.before is not None else None
                self._lessons = RunnerLessons(self.algorithm, curriculum, saved)
        except BaseException:
            self.close()
            raise

    def train(self, run: Run) -> None:
        """Train one iteration after the other until the run is over."""
        every = self.plan.checkpoint_every
        with contextlib.closing(SummaryWriter(str(run.folder))) as board:
            while not run.is_over():
                result = self._train_iteration()
                self._report_lost_runners()
                if self._lessons is not None:
                    self._lessons.count(result, run)
                stats = learner_stats(result)
                metric = run.end_iteration(
                    episodes_of(result),
                    {policy: stats.get(policy, {}) for policy in self.roles},
                    trained=any(stats.values()),
                    checkpoint=bool(every) and self.counters.iteration % every == 0,
                )
                run.show_progress()
                with contextlib.suppress(OSError):
                    _write_scalars(board, metric)

    def _train_iteration(self) -> dict[str, Any]:
        for _ in range(MAX_EMPTY_ITERATIONS):
            result: dict[str, Any] = self.algorithm.train()
            timesteps, env_steps = steps_of(result)
            self.counters.iteration += 1
            self.counters.timesteps += timesteps
            self.counters.env_steps += env_steps
            if timesteps:
                return result
            warn("no env runner returned any steps")
        raise UserError(
            f"no env runner returned any steps in {MAX_EMPTY_ITERATIONS} iterations; "
            "do the games still run?"
        )

    def _report_lost_runners(self) -> None:
        total = self.plan.runners
        lost = total - int(self.algorithm.env_runner_group.num_healthy_remote_workers())
        if lost > self._lost_runners:
            warn(f"{lost} of {total} env runners died, restarting")
        elif lost < self._lost_runners:
            warn(f"{total - lost} of {total} env runners are running")
        self._lost_runners = lost

    def about(self, counters: Counters) -> About:
        """What a checkpoint says of itself."""
        plan = self.plan
        return About(
            algo=plan.algorithm.name,
            settings=plan.settings,
            model=plan.model,
            models={policy: plan.model_of(policy) for policy in self.roles},
            policies={
                policy: PolicySpaces(to_plain(role.sees), to_plain(role.does), role.actions)
                for policy, role in self.roles.items()
            },
            parameters=None if self._lessons is None else self._lessons.save(),
            **dataclasses.asdict(counters),
        )

    def describe(self) -> dict[str, Any]:
        """What the manifest of a run says."""
        plan, roles = self.plan, self.roles
        return {
            "algorithm": plan.algorithm.name,
            "env_runners": plan.runners,
            "agents": sum(role.agents for role in roles.values()),
            "policies": sorted(roles),
            "observation_space": {name: to_plain(role.sees) for name, role in roles.items()},
            "action_space": {name: to_plain(role.does) for name, role in roles.items()},
            "stop": dataclasses.asdict(plan.limits),
            "settings": plan.settings,
            "model": plan.model,
        }

    def save(self, folder: Path) -> Path:
        """Write a checkpoint, unless there is one of this iteration."""
        path = folder / f"checkpoint_{self.counters.iteration:06d}"
        if not path.exists():
            counters = dataclasses.replace(self.counters, checkpoints=self.counters.checkpoints + 1)
            checkpoint.save(self.algorithm, path, self.about(counters))
            self.counters.checkpoints += 1
        return path

    def save_checkpoint(self, folder: Path) -> Path:
        """Write a checkpoint."""
        return self.save(folder)

    def export(self, saved: Path) -> dict[str, str]:
        """Write the policies as ONNX, if asked for."""
        target = self.plan.options.onnx_export_path
        if target is None:
            return {}
        from estragon.trainers.rllib.onnx_export import export_checkpoint

        return {"onnx": ", ".join(map(str, export_checkpoint(saved, target)))}

    def close(self) -> None:
        """Stop env runners and games."""
        self.algorithm.stop()

    def _restore(self, source: Checkpoint, state: dict[str, Any] | None) -> None:
        algorithm = self.algorithm
        if state is None:
            warn(
                f"{source.path} was not made by Estragon: opening it runs the code in it, whatever "
                "that does; use it only if you trust where it comes from"
            )
            try:
                algorithm.restore_from_path(str(source.path.absolute()))
            except Exception as error:
                raise UserError(f"cannot use {source.path} here: {one_line(error)}") from error
            self.counters.iteration = int(algorithm.training_iteration)
            return
        try:
            algorithm.learner_group.set_state({"learner": state})
        except (RuntimeError, ValueError, KeyError) as error:
            raise UserError(f"{source.path} does not fit this game: {one_line(error)}") from error
        algorithm.env_runner_group.sync_weights(
            from_worker_or_learner_group=algorithm.learner_group, inference_only=True
        )
        # Schedules, such as that of epsilon, continue where they were.
        steps = MetricsLogger()
        steps.log_value(
            ENV_STEPS_METRIC, self.counters.timesteps, reduce="lifetime_sum", with_throughput=True
        )
        algorithm.metrics.aggregate([steps.reduce()], key="env_runners")


def check_roles(source: Checkpoint, roles: dict[str, Role]) -> None:
    """Reject a checkpoint of another game."""
    if source.about is None:
        return
    learned = {
        policy: (describe(from_plain(role.sees)), describe(from_plain(role.does)))
        for policy, role in source.about.policies.items()
    }
    here = {policy: (describe(role.sees), describe(role.does)) for policy, role in roles.items()}
    if learned != here:
        then, now = (
            "; ".join(f"{policy} sees {sees} and does {does}" for policy, (sees, does) in each)
            for each in (sorted(learned.items()), sorted(here.items()))
        )
        raise UserError(f"{source.path} is of another game: {then}; here {now}")


def learner_stats(result: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """By policy, every number that RLlib's learner reports, also under the controller's names."""
    found: dict[str, dict[str, float]] = {}
    for policy, reported in (result.get("learners") or {}).items():
        if policy == ALL_MODULES or not isinstance(reported, Mapping):
            continue
        stats = found[policy] = {}
        for key, value in reported.items():
            with contextlib.suppress(TypeError, ValueError, RuntimeError):
                stats[key] = float(value)
        for theirs, ours in CONTROLLER_NAMES.items():
            if theirs in stats:
                stats.setdefault(ours, stats[theirs])
    return found


def _write_scalars(board: SummaryWriter, metric: dict[str, Any]) -> None:
    step = metric["timesteps_total"]
    board.add_scalar("rollout/ep_rew_mean", metric["episode_reward_mean"] or 0.0, step)
    board.add_scalar("time/env_throughput", metric["env_throughput"], step)
    if "lesson" in metric:
        board.add_scalar("curriculum/lesson", metric["lesson"], step)
    for name, value in metric.get("parameters", {}).items():
        board.add_scalar(f"parameters/{name}", value, step)
    for policy, each in metric["policies"].items():
        scalars = {key: each[key] for key in ("reward_mean", "episode_len_mean")}
        for key, value in (scalars | each["learner_stats"] | each["custom_metrics"]).items():
            if value is not None:
                board.add_scalar(f"{policy}/{key}", value, step)


def _print_start(learner: RllibAdapter, folder: Path) -> None:
    plan = learner.plan
    agents = sum(role.agents for role in learner.roles.values())
    resumed = f", resuming at {learner.counters.timesteps:,} steps" if plan.source else ""
    note(
        f"{folder}: {plan.algorithm.name}, {plan.runners or 1} env runners with a game each, "
        f"{agents} agents per game, policies {', '.join(learner.roles)}{resumed}"
    )


class TrainedPolicy:
    """One policy of a checkpoint; acts deterministically."""

    def __init__(self, module: RLModule, algo: str, role: PolicySpaces, steps: int | None) -> None:
        self.module: Any = module
        self.algo, self.actions = algo, role.actions
        self.sees = cast("spaces.Dict", from_plain(role.sees))
        self.does = from_plain(role.does)
        self.steps = steps
        """Of all agents, that it was trained for; None if the checkpoint does not say."""

    def act(self, seen: np.ndarray, states: list[Any] | None = None) -> tuple[list[Any], list[Any]]:
        """An action and the next state for each of the flat observations, (agents, …).

        A state is None at the start of an episode, and always of a policy without memory.
        """
        states = states or [None] * len(seen)
        batch: dict[str, Any] = {Columns.OBS: torch.as_tensor(seen)}
        is_stateful = self.module.is_stateful()
        if is_stateful:
            fresh = self.module.get_initial_state()
            given = [fresh if state is None else state for state in states]
            batch = {
                Columns.OBS: batch[Columns.OBS][:, None],
                Columns.STATE_IN: tree.map_structure(
                    lambda *each: torch.stack([torch.as_tensor(part) for part in each]), *given
                ),
            }
        with torch.no_grad():
            outputs = self.module.forward_inference(batch)
            if Columns.ACTIONS in outputs:
                actions = outputs[Columns.ACTIONS]
            elif self.algo == "sac":  # RLlib's deterministic action lacks the tanh
                actions = torch.tanh(outputs[Columns.ACTION_DIST_INPUTS].chunk(2, dim=-1)[0])
            else:
                kind = self.module.get_inference_action_dist_cls()
                dist = kind.from_logits(outputs[Columns.ACTION_DIST_INPUTS])
                actions = dist.to_deterministic().sample()
        if is_stateful:
            actions = tree.map_structure(lambda part: part[:, 0], actions)
            states = _rows(outputs[Columns.STATE_OUT], len(seen))
        decided = _rows(tree.map_structure(np.asarray, actions), len(seen))
        return [_bounded(self.does, row) for row in decided], states


def _rows(batch: Any, count: int) -> list[Any]:
    """What a batch of nested arrays holds for each row."""
    return [tree.map_structure(lambda part: part[row], batch) for row in range(count)]  # noqa: B023


def load_policies(source: Checkpoint, *, trust: bool = False) -> dict[str, TrainedPolicy]:
    """The policies of a checkpoint, by name; with `trust`, also of one that plain RLlib wrote."""
    about = source.about
    if about is None:
        return {
            name: TrainedPolicy(module.eval(), algo, role, None)
            for name, (module, algo, role) in source.unpickle_modules(trust=trust).items()
        }
    policy_spaces = {
        policy: (flat_space(cast("spaces.Dict", from_plain(role.sees))), from_plain(role.does))
        for policy, role in about.policies.items()
    }
    algorithm = algorithm_of(about.algo)
    config = config_of_policies(algorithm, about.settings, policy_spaces, about.models)
    modules = config.get_multi_rl_module_spec(spaces=policy_spaces).build()
    state = source.state()["rl_module"]
    found = {}
    for policy, role in about.policies.items():
        try:
            modules[policy].set_state(state[policy])
        except (RuntimeError, ValueError, KeyError) as error:
            raise UserError(f"{source.path}: {policy}: {one_line(error)}") from error
        found[policy] = TrainedPolicy(modules[policy].eval(), about.algo, role, about.timesteps)
    return found


class RllibPlayer:
    """Policies of a checkpoint that act deterministically in a game."""

    def __init__(
        self,
        policies: dict[str, TrainedPolicy],
        game: GameEnv,
        mapping: Callable[..., str],
        seed: int | None = None,
    ) -> None:
        self._policies, self._game, self._mapping = policies, game, mapping
        self._seen, _ = game.reset(seed=seed)
        self.num_agents = len(self._seen)
        self._rewards: dict[str, list[float]] = {}
        """By agent, those of its episode."""
        self._states: dict[str, Any] = {}
        """By agent, what its policy remembers of its episode."""

    def step(self) -> list[tuple[str, EndedEpisode]]:
        """One step of all agents; returns the episodes that ended, with their policies."""
        actions: dict[str, Any] = {}
        for name, policy in self._policies.items():
            if agents := [agent for agent in self._seen if self._mapping(agent) == name]:
                decided, states = policy.act(
                    np.stack([self._seen[agent] for agent in agents]),
                    [self._states.get(agent) for agent in agents],
                )
                actions |= zip(agents, decided, strict=True)
                self._states |= zip(agents, states, strict=True)
        seen, rewards, terminated, truncated, infos = self._game.step(actions)
        ended: list[tuple[str, EndedEpisode]] = []
        for agent, reward in rewards.items():
            received = self._rewards.setdefault(agent, [])
            received.append(reward)
            if terminated[agent] or truncated[agent]:
                info = infos[agent] | {"episode": {"agent": agent}}
                episode = (sum(received), len(received), info)
                ended.append((self._mapping(agent), episode))
                del self._rewards[agent], seen[agent]
                self._states.pop(agent, None)
        self._seen = seen | self._game.begun
        self.num_agents = len(rewards)
        return ended


def play(plan: Plan) -> int:
    """Play one game for `timesteps` of all agents, and print how the policies did."""
    if plan.source is None:
        raise ValueError("the settings require a checkpoint")
    be_quiet()
    policies = load_policies(plan.source)
    controller = Controller(stop_file=plan.options.stop_file)
    controller.clear_stop()
    episodes = {name: Episodes() for name in sorted(policies)}
    with contextlib.closing(GameEnv(plan.game)) as game:
        check_roles(plan.source, game.roles(plan.mapping))
        if game.parameter_feed is not None and (curriculum := curriculum_of(plan)) is not None:
            game.parameter_feed.set_lesson(curriculum.lesson)
        player = RllibPlayer(policies, game, plan.mapping)

        def step() -> int:
            for policy, ended in player.step():
                episodes[policy].add(*ended)
            return player.num_agents

        run_loop.play(plan.limits.timesteps or DEFAULT_STEPS, step, controller)
    for policy, ended in episodes.items():
        print(f"{policy}: {ended.summary()}")
    if plan.options.onnx_export_path is not None:
        from estragon.trainers.rllib.onnx_export import export_checkpoint

        for path in export_checkpoint(plan.source.path, plan.options.onnx_export_path):
            print(f"onnx saved to {path}")
    return 0


def _bounded(space: spaces.Space[Any], action: Any) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: _bounded(part, action[key]) for key, part in space.spaces.items()}
    return np.clip(action, space.low, space.high) if isinstance(space, spaces.Box) else action
