"""Behavior cloning: read an expert's demonstrations and train a policy to act like it."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy

from estragon.support.errors import UserError
from estragon.trainers.sb3.learner import Sb3Adapter

CLONABLE = ("ppo", "a2c", "maskable_ppo")
BATCH = 64
LEARNING_RATE = 1e-3
VALIDATION_SHARE = 0.1
"""Share of the steps that are not learned from but decide when to stop."""
PATIENCE = 5
"""Epochs without improvement on those."""


@dataclasses.dataclass(frozen=True)
class Demos:
    """Steps of all demonstrated episodes, one after the other."""

    observations: dict[str, np.ndarray]
    """By key, (steps, …)."""
    actions: np.ndarray
    """(steps, numbers) as the game receives them."""
    ends: np.ndarray
    """(episodes,) number of steps up to the end of each."""

    def __len__(self) -> int:
        """Number of steps."""
        return len(self.actions)


def read_demos(
    path: Path, observation_space: spaces.Dict, action_space: spaces.Space[Any]
) -> Demos:
    """Read a file `[[observations, actions], …]`, with one observation more than actions.

    An observation is an object by key or, where there is only one key, its numbers.
    """
    try:
        episodes = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}") from error
    if not isinstance(episodes, list) or not episodes:
        raise UserError(f"{path}: expected a list of episodes")
    observed: dict[str, list[Any]] = {key: [] for key in observation_space.spaces}
    actions: list[Any] = []
    ends: list[int] = []
    for number, episode in enumerate(episodes):
        where = f"{path}, episode {number}"
        if not (isinstance(episode, list) and len(episode) == 2):
            raise UserError(f"{where}: expected observations and actions")
        if len(episode[0]) != len(episode[1]) + 1:
            raise UserError(
                f"{where}: {len(episode[1])} actions need {len(episode[1]) + 1} observations, got "
                f"{len(episode[0])}"
            )
        for observation in episode[0][:-1]:
            _add(observed, observation, where)
        actions += episode[1]
        ends.append(len(actions))
    if not actions:
        raise UserError(f"{path}: no episode has any actions")
    return Demos(
        {
            key: _shaped(observed[key], space, f"{path}: {key}")
            for key, space in observation_space.spaces.items()
        },
        _actions(actions, action_space, path),
        np.array(ends),
    )


def clone(learner: Sb3Adapter, demos: Demos, epochs: int, seed: int) -> str:
    """Train the policy on demonstrations; returns a summary."""
    policy = learner.model.policy
    if learner.algorithm.name not in CLONABLE or not isinstance(policy, ActorCriticPolicy):
        names = ", ".join(CLONABLE)
        raise UserError(f"--demos: {learner.algorithm.name} cannot learn from them; use {names}")
    observations, actions = _tensors(learner, demos)

    def loss(rows: np.ndarray) -> torch.Tensor:
        """The negative log-likelihood of the expert's actions."""
        batch: Any = {key: values[rows] for key, values in observations.items()}
        return -policy.evaluate_actions(batch, actions[rows])[1].mean()

    random = np.random.default_rng(seed)
    steps = random.permutation(len(demos))
    validation, training = np.split(steps, [max(int(VALIDATION_SHARE * len(demos)), 1)])
    training = training if len(training) else validation
    optimizer = torch.optim.Adam(policy.parameters(), lr=LEARNING_RATE)
    best, best_state, waited, epoch = float("inf"), policy.state_dict(), 0, 0
    policy.set_training_mode(True)
    while epoch < epochs and waited < PATIENCE:
        epoch += 1
        order = random.permutation(training)
        for first in range(0, len(order), BATCH):
            optimizer.zero_grad()
            loss(order[first : first + BATCH]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        with torch.no_grad():
            validation_loss = loss(validation).item()
        waited += 1
        if validation_loss < best:
            best, waited = validation_loss, 0
            best_state = {name: value.clone() for name, value in policy.state_dict().items()}
    policy.load_state_dict(best_state)
    policy.set_training_mode(False)
    return f"{len(demos.ends)} episodes, {len(demos):,} steps, {epoch} epochs, loss {best:.3f}"


def _tensors(learner: Sb3Adapter, demos: Demos) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """What the policy sees: normalized, and images with channels first."""
    observations: Any = demos.observations
    if learner.normalizer is not None:
        for key, statistics in learner.normalizer.obs_rms.items():
            statistics.update(observations[key])
        observations = learner.normalizer.normalize_obs(observations)
    policy: Any = learner.model.policy
    tensors: dict[str, torch.Tensor] = {}
    for key, space in policy.observation_space.spaces.items():
        values = observations[key]
        if values.shape[1:] != space.shape:
            values = values.transpose(0, 3, 1, 2)
        tensors[key] = torch.as_tensor(values, device=policy.device)
    actions = demos.actions
    if actions.dtype == np.int64 and actions.shape[1] == 1:
        actions = actions[:, 0]
    return tensors, torch.as_tensor(actions, device=policy.device)


def _add(observed: dict[str, list[Any]], observation: Any, where: str) -> None:
    if not isinstance(observation, dict):
        observation = {next(iter(observed)): observation} if len(observed) == 1 else {}
    for key, values in observed.items():
        if key not in observation:
            raise UserError(f"{where}: an observation lacks '{key}'")
        values.append(observation[key])


def _shaped(values: list[Any], space: spaces.Space[Any], where: str) -> np.ndarray:
    shape = space.shape or ()
    if values and isinstance(values[0], str):  # an image in hexadecimal
        values = [list(bytes.fromhex(value)) for value in values]
    found = _numbers(values, where)
    if found.size != len(values) * math.prod(shape):
        raise UserError(f"{where}: expected {math.prod(shape)} numbers, as the game has")
    shaped: np.ndarray = found.reshape(len(values), *shape).astype(space.dtype)
    return shaped


def _actions(actions: list[Any], space: spaces.Space[Any], path: Path) -> np.ndarray:
    width = 1 if isinstance(space, spaces.Discrete) else math.prod(space.shape or ())
    found = _numbers(actions, f"{path}: an action").reshape(len(actions), -1)
    if found.shape[1] != width:
        raise UserError(
            f"{path}: an action is {found.shape[1]} numbers, this game takes {width}; mixed "
            "actions cannot be learned from demonstrations"
        )
    if isinstance(space, spaces.Box):
        clipped: np.ndarray = np.clip(found, space.low, space.high).astype(np.float32)
        return clipped
    choices = np.array([space.n]) if isinstance(space, spaces.Discrete) else space.nvec  # type: ignore[attr-defined]
    if ((found < 0) | (found >= choices) | (found % 1 != 0)).any():
        raise UserError(f"{path}: an action is none of the game's choices")
    return found.astype(np.int64)


def _numbers(values: list[Any], where: str) -> np.ndarray:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError(f"{where}: expected lists of numbers, all of one length") from None
    if not np.isfinite(found).all():
        raise UserError(f"{where} has a number that is not finite")
    return found
