"""PPO on any Godot game, in one file to read from top to bottom and to change.

python examples/ppo.py --env-path godot --scene res://examples/orchard/orchard.tscn
"""

import dataclasses
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from gymnasium import spaces
from torch import nn
from torch.distributions import Categorical, Distribution, Independent, Normal

from estragon.envs.gymnasium_env import GodotEnv


@dataclasses.dataclass
class Settings:
    """What can be changed without changing the file."""

    env_path: str = "godot"
    """A project folder, a .pck or an exported game; "debug" waits for the editor."""
    scene: str | None = None
    """The scene to play; else the main one."""
    key: str = "obs"
    """The observation to learn from."""
    timesteps: int = 100_000
    """Steps of all agents together."""
    n_parallel: int = 1
    """Games side by side."""
    seed: int = 1
    """Same seed, same run."""
    save_path: Path = Path("ppo.pt")
    """Where the weights go in the end."""

    horizon: int = 64
    """Steps of every agent between updates."""
    epochs: int = 10
    """Times that an update goes through them."""
    minibatches: int = 4
    """Pieces that it goes through them in."""
    learning_rate: float = 1e-3
    """At the beginning; 0 at the end."""
    gamma: float = 0.99
    """What a reward of the next step is worth now."""
    gae_lambda: float = 0.95
    """How far advantages look ahead."""
    clip: float = 0.2
    """How far an update may change the odds of an action."""
    entropy_weight: float = 0.01
    """What trying things out is worth."""
    value_weight: float = 0.5
    """What a good value is worth."""
    longest_gradient: float = 0.5
    """Longer ones are shortened."""
    hidden: int = 64
    """Neurons in each of two layers."""


def layer(inputs: int, outputs: int, gain: float = 2.0**0.5) -> nn.Linear:
    """A layer that neither swells nor shrinks what goes through it."""
    made = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(made.weight, gain)
    nn.init.zeros_(made.bias)
    return made


class Agent(nn.Module):
    """A policy and a value, apart."""

    def __init__(self, sees: spaces.Box, does: spaces.Space[Any], hidden: int) -> None:
        super().__init__()
        size = int(np.prod(sees.shape))
        self.is_discrete = isinstance(does, spaces.Discrete)
        if not isinstance(does, spaces.Discrete | spaces.Box):
            raise SystemExit(f"one discrete action, or continuous ones alone, not {does}")
        outputs = int(does.n) if isinstance(does, spaces.Discrete) else int(np.prod(does.shape))
        self.value = nn.Sequential(
            layer(size, hidden), nn.Tanh(), layer(hidden, hidden), nn.Tanh(), layer(hidden, 1, 1.0)
        )
        self.policy = nn.Sequential(
            layer(size, hidden),
            nn.Tanh(),
            layer(hidden, hidden),
            nn.Tanh(),
            layer(hidden, outputs, 0.01),
        )
        self.log_spread = nn.Parameter(torch.zeros(outputs))

    def decide(self, seen: torch.Tensor) -> Distribution:
        """Over the actions."""
        if self.is_discrete:
            return Categorical(logits=self.policy(seen))
        return Independent(Normal(self.policy(seen), self.log_spread.exp()), 1)


