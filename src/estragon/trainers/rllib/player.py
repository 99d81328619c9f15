"""The policies of a checkpoint at play, each deciding for many agents at once; without Ray."""

from typing import Any

import numpy as np
import torch
import tree
from gymnasium import spaces
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.rl_module import RLModule

from estragon.support.errors import UserError
from estragon.trainers.rllib import checkpoint
from estragon.trainers.rllib.algorithms import algorithm_of
from estragon.trainers.rllib.build import config_of_policies
from estragon.trainers.rllib.checkpoint import Checkpoint
from estragon.trainers.rllib.sight import plain_space
from estragon.trainers.spaces import from_plain


class Player:
    """One policy, doing what it thinks best."""

    def __init__(self, module: RLModule, algo: str, role: checkpoint.Role) -> None:
        """Take a network that was trained."""
        self.module: Any = module
        self.algo, self.role = algo, role
        self.sees, self.does = sees_of(role), from_plain(role.does)
        if module.is_stateful():
            raise UserError("a policy with a memory (use_lstm) can be trained, but not played here")

    def act(self, seen: np.ndarray) -> list[Any]:
        """An action for each of (agents, …) observations in their plain form."""
        with torch.no_grad():
            said = self.module.forward_inference({Columns.OBS: torch.as_tensor(seen)})
            if Columns.ACTIONS in said:
                actions = said[Columns.ACTIONS]
            elif self.algo == "sac":  # RLlib would forget to bring the mean between -1 and 1
                actions = torch.tanh(said[Columns.ACTION_DIST_INPUTS].chunk(2, dim=-1)[0])
            else:
                kind = self.module.get_inference_action_dist_cls()
                dist = kind.from_logits(said[Columns.ACTION_DIST_INPUTS])
                actions = dist.to_deterministic().sample()
        arrays = tree.map_structure(np.asarray, actions)
        return [self._bounded(tree.map_structure(lambda a: a[i], arrays)) for i in range(len(seen))]  # noqa: B023

    def _bounded(self, action: Any) -> Any:
        if isinstance(self.does, spaces.Dict):
            return {key: _clipped(part, action[key]) for key, part in self.does.spaces.items()}
        return _clipped(self.does, action)


def players_of(source: Checkpoint) -> dict[str, Player]:
    """By policy."""
    about = source.about
    if about is None:
        raise UserError(
            f"{source.path} was not made by Estragon: it does not say what its agents see and do"
        )
    roles = {
        policy: (plain_space(sees_of(role)), from_plain(role.does))
        for policy, role in about.policies.items()
    }
    config = config_of_policies(algorithm_of(about.algo), about.settings, roles, about.models)
    modules = config.get_multi_rl_module_spec(spaces=roles).build()
    state = source.state()["rl_module"]
    found = {}
    for policy, role in about.policies.items():
        module = modules[policy]
        try:
            module.set_state(state[policy])
        except (RuntimeError, ValueError, KeyError) as error:
            why = " ".join(str(error).split())[:200]
            raise UserError(f"{source.path}: {policy}: {why}") from error
        found[policy] = Player(module.eval(), about.algo, role)
    return found


def sees_of(role: checkpoint.Role) -> spaces.Dict:
    """What a policy sees, as the game has it."""
    found = from_plain(role.sees)
    if not isinstance(found, spaces.Dict):
        raise UserError(f"a damaged checkpoint: it sees {found}")
    return found


def _clipped(part: spaces.Space[Any], action: np.ndarray) -> np.ndarray:
    return np.clip(action, part.low, part.high) if isinstance(part, spaces.Box) else action
