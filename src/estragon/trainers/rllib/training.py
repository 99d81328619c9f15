"""A whole run of training, from the first game to the checkpoint on the disk."""

import contextlib
import dataclasses
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import ray
import torch
from torch.utils.tensorboard import SummaryWriter

from estragon import __version__
from estragon.support.errors import INTERRUPTED, UserError
from estragon.support.files import ensure_writable
from estragon.support.interrupts import STOP_SIGNALS, deferred_interrupts
from estragon.support.progress import Progress
from estragon.trainers.controller import Controller, RunRecord
from estragon.trainers.metric_lines import Metrics, iteration_metric
from estragon.trainers.rllib.env import GameEnv, keep_waiting, let_go
from estragon.trainers.rllib.learner import Learner
from estragon.trainers.rllib.plan import Plan
from estragon.trainers.rllib.ray_session import ray_session
from estragon.trainers.rllib.runner import episodes_of
from estragon.trainers.rllib.stats import learner_stats
from estragon.trainers.rllib.survey import Role, survey
from estragon.trainers.run_folder import TrainerRun
from estragon.trainers.settings import choose_device, use_one_thread
from estragon.trainers.spaces import to_plain

TELL_EVERY_SEC = 10.0
SPARE_CPUS = 2
IN_VAIN = 3
"""Iterations in a row without a step, after which a run gives up."""


def train(plan: Plan) -> int:
    """Train; 0 done or asked to stop, 1 something broke on the way, 130 interrupted."""
    choose_device(plan.options.device)
    use_one_thread()
    controller = Controller(stop_file=plan.options.stop_file)
    controller.forget_stop()
    folder = TrainerRun.numbered(plan.options.experiment_dir, plan.name)
    ensure_writable(folder.manifest)
    try:
        roles = look_around(plan)
        with ray_session(plan.options.address, plan.runners + SPARE_CPUS):
            logs = folder.game_logs if plan.options.address is None else None
            learner = Learner(plan, roles, logs)
            try:
                return Run(plan, learner, folder, controller).run()
            finally:
                learner.stop()
    finally:
        let_go()
        if not folder.manifest.exists():  # nothing was begun
            shutil.rmtree(folder.path, ignore_errors=True)


def look_around(plan: Plan) -> dict[str, Role]:
    """What the policies see and do; a game in the editor is then kept for the env runner."""
    env = GameEnv(plan.game)
    try:
        roles = survey(env, plan.mapping)
    except BaseException:
        env.close()
        raise
    if plan.by_hand:
        keep_waiting(env)
    else:
        env.close()
    if plan.policies and (unknown := sorted(set(roles) - set(plan.policies))):
        raise UserError(
            f"agents are played by {', '.join(unknown)}, but there is only "
            f"{', '.join(plan.policies)}: say who plays whom with policy_mapping_fn"
        )
    return roles


