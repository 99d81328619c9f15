"""A game as an env runner plays it: flat observations, and an episode per agent.

RLlib's own multi-agent runner counts a step of the game as one step, and lets agents whose episode
has ended wait for all others. Here every agent is an environment of its own to RLlib: steps are
steps of agents, and a network decides for all agents of its policy at once.
"""

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from ray.rllib.core.columns import Columns
from ray.rllib.env.env_context import EnvContext
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode

from estragon.envs.parameter_feed import ParameterFeed
from estragon.envs.pettingzoo_env import MultiAgentStep
from estragon.envs.rllib_env import GodotMultiAgentEnv
from estragon.envs.wire import PARAMETERS
from estragon.support.errors import UserError
from estragon.trainers.metrics import Episodes
from estragon.trainers.spaces import describe, has_images, is_image

ENDED, GAME_STEPS, FEEDS = "ended_episodes", "game_steps", "parameter_feeds"
_kept: "list[GameEnv]" = []


@dataclasses.dataclass(frozen=True)
class Role:
    """What a policy observes and does."""

    sees: spaces.Dict
    """As the game has it."""
    does: spaces.Space[Any]
    actions: tuple[tuple[str, str, int], ...]
    """(key, continuous or discrete, size) in the game's order."""
    agents: int
    """How many it plays in a game."""


