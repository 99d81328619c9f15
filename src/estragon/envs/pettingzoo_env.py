"""PettingZoo: one game as a `ParallelEnv`, with agents of different spaces that join and leave."""

import itertools
import os
from typing import Any

import numpy as np
from gymnasium import Space
from pettingzoo import ParallelEnv

from estragon.envs.launch import Launch
from estragon.envs.pool import GamePool, PoolProperties
from estragon.envs.spaces import ActionCodec, AgentSpaces, MaskCodec, ObservationCodec
from estragon.envs.wire import (
    ENDED,
    HAS_FINAL_OBS,
    LEFT,
    PARAMETERS,
    TERMINATED,
    TRUNCATED,
    AgentTable,
    StepResult,
)
from estragon.support.errors import UserError

MultiAgentStep = tuple[
    dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
]


def policy_of(agent_id: str, *_: Any, **__: Any) -> str:
    """The policy in an agent's name: RLlib's `policy_mapping_fn` for every game."""
    return agent_id.rpartition(":")[0]


class AgentCodecs:
    """The codecs of agents with the same spaces."""

    def __init__(self, spaces: AgentSpaces, key: str | None) -> None:
        self.obs = ObservationCodec(spaces, key)
        self.action = ActionCodec(spaces)
        self.mask = MaskCodec(spaces)


class ActionLayout:
    """Where each agent's action is in the array that is sent; made again when agents change."""

    def __init__(self, table: AgentTable, codecs: dict[str, AgentCodecs]) -> None:
        self.table = table
        self.names = [agent.name for agent in table.agents]
        ends = table.action_offsets.tolist()
        spans = [slice(*span) for span in itertools.pairwise(ends)]
        self._agents = [
            (name, codecs[name].action, span) for name, span in zip(self.names, spans, strict=True)
        ]
        columns: dict[ActionCodec, list[np.ndarray]] = {}
        for _, codec, span in self._agents:
            columns.setdefault(codec, []).append(np.arange(span.start, span.stop))
        self._columns = [(codec, np.array(rows)) for codec, rows in columns.items()]

    def encode(self, actions: dict[str, Any], playing: set[str]) -> np.ndarray:
        """The actions of all agents; zeros for those whose episode is over."""
        values = np.zeros(int(self.table.action_offsets[-1]), np.float32)
        for name, codec, span in self._agents:
            if name in playing:
                if name not in actions:
                    raise UserError(f"no action for {name}")
                codec.encode_into(values[span], actions[name])
        for codec, columns in self._columns:
            codec.check(values[columns])
        return values


