"""Trained policies at play, without Ray: each decides for all its agents at once."""

import contextlib
from typing import Any

import numpy as np
import torch
import tree
from gymnasium import spaces
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModule

from estragon.support.errors import UserError
from estragon.trainers import run
from estragon.trainers.controller import Controller
from estragon.trainers.metrics import Episodes
from estragon.trainers.rllib.algorithms import algorithm_of, config_of_policies
from estragon.trainers.rllib.checkpoint import Checkpoint, PolicySpaces
from estragon.trainers.rllib.env import GameEnv, flat_space
from estragon.trainers.rllib.plan import STEPS, Plan
from estragon.trainers.rllib.ray_session import be_quiet
from estragon.trainers.rllib.training import check_roles
from estragon.trainers.spaces import from_plain


class TrainedPolicy:
    """One policy of a checkpoint; acts deterministically."""

    def __init__(self, module: RLModule, algo: str, role: PolicySpaces) -> None:
        """Take a trained network."""
        self.module: Any = module
        self.algo, self.actions = algo, role.actions
        self.sees, self.does = _observation_space(role), from_plain(role.does)
        if module.is_stateful():
            raise UserError("a recurrent policy (use_lstm) can be trained, but not played here")

    def act(self, seen: np.ndarray) -> list[Any]:
        """An action for each of the flat observations, (agents, …)."""
        with torch.no_grad():
            outputs = self.module.forward_inference({Columns.OBS: torch.as_tensor(seen)})
            if Columns.ACTIONS in outputs:
                actions = outputs[Columns.ACTIONS]
            elif self.algo == "sac":  # RLlib's deterministic action lacks the tanh
                actions = torch.tanh(outputs[Columns.ACTION_DIST_INPUTS].chunk(2, dim=-1)[0])
            else:
                kind = self.module.get_inference_action_dist_cls()
                dist = kind.from_logits(outputs[Columns.ACTION_DIST_INPUTS])
                actions = dist.to_deterministic().sample()
        arrays = tree.map_structure(np.asarray, actions)
        return [self._bounded(tree.map_structure(lambda a: a[i], arrays)) for i in range(len(seen))]  # noqa: B023

    def _bounded(self, action: Any) -> Any:
        if isinstance(self.does, spaces.Dict):
            return {key: _clipped(part, action[key]) for key, part in self.does.spaces.items()}
        return _clipped(self.does, action)


def load_policies(source: Checkpoint) -> dict[str, TrainedPolicy]:
    """The policies of a checkpoint, by name."""
    about = source.about
    if about is None:
        raise UserError(
            f"{source.path} was not made by Estragon: it does not say what its agents see and do"
        )
    policy_spaces = {
        policy: (flat_space(_observation_space(role)), from_plain(role.does))
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
            why = " ".join(str(error).split())[:200]
            raise UserError(f"{source.path}: {policy}: {why}") from error
        found[policy] = TrainedPolicy(modules[policy].eval(), about.algo, role)
    return found


def play(plan: Plan) -> int:
    """Play one game for `timesteps` of all agents, and print how the policies did."""
    if plan.source is None:
        raise ValueError("the settings require a checkpoint")
    be_quiet()
    policies = load_policies(plan.source)
    controller = Controller(stop_file=plan.options.stop_file)
    controller.clear_stop()
    with contextlib.closing(GameEnv(plan.game)) as game:
        check_roles(plan.source, game.roles(plan.mapping))
        match = Match(game, policies, plan)
        run.play(plan.limits.timesteps or STEPS, match.step, controller)
    for policy in sorted(policies):
        print(f"{policy}: {match.ended.get(policy, Episodes()).summary()}")
    if plan.options.onnx_export_path is not None:
        from estragon.trainers.rllib.onnx_export import export_checkpoint

        for path in export_checkpoint(plan.source.path, plan.options.onnx_export_path):
            print(f"onnx saved to {path}")
    return 0


class Match:
    """A game and the policies that play it."""

    def __init__(self, game: GameEnv, policies: dict[str, TrainedPolicy], plan: Plan) -> None:
        """Reset the game."""
        self.ended: dict[str, Episodes] = {}
        self._game, self._policies, self._policy_of = game, policies, plan.mapping
        self._seen, _ = game.reset()
        self._totals = dict.fromkeys(self._seen, (0.0, 0))

    def step(self) -> int:
        """Act for every agent; returns how many there were."""
        actions: dict[str, Any] = {}
        for name, policy in self._policies.items():
            if agents := [agent for agent in self._seen if self._policy_of(agent) == name]:
                decided = policy.act(np.stack([self._seen[agent] for agent in agents]))
                actions |= dict(zip(agents, decided, strict=True))
        seen, rewards, terminated, truncated, infos = self._game.step(actions)
        for agent, reward in rewards.items():
            total, steps = self._totals.pop(agent, (0.0, 0))
            if terminated[agent] or truncated[agent]:
                episodes = self.ended.setdefault(self._policy_of(agent), Episodes())
                episodes.add(total + reward, steps + 1, infos[agent])
            else:
                self._totals[agent] = (total + reward, steps + 1)
        unfinished = {agent: seen[agent] for agent in seen if agent in self._totals}
        self._seen = unfinished | self._game.begun
        return len(rewards)


def _observation_space(role: PolicySpaces) -> spaces.Dict:
    found = from_plain(role.sees)
    if not isinstance(found, spaces.Dict):
        raise UserError(f"the checkpoint is damaged: it sees {found}")
    return found


def _clipped(part: spaces.Space[Any], action: np.ndarray) -> np.ndarray:
    return np.clip(action, part.low, part.high) if isinstance(part, spaces.Box) else action