class GameEnv(GodotMultiAgentEnv):
    """A game whose agents' episodes follow each other; `begun` has those of the last step."""

    autoreset = True

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        """Start the game, or wait for the editor."""
        self._sees: dict[str, spaces.Dict] = {}
        self._only: str | None = (config or {}).get("key")
        super().__init__(config)

    @property
    def begun(self) -> dict[str, Any]:
        """By agent, the first observation of an episode that began in the last step."""
        return self._flat(self._env.reset_obs)

    def get_observation_space(self, agent_id: str) -> spaces.Space[Any]:
        """An agent's observations as a network has them."""
        return self.observation_spaces[agent_id]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Start an episode of every agent."""
        seen, infos = super().reset(seed=seed, options=options)
        return self._flat(seen), infos

    def step(self, action_dict: dict[str, Any]) -> MultiAgentStep:
        """One action of every agent."""
        seen, rewards, terminated, truncated, infos = super().step(action_dict)
        return self._flat(seen), rewards, terminated, truncated, infos

    def roles(self, policy_of: Callable[..., str]) -> dict[str, Role]:
        """By policy, what it is for; all agents of a policy must be alike."""
        found: dict[str, Role] = {}
        for agent in self.possible_agents:
            policy = policy_of(agent)
            specs = self._env.codecs[agent].action.actions
            actions = tuple((spec.key, spec.kind, spec.size) for spec in specs)
            role = Role(self._sees[agent], self.get_action_space(agent), actions, 1)
            if (other := found.get(policy)) is not None:
                if (other.sees, other.does) != (role.sees, role.does):
                    raise UserError(
                        f"policy {policy} cannot play {agent}: it sees {describe(role.sees)} and "
                        f"does {describe(role.does)}, others of that policy see "
                        f"{describe(other.sees)} and do {describe(other.does)}; map them to "
                        "different policies"
                    )
                role = dataclasses.replace(other, agents=other.agents + 1)
            found[policy] = role
        if not found:
            raise UserError("the game has no agents; add an AIController to its scene")
        return found

    def _flat(self, seen: dict[str, Any]) -> dict[str, Any]:
        if self._only is not None:
            seen = {agent: {self._only: each} for agent, each in seen.items()}
        return {agent: flatten(self._sees[agent], each) for agent, each in seen.items()}

    def _update_agents(self) -> None:
        super()._update_agents()
        if len(self.possible_agents) != len(self._sees):
            for agent in self.possible_agents:
                sees: Any = self._env.observation_space(agent)
                self._sees[agent] = spaces.Dict({self._only: sees}) if self._only else sees
            self.observation_spaces = {name: flat_space(each) for name, each in self._sees.items()}


def make_env(config: EnvContext) -> GameEnv:
    """A game for an env runner: the one kept for it, or a new one."""
    if _kept:
        return _kept.pop()
    if "log_folder" in config:
        folder = f"{config['log_folder']}/runner_{config.worker_index}"
        config = config.copy_with_overrides(env_config={**config, "log_folder": folder})
    return GameEnv(config)


def keep_env(env: GameEnv) -> None:
    """Keep a game for the next env runner of this process."""
    _kept.append(env)


def close_kept_envs() -> None:
    """Close games that no env runner took."""
    while _kept:
        _kept.pop().close()


def flat_space(sees: spaces.Dict) -> spaces.Box:
    """Numbers in a row with choices one-hot, or a single image scaled to 0..1."""
    parts = list(sees.spaces.values())
    if len(parts) == 1 and is_image(parts[0]):
        return spaces.Box(0.0, 1.0, parts[0].shape, np.float32)
    if has_images(sees):
        raise UserError(
            "RLlib's networks see either numbers or one image; choose with key under env_config "
            f"in the YAML file ({', '.join(sees.spaces)})"
        )
    row: Any = spaces.flatten_space(sees)
    return spaces.Box(row.low.astype(np.float32), row.high.astype(np.float32))


def flatten(sees: spaces.Dict, seen: dict[str, Any]) -> np.ndarray:
    """An observation as an element of `flat_space`."""
    if has_images(sees):
        (image,) = seen.values()
        return np.asarray(image, np.float32) / np.float32(255.0)
    row: Any = spaces.flatten(sees, seen)
    return np.asarray(row, np.float32)


class GameRunner(MultiAgentEnvRunner):
    """Collects steps of all agents of one game."""

    _needs_initial_reset: bool
    _episodes: dict[str, MultiAgentEpisode]
    """By agent, its episode, or the part of it that was not returned yet."""
    _totals: dict[str, tuple[float, int]]
    """By agent, reward and steps of its episode."""
    _lessons: dict[str, int]
    """By agent, the lesson of its episode."""

    @property
    def _feed(self) -> ParameterFeed | None:
        """What draws the game's parameters; None without parameters, or without a game."""
        return None if self.env is None else self.env.envs[0].unwrapped.parameter_feed

    @property
    def _number(self) -> int:
        """From 1; 0 of the only one, in the trainer's process."""
        return self.worker_index or 0

    def set_lesson(self, lesson: int) -> None:
        """Teach a lesson from the next episodes on."""
        if self._feed is not None:
            self._feed.set_lesson(lesson)

    def continue_lesson(self, lesson: int, feeds: Mapping[int, Mapping[str, Any]]) -> None:
        """Before the first episode: teach a lesson with the draws after those of `feeds`."""
        if self._feed is not None and self._number in feeds:
            self._feed.restore(feeds[self._number])
        self.set_lesson(lesson)

    def _sample(
        self,
        *,
        num_timesteps: int | None = None,
        num_episodes: int | None = None,
        explore: bool,
        random_actions: bool = False,
        force_reset: bool = False,
    ) -> list[MultiAgentEpisode]:
        game: GameEnv = self.env.envs[0].unwrapped
        if force_reset or self._needs_initial_reset or num_episodes is not None:
            self._needs_initial_reset = num_episodes is not None
            self._episodes, self._totals, self._lessons = {}, {}, {}
            self._begin(game, game.reset()[0])
        collected: list[MultiAgentEpisode] = []
        steps: Counter[str] = Counter()
        while (
            steps.total() < num_timesteps
            if num_timesteps is not None
            else len(collected) < (num_episodes or 1)
        ):
            decided = self._decide(game, steps.total(), explore, random_actions)
            collected += self._step(game, *decided, steps)
        if num_timesteps is not None:
            collected += self._cut()
        self._log_steps(steps)
        if self._feed is not None:
            line = json.dumps([self._number, self._feed.save()])
            self.metrics.log_value(FEEDS, line, reduce="item_series")
        return [episode.to_numpy() for episode in collected]

    def _begin(self, game: GameEnv, seen: dict[str, Any]) -> None:
        for agent, first in seen.items():
            episode = MultiAgentEpisode(
                observation_space={agent: game.get_observation_space(agent)},
                action_space={agent: game.get_action_space(agent)},
                agent_to_module_mapping_fn=self.config.policy_mapping_fn,
            )
            episode.add_env_reset(observations={agent: first})
            self._episodes[agent], self._totals[agent] = episode, (0.0, 0)
            self._lessons[agent] = self._feed.lesson if self._feed is not None else 0

    def _decide(
        self, game: GameEnv, steps: int, explore: bool, random_actions: bool
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, dict[str, Any]]]:
        """By agent: the networks' actions; these within the game's bounds; further outputs."""
        if random_actions or self.module is None:
            drawn = {agent: game.get_action_space(agent).sample() for agent in self._episodes}
            return drawn, drawn, {}
        context = {
            "rl_module": self.module,
            "episodes": list(self._episodes.values()),
            "explore": explore,
            "shared_data": {"vector_env_episodes_map": {}},
            "metrics": None,
        }
        batch = self._env_to_module(batch={}, **context)
        if explore:
            runners = self.config.num_env_runners or 1
            done = (self.num_env_steps_sampled_lifetime // runners + steps) * runners
            outputs = self.module.forward_exploration(batch, t=done)
        else:
            outputs = self.module.forward_inference(batch)
        outputs = self._module_to_env(batch=outputs, **context)
        actions = outputs.pop(Columns.ACTIONS)
        for_game = outputs.pop(Columns.ACTIONS_FOR_ENV, actions)
        numbered = list(enumerate(self._episodes))
        return (
            {agent: actions[i][agent] for i, agent in numbered},
            {agent: for_game[i][agent] for i, agent in numbered},
            {
                agent: {name: each[i][agent] for name, each in outputs.items()}
                for i, agent in numbered
            },
        )

    def _step(
        self,
        game: GameEnv,
        actions: dict[str, Any],
        for_game: dict[str, Any],
        outputs: dict[str, dict[str, Any]],
        counted: Counter[str],
    ) -> list[MultiAgentEpisode]:
        """One step of the game; returns the episodes that ended."""
        seen, rewards, terminated, truncated, infos = game.step(for_game)
        ended: list[MultiAgentEpisode] = []
        joined = {agent: seen[agent] for agent in seen if agent not in self._episodes}
        for agent in list(self._episodes):
            if agent not in rewards:
                del self._episodes[agent]  # left the game without a last step
                continue
            episode = self._episodes[agent]
            episode.add_env_step(
                observations={agent: seen[agent]},
                actions={agent: actions[agent]},
                rewards={agent: rewards[agent]},
                terminateds={agent: terminated[agent], "__all__": terminated[agent]},
                truncateds={agent: truncated[agent], "__all__": truncated[agent]},
                extra_model_outputs={agent: outputs.get(agent, {})},
            )
            counted[episode.module_for(agent)] += 1
            reward, steps = self._totals[agent]
            self._totals[agent] = (reward + rewards[agent], steps + 1)
            if terminated[agent] or truncated[agent]:
                ended.append(episode)
                self._log_end(agent, episode, infos[agent])
                del self._episodes[agent]
        self._begin(game, joined | game.begun)
        self.metrics.log_value(GAME_STEPS, 1, reduce="sum")
        return ended

    def _cut(self) -> list[MultiAgentEpisode]:
        """What there is of unfinished episodes; the rest follows with the next sample."""
        begun = {agent: episode for agent, episode in self._episodes.items() if len(episode)}
        back = self.config.episode_lookback_horizon
        self._episodes |= {
            agent: episode.cut(len_lookback_buffer=back) for agent, episode in begun.items()
        }
        return list(begun.values())

    def _log_end(self, agent: str, episode: MultiAgentEpisode, info: dict[str, Any]) -> None:
        if "game_lost" in info:
            return
        told = {
            key: value
            for key, value in info.items()
            if isinstance(value, bool | int | float) or key == PARAMETERS
        }
        line = json.dumps(
            [episode.module_for(agent), *self._totals[agent], told, self._lessons[agent]]
        )
        self.metrics.log_value(ENDED, line, reduce="item_series")
        self.metrics.log_value("num_episodes", 1, reduce="sum")
        self.metrics.log_value("num_episodes_lifetime", 1, reduce="lifetime_sum")

    def _log_steps(self, counted: Counter[str]) -> None:
        total = counted.total()
        self.metrics.log_value("num_env_steps_sampled", total, reduce="sum")
        self.metrics.log_value(
            "num_env_steps_sampled_lifetime", total, reduce="lifetime_sum", with_throughput=True
        )
        for policy, steps in counted.items():
            for who in ("module", "agent"):
                key = f"num_{who}_steps_sampled"
                self.metrics.log_value((key, policy), steps, reduce="sum")
                self.metrics.log_value((f"{key}_lifetime", policy), steps, reduce="lifetime_sum")


def ended_of(result: Mapping[str, Any]) -> list[tuple[str, float, int, dict[str, Any], int]]:
    """Policy, reward, length, last info and lesson of the episodes that ended in an iteration."""
    return [tuple(json.loads(line)) for line in _lines(result, ENDED)]


def episodes_of(result: Mapping[str, Any]) -> dict[str, Episodes]:
    """By policy, the episodes that ended in an iteration."""
    found: dict[str, Episodes] = {}
    for policy, reward, steps, info, _ in ended_of(result):
        found.setdefault(policy, Episodes()).add(reward, steps, info)
    return found


def feeds_of(result: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """By number of the env runner, the state of its draws at the end of an iteration."""
    return dict(json.loads(line) for line in _lines(result, FEEDS))


def _lines(result: Mapping[str, Any], key: str) -> list[str]:
    """The items of a series; RLlib reports a single one without its list."""
    found: Any = result.get("env_runners", {}).get(key)
    if isinstance(found, str):
        return [found]
    return found if isinstance(found, list) else []


def steps_of(result: Mapping[str, Any]) -> tuple[int, int]:
    """Steps of agents and of games in an iteration."""
    found = result.get("env_runners", {})
    keys = ("num_env_steps_sampled", GAME_STEPS)
    agents, games = (int(np.nan_to_num(found.get(key, 0))) for key in keys)
    return agents, games
