"""An env runner that plays one game with all its agents, each in episodes of its own.

RLlib's own runner counts a step of a game as one, and has agents whose episode ended wait for all
others. Here every agent is an environment to RLlib, so that steps are steps of agents, and networks
decide for all agents of a policy at once.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from ray.rllib.core.columns import Columns
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode

from estragon.trainers.metrics import Episodes
from estragon.trainers.rllib.env import GameEnv

ENDED, GAME_STEPS = "ended_episodes", "game_steps"


class Decisions(NamedTuple):
    """By agent."""

    actions: dict[str, Any]
    """As the networks mean them, to learn from."""
    for_game: dict[str, Any]
    """Within the bounds of the game."""
    more: dict[str, dict[str, Any]]
    """What else the networks said: odds, states."""


class GameRunner(MultiAgentEnvRunner):
    """Collects steps of all agents of one game."""

    _needs_initial_reset: bool
    _going: dict[str, MultiAgentEpisode]
    """By agent, its episode, or the part of it that was not handed over yet."""
    _so_far: dict[str, tuple[float, int]]
    """By agent, reward and steps of its episode."""

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
            self._going, self._so_far = {}, {}
            self._begin(game, game.reset()[0])
        collected: list[MultiAgentEpisode] = []
        counted: Counter[str] = Counter()
        while (
            counted.total() < num_timesteps
            if num_timesteps is not None
            else len(collected) < (num_episodes or 1)
        ):
            decided = self._decide(game, counted.total(), explore, random_actions)
            collected += self._step(game, decided, counted)
        if num_timesteps is not None:
            collected += self._cut()
        self._tell(counted)
        return [episode.to_numpy() for episode in collected]

    def _begin(self, game: GameEnv, seen: dict[str, Any]) -> None:
        for agent, first in seen.items():
            episode = MultiAgentEpisode(
                observation_space={agent: game.get_observation_space(agent)},
                action_space={agent: game.get_action_space(agent)},
                agent_to_module_mapping_fn=self.config.policy_mapping_fn,
            )
            episode.add_env_reset(observations={agent: first})
            self._going[agent], self._so_far[agent] = episode, (0.0, 0)

    def _decide(self, game: GameEnv, steps: int, explore: bool, by_chance: bool) -> Decisions:
        if by_chance or self.module is None:
            drawn = {agent: game.get_action_space(agent).sample() for agent in self._going}
            return Decisions(drawn, drawn, {})
        agents, episodes = list(self._going), list(self._going.values())
        shared: dict[str, Any] = {"vector_env_episodes_map": {}}
        context = {
            "rl_module": self.module,
            "episodes": episodes,
            "explore": explore,
            "shared_data": shared,
            "metrics": None,
        }
        seen = self._env_to_module(batch={}, **context)
        if explore:
            runners = self.config.num_env_runners or 1
            done = (self.num_env_steps_sampled_lifetime // runners + steps) * runners
            said = self.module.forward_exploration(seen, t=done)
        else:
            said = self.module.forward_inference(seen)
        said = self._module_to_env(batch=said, **context)
        actions = said.pop(Columns.ACTIONS)
        for_game = said.pop(Columns.ACTIONS_FOR_ENV, actions)
        return Decisions(
            {agent: actions[place][agent] for place, agent in enumerate(agents)},
            {agent: for_game[place][agent] for place, agent in enumerate(agents)},
            {
                agent: {name: column[place][agent] for name, column in said.items()}
                for place, agent in enumerate(agents)
            },
        )

    def _step(
        self, game: GameEnv, decided: Decisions, counted: Counter[str]
    ) -> list[MultiAgentEpisode]:
        """One step of the game; the episodes that ended."""
        seen, rewards, terminated, truncated, infos = game.step(decided.for_game)
        over: list[MultiAgentEpisode] = []
        joined = {agent: seen[agent] for agent in seen if agent not in self._going}
        for agent in list(self._going):
            if agent not in rewards:
                del self._going[agent]  # gone without a word
                continue
            episode = self._going[agent]
            ends = {agent: terminated[agent], "__all__": terminated[agent]}
            cuts = {agent: truncated[agent], "__all__": truncated[agent]}
            episode.add_env_step(
                observations={agent: seen[agent]},
                actions={agent: decided.actions[agent]},
                rewards={agent: rewards[agent]},
                terminateds=ends,
                truncateds=cuts,
                extra_model_outputs={agent: decided.more.get(agent, {})},
            )
            counted[episode.module_for(agent)] += 1
            paid, steps = self._so_far[agent]
            self._so_far[agent] = (paid + rewards[agent], steps + 1)
            if terminated[agent] or truncated[agent]:
                over.append(episode)
                self._tell_end(agent, episode, infos[agent])
                del self._going[agent]
        self._begin(game, joined | game.begun)
        self.metrics.log_value(GAME_STEPS, 1, reduce="sum")
        return over

    def _cut(self) -> list[MultiAgentEpisode]:
        """What there is of episodes that go on; the rest follows with the next sample."""
        begun = {agent: episode for agent, episode in self._going.items() if len(episode)}
        back = self.config.episode_lookback_horizon
        self._going |= {
            agent: episode.cut(len_lookback_buffer=back) for agent, episode in begun.items()
        }
        return list(begun.values())

    def _tell_end(self, agent: str, episode: MultiAgentEpisode, info: dict[str, Any]) -> None:
        if "game_lost" in info:
            return
        reward, steps = self._so_far[agent]
        told = {k: v for k, v in info.items() if isinstance(v, bool | int | float)}
        line = json.dumps([episode.module_for(agent), reward, steps, told])
        self.metrics.log_value(ENDED, line, reduce="item_series")
        self.metrics.log_value("num_episodes", 1, reduce="sum")
        self.metrics.log_value("num_episodes_lifetime", 1, reduce="lifetime_sum")

    def _tell(self, counted: Counter[str]) -> None:
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


def episodes_of(result: Mapping[str, Any]) -> dict[str, Episodes]:
    """By policy, the episodes that ended in an iteration."""
    found: dict[str, Episodes] = {}
    told: Any = result.get("env_runners", {}).get(ENDED)
    for line in told if isinstance(told, list) else []:
        policy, reward, steps, info = json.loads(line)
        found.setdefault(policy, Episodes()).add(reward, steps, info)
    return found


def steps_of(result: Mapping[str, Any]) -> tuple[int, int]:
    """Steps of agents and of games in an iteration."""
    told = result.get("env_runners", {})
    agents, games = (float(told.get(key, 0.0)) for key in ("num_env_steps_sampled", GAME_STEPS))
    return (0 if math.isnan(agents) else int(agents)), (0 if math.isnan(games) else int(games))