def main(settings: Settings) -> float:
    """Train; the mean reward of the last hundred episodes."""
    torch.manual_seed(settings.seed)
    torch.set_num_threads(1)
    env = GodotEnv(
        settings.env_path,
        scene=settings.scene,
        key=settings.key,
        n_parallel=settings.n_parallel,
        seed=settings.seed,
    )
    sees, does = env.single_observation_space, env.single_action_space
    assert isinstance(sees, spaces.Box)
    agent = Agent(sees, does, settings.hidden)
    optimizer = torch.optim.Adam(agent.parameters(), lr=settings.learning_rate, eps=1e-5)

    agents, horizon = env.num_envs, settings.horizon
    batch = agents * horizon
    observations = torch.zeros(horizon, agents, int(np.prod(sees.shape)))
    actions = torch.zeros(horizon, agents, *(does.shape or ()))
    log_probs, values, rewards, over = (torch.zeros(horizon, agents) for _ in range(4))
    returns, lengths = np.zeros(agents), np.zeros(agents, int)
    ended: list[tuple[float, int]] = []

    def look(numbers: np.ndarray) -> torch.Tensor:
        return torch.as_tensor(numbers, dtype=torch.float32).reshape(len(numbers), -1)

    first, _ = env.reset(seed=settings.seed)
    seen = look(first)
    updates = max(settings.timesteps // batch, 1)
    began = time.monotonic()
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = settings.learning_rate * (1.0 - update / updates)

        # Play.
        for step in range(horizon):
            with torch.no_grad():
                decided = agent.decide(seen)
                action = decided.sample()
                observations[step], actions[step] = seen, action
                log_probs[step] = decided.log_prob(action)
                values[step] = agent.value(seen).squeeze(-1)
            told = action.numpy() if agent.is_discrete else action.clamp(-1.0, 1.0).numpy()
            following, earned, terminated, truncated, infos = env.step(told)
            done = terminated | truncated
            returns += earned
            lengths += 1
            rewards[step] = torch.as_tensor(earned, dtype=torch.float32)
            over[step] = torch.as_tensor(done, dtype=torch.float32)
            for seat in np.flatnonzero(done):
                if truncated[seat] and not terminated[seat]:
                    # Cut off, not over: what would have come is worth what the value says.
                    with torch.no_grad():
                        last = agent.value(look(infos["final_obs"][seat][None]))
                    rewards[step, seat] += settings.gamma * last.item()
                ended.append((float(returns[seat]), int(lengths[seat])))
                returns[seat], lengths[seat] = 0.0, 0
            seen = look(following)

        # Judge: generalised advantage estimation, from the last step back.
        advantages = torch.zeros(horizon, agents)
        with torch.no_grad():
            next_value = agent.value(seen).squeeze(-1)
        running = torch.zeros(agents)
        for step in reversed(range(horizon)):
            goes_on = 1.0 - over[step]
            surprise = rewards[step] + settings.gamma * next_value * goes_on - values[step]
            running = surprise + settings.gamma * settings.gae_lambda * goes_on * running
            advantages[step], next_value = running, values[step]

        # Learn.
        flat_seen, flat_actions = observations.flatten(0, 1), actions.flatten(0, 1)
        flat_log_probs, flat_advantages = log_probs.flatten(), advantages.flatten()
        targets = (advantages + values).flatten()
        for _ in range(settings.epochs):
            for rows in torch.randperm(batch).chunk(settings.minibatches):
                decided = agent.decide(flat_seen[rows])
                ratio = (decided.log_prob(flat_actions[rows]) - flat_log_probs[rows]).exp()
                better = flat_advantages[rows]
                better = (better - better.mean()) / (better.std() + 1e-8)
                clipped = ratio.clamp(1.0 - settings.clip, 1.0 + settings.clip)
                policy_loss = -torch.min(ratio * better, clipped * better).mean()
                guessed = agent.value(flat_seen[rows]).squeeze(-1)
                value_loss = 0.5 * (guessed - targets[rows]).square().mean()
                entropy = decided.entropy().mean()
                loss = policy_loss + settings.value_weight * value_loss
                loss = loss - settings.entropy_weight * entropy
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), settings.longest_gradient)
                optimizer.step()

        steps = (update + 1) * batch
        recent = ended[-100:]
        if recent:
            reward, length = np.mean(recent, axis=0)
            print(
                f"{steps:,} steps, {len(ended)} episodes, reward {reward:.3f}, "
                f"length {length:.1f}, {steps / (time.monotonic() - began):,.0f} steps/s",
                flush=True,
            )
    env.close()
    torch.save(agent.state_dict(), settings.save_path)
    return float(np.mean([reward for reward, _ in ended[-100:]])) if ended else float("nan")


if __name__ == "__main__":
    main(tyro.cli(Settings))