class Run:
    """One run of a learner."""

    def __init__(
        self, plan: Plan, learner: Learner, folder: TrainerRun, controller: Controller
    ) -> None:
        """Write down that it begins."""
        self._plan, self._learner, self._folder = plan, learner, folder
        self._controller = controller
        about = _facts(plan, learner, folder)
        records = [RunRecord.begin(folder.manifest, plan.name, about)]
        if controller.is_there:
            records.append(controller.begin_run(plan.name, about))
        self._records = records
        self._metrics = Metrics(records)
        self._began = time.monotonic()
        self._first_steps, self._first_iteration = learner.timesteps, learner.iteration
        self._status = "finished"
        self._lost = 0

    def run(self) -> int:
        """Learn, and leave a checkpoint whatever happens."""
        _tell_start(self._plan, self._learner, self._folder)
        problem: UserError | None = None
        with (
            Progress(TELL_EVERY_SEC) as progress,
            deferred_interrupts(progress.say, STOP_SIGNALS) as request,
            contextlib.closing(SummaryWriter(str(self._folder.path))) as board,
        ):
            progress.step("training", announced=False)
            try:
                while not self._is_over(interrupted=request.made):
                    self._iterate(board)
                    self._show(progress)
            except UserError as error:
                problem = error
            except (OSError, ray.exceptions.RayError, RuntimeError) as error:
                problem = UserError(f"{type(error).__name__}: {_last_line(error)}")
        return self._end(problem)

    def _iterate(self, board: SummaryWriter) -> None:
        learner = self._learner
        began = time.monotonic()
        for attempt in range(IN_VAIN):
            games_before, steps_before = learner.env_steps, learner.timesteps
            result = learner.train()
            if learner.timesteps > steps_before:
                break
            _warn("no env runner brought anything")
            if attempt == IN_VAIN - 1:
                raise UserError("no env runner brings anything any more: are the games all right?")
        self._look_after_runners()
        now = time.monotonic()
        episodes = episodes_of(result)
        learner.episodes += sum(map(len, episodes.values()))
        every = self._plan.checkpoint_every
        if every and learner.iteration % every == 0:
            self._checkpoint()
        stats = learner_stats(result)
        metric = iteration_metric(
            iteration=learner.iteration,
            env_steps=learner.env_steps,
            agent_steps=learner.timesteps,
            trained=float(any(stats.values())),
            env_steps_this_iter=learner.env_steps - games_before,
            time_this_iter_s=now - began,
            time_total_s=now - self._began,
            episodes=episodes,
            episodes_total=learner.episodes,
            learner={policy: stats.get(policy, {}) for policy in learner.roles},
            checkpoints=learner.checkpoints,
        )
        # What --timesteps counts; the steps of the games stand beside it.
        metric["timesteps_total"] = learner.timesteps
        self._metrics.emit(metric)
        print(self._line(), flush=True)
        with contextlib.suppress(OSError):
            _draw(board, self._metrics.last)

    def _look_after_runners(self) -> None:
        lost, self._lost = self._lost, self._learner.lost_runners
        if self._lost > lost:
            _warn(f"{self._lost} of {self._plan.runners} env runners died, restarting")
        elif self._lost < lost:
            _warn(f"{self._plan.runners - self._lost} of {self._plan.runners} env runners play")

    def _is_over(self, *, interrupted: bool) -> bool:
        stop, learner = self._plan.stop, self._learner
        if interrupted:
            self._status = "interrupted"
        elif self._controller.asks_to_stop():
            self._status = "stopped"
        else:
            reward = self._metrics.last.get("episode_reward_mean")
            return (
                _reached(learner.timesteps - self._first_steps, stop.timesteps)
                or _reached(time.monotonic() - self._began, stop.seconds)
                or _reached(learner.iteration - self._first_iteration, stop.iterations)
                or _reached(reward, stop.reward)
            )
        return True

    def _checkpoint(self) -> None:
        try:
            self._learner.save(self._folder.path)
        except UserError as error:
            _warn(f"no checkpoint: {error}")

    def _end(self, problem: UserError | None) -> int:
        written: dict[str, Any] = {}
        path: Path | None = None
        try:
            path = self._learner.save(self._folder.path)
            written["checkpoint"] = str(path)
            if problem is None and (target := self._plan.options.onnx_export_path) is not None:
                from estragon.trainers.rllib.onnx_export import export_checkpoint

                exported = export_checkpoint(path, target)
                written["onnx"] = ", ".join(map(str, exported))
        except UserError as error:
            problem = problem or error
        for what, where in written.items():
            print(f"{what} saved to {where}")
        if problem is not None:
            self._finish("failed", error=str(problem), **written)
            print(f"estragon: {' '.join(str(problem).split())}", file=sys.stderr)
            return 1
        self._finish(self._status, **written)
        if self._status != "finished":
            print(f"{self._status}; {path} goes on (--restore)")
        return INTERRUPTED if self._status == "interrupted" else 0

    def _finish(self, status: str, **facts: Any) -> None:
        for record in self._records:
            with contextlib.suppress(UserError):
                record.end(
                    status,
                    timesteps=self._learner.timesteps,
                    episodes=self._learner.episodes,
                    last=self._metrics.last,
                    **facts,
                )

    def _show(self, progress: Progress) -> None:
        stop, learner = self._plan.stop, self._learner
        spent = time.monotonic() - self._began
        done = learner.timesteps - self._first_steps
        rate = f" steps, {done / max(spent, 1e-9):,.0f}/s"
        if stop.timesteps is not None:
            progress.update(done, stop.timesteps, rate)
        elif stop.seconds is not None:
            progress.update(spent, stop.seconds, " s")

    def _line(self) -> str:
        last = self._metrics.last
        told = (
            f"iteration {self._learner.iteration}: {self._learner.timesteps:,} steps, "
            f"{self._learner.episodes} episodes"
        )
        for policy, each in last["policies"].items():
            if each["completed_episodes"]:
                told += f", {policy} {each['reward_mean']:.3f} (length "
                told += f"{each['episode_len_mean']:.1f})"
        for key, value in last["custom_metrics"].items():
            told += f", {key} {value:.3f}" if value is not None else ""
        return f"{told}, {last['time_this_iter_s']:.1f} s"


def _warn(text: str) -> None:
    print(f"WARNING: {text}", file=sys.stderr, flush=True)


def _reached(value: float | None, limit: float | None) -> bool:
    return value is not None and limit is not None and value >= limit


def _draw(board: SummaryWriter, metric: dict[str, Any]) -> None:
    step = metric["timesteps_total"]
    board.add_scalar("rollout/ep_rew_mean", metric["episode_reward_mean"] or 0.0, step)
    board.add_scalar("time/env_throughput", metric["env_throughput"], step)
    for policy, each in metric["policies"].items():
        for key in ("reward_mean", "episode_len_mean"):
            if each[key] is not None:
                board.add_scalar(f"{policy}/{key}", each[key], step)
        for part in ("learner_stats", "custom_metrics"):
            for key, value in each[part].items():
                if value is not None:
                    board.add_scalar(f"{policy}/{key}", value, step)


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _tell_start(plan: Plan, learner: Learner, folder: TrainerRun) -> None:
    agents = sum(role.agents for role in learner.roles.values())
    went_on = f", going on at {learner.timesteps:,} steps" if plan.source is not None else ""
    print(
        f"{folder.path}: {plan.algorithm.name}, {plan.runners or 1} env runners with a game each, "
        f"{agents} agents in a game, policies {', '.join(learner.roles)}{went_on}",
        file=sys.stderr,
        flush=True,
    )


def _facts(plan: Plan, learner: Learner, folder: TrainerRun) -> dict[str, Any]:
    asked = dataclasses.asdict(plan.options)
    asked |= asked.pop("hyperparameters")
    return {
        "backend": "rllib",
        "algorithm": plan.algorithm.name,
        "folder": str(folder.path),
        "env_runners": plan.runners,
        "agents": sum(role.agents for role in learner.roles.values()),
        "policies": sorted(learner.roles),
        "observation_space": {p: to_plain(role.sees) for p, role in learner.roles.items()},
        "action_space": {p: to_plain(role.does) for p, role in learner.roles.items()},
        "stop": dataclasses.asdict(plan.stop),
        "settings": learner.about().settings,
        "model": plan.model,
        "options": {
            key: str(value) if isinstance(value, Path) else value for key, value in asked.items()
        },
        "versions": {
            "estragon": __version__,
            "ray": ray.__version__,
            "torch": torch.__version__,
        },
    }