class GodotParallelEnv(PoolProperties, ParallelEnv[str, Any, Any]):
    """Agents are named after their policy and id, such as shared_policy:3.

    An episode lasts from `reset` until no agent is left. An agent whose own episode ends is
    removed, as PettingZoo requires: the game starts its next one, in which it does nothing (all
    zeros) until `reset`. Agents may leave (truncated, `agent_left` in their info) and join: they
    are then in `agents`, in what `step` returns, and from then on in `possible_agents`. When the
    game is lost, all agents are truncated with `game_lost`, and `reset` finds the game restarted.

    Games with an older addon send no terminal observations and do not distinguish time limits:
    every end is a termination, with the observation before the last step and `final_obs_missing` in
    the info.
    """

    metadata: dict[str, Any] = {"name": "estragon_godot_v0", "render_modes": []}
    render_mode = None

    def __init__(
        self,
        env_path: str | os.PathLike[str] | None = None,
        *,
        key: str | None = None,
        autoreset: bool = False,
        **options: Any,
    ) -> None:
        """Start the one game that `Launch` describes; `key` selects one observation of a dict.

        With `autoreset`, an agent whose episode ended stays in `agents`; its next episode starts in
        the same step, with the observation in `reset_obs`.
        """
        launch = Launch(env_path, **options)
        if launch.n_parallel != 1:
            raise UserError(
                f"n_parallel: this environment is one game, got {launch.n_parallel}; make several"
            )
        self._key, self._autoreset = key, autoreset
        self._pool = GamePool(launch)
        self.possible_agents: list[str] = []
        self.agents: list[str] = []
        self.reset_obs: dict[str, Any] = {}
        """With `autoreset`, the first observations of episodes that started in the last step."""
        self.codecs: dict[str, AgentCodecs] = {}
        """By agent."""
        self._codecs_by_spaces: dict[AgentSpaces, AgentCodecs] = {}
        self._last_obs: dict[str, Any] = {}
        try:
            self._add_agents(self._table)
            self._layout = ActionLayout(self._table, self.codecs)
        except BaseException:
            self._pool.close()
            raise

    def observation_space(self, agent: str) -> Space[Any]:
        """The observation space of an agent."""
        return self.codecs[agent].obs.space

    def action_space(self, agent: str) -> Space[Any]:
        """The action space of an agent."""
        return self.codecs[agent].action.space

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Start an episode: with a seed, its first one; without, the next."""
        (result,) = self._pool.reset(seed)
        self._add_agents(self._table)
        self.agents = [agent.name for agent in self._table.agents]
        rows = dict(zip(self.agents, result.remaining().tolist(), strict=True))
        self._last_obs = {name: self._obs(result, row) for name, row in rows.items()}
        return dict(self._last_obs), {name: self._info(result, row) for name, row in rows.items()}

    def step(self, actions: dict[str, Any]) -> MultiAgentStep:
        """One action of every agent in `agents`."""
        if not self.agents:
            return {}, {}, {}, {}, {}
        if self._table is not self._layout.table:
            self._layout = ActionLayout(self._table, self.codecs)
        self._pool.send([self._layout.encode(actions, set(self.agents))])
        (result,) = self._pool.receive()
        self.reset_obs = {}
        if result.uneventful and len(self.agents) == len(result.table):
            return self._uneventful_step(result)
        return self._step(result)

    def call(self, method: str) -> list[Any]:
        """Call a method of every agent in the game; returns what each returned."""
        return self._pool.call(method)

    def close(self) -> None:
        """Stop the game."""
        self._pool.close()

    @property
    def _table(self) -> AgentTable:
        return self._pool.tables[0]

    def _uneventful_step(self, result: StepResult) -> MultiAgentStep:
        """The fast path for most steps: all agents play, and their episodes continue."""
        names, spaces = self._layout.names, result.table.spaces
        if spaces is None:
            obs = {name: self._obs(result, row) for row, name in enumerate(names)}
        else:
            values = result.obs.values.reshape(len(names), spaces.obs_size)
            images = result.obs.images.reshape(len(names), spaces.image_size)
            columns = spaces.split(values, images)
            select = self.codecs[names[0]].obs.select
            obs = {
                name: select({key: column[row] for key, column in columns.items()})
                for row, name in enumerate(names)
            }
        if result.infos is None and result.masks is None:
            infos: dict[str, dict[str, Any]] = {name: {} for name in names}
        else:
            infos = {name: self._info(result, row) for row, name in enumerate(names)}
        self._last_obs = obs
        rewards = dict(zip(names, result.rewards.tolist(), strict=True))
        ended = dict.fromkeys(names, False)
        return dict(obs), rewards, ended, dict(ended), infos

    def _step(self, result: StepResult) -> MultiAgentStep:
        obs: dict[str, Any] = {}
        rewards: dict[str, float] = {}
        terminated: dict[str, bool] = {}
        truncated: dict[str, bool] = {}
        infos: dict[str, dict[str, Any]] = {}
        self._add_agents(result.table)
        final_row = np.cumsum(result.flags & HAS_FINAL_OBS != 0) - 1
        playing = set(self.agents)
        num_before = len(result.table) - result.num_joined
        for row, agent in enumerate(result.table.agents):
            name, flags = agent.name, int(result.flags[row])
            joined = row >= num_before
            if joined and result.lost_reason:  # the same names again
                if self._autoreset:
                    self.reset_obs[name] = self._obs(result, row)
                continue
            if not joined and name not in playing:
                continue
            ended = bool(flags & (ENDED | LEFT))
            rewards[name] = float(result.rewards[row])
            terminated[name] = bool(flags & TERMINATED)
            # An agent that leaves during its episode is truncated.
            truncated[name] = bool(flags & TRUNCATED) or (ended and not flags & TERMINATED)
            infos[name] = info = self._info(result, row)
            if flags & HAS_FINAL_OBS and result.final_obs is not None:
                final = result.final_obs.by_key(final_row[row])
                obs[name] = self.codecs[name].obs.select(final)
            elif flags & ENDED:
                obs[name] = self._last_obs[name]
                info["final_obs_missing"] = True
            else:
                obs[name] = self._obs(result, row)
            if self._autoreset and flags & ENDED and not flags & LEFT:
                self.reset_obs[name] = self._obs(result, row)
            if ended:  # the seed and the mask are those of the next episode
                info.pop("seed", None)
                info.pop("action_mask", None)
            if row in result.parameters:
                info[PARAMETERS] = result.parameters[row]
            if flags & LEFT:
                info["agent_left"] = True
        self._last_obs = obs | self.reset_obs
        continuing = [name for name in obs if not (terminated[name] or truncated[name])]
        self.agents = [*continuing, *self.reset_obs]
        return dict(obs), rewards, terminated, truncated, infos

    def _obs(self, result: StepResult, row: int) -> Any:
        codec = self.codecs[result.table.agents[row].name].obs
        return codec.select(result.obs.by_key(row))

    def _info(self, result: StepResult, row: int) -> dict[str, Any]:
        info = result.info(row)
        codec = self.codecs[result.table.agents[row].name].mask
        if codec.available and result.masks is not None:
            info["action_mask"] = codec.decode(result.mask(row)[None])[0].astype(np.int8)
        return info

    def _add_agents(self, table: AgentTable) -> None:
        for agent in table.agents:
            if agent.name not in self.codecs:
                spaces = agent.spaces
                if spaces not in self._codecs_by_spaces:
                    self._codecs_by_spaces[spaces] = AgentCodecs(spaces, self._key)
                self.codecs[agent.name] = self._codecs_by_spaces[spaces]
                self.possible_agents.append(agent.name)
