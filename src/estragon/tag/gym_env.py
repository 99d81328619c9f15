"""The embedded engine for Gymnasium: one role is yours, a bot or a policy plays the other."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from estragon.support.errors import UserError
from estragon.tag.arenas import SEEDS, Arenas, Results
from estragon.tag.layout import Layout
from estragon.tag.matches import Player, load_player
from estragon.tag.rules import (
    ACTION_SIZE,
    GOING_ON,
    ROLES,
    TAGGED,
    TERMS,
    TIMED_OUT,
    Role,
    Rules,
    load_rules,
)

OPPONENTS = {"seeker": "bot:evader", "hider": "bot:chaser"}
REASONS = {TAGGED: "tag", TIMED_OUT: "timeout"}


class TagVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """`num_envs` arenas that restart by themselves in the step that ends an episode.

    Every end is a termination: running out of time is a rule of the game, and the time left is part
    of the observation. `info["final_obs"]` holds the last sight of the episodes that `_final_obs`
    marks.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(
        self,
        num_envs: int = 1,
        role: Role = "seeker",
        opponent: str | Player | None = None,
        layout: str | None = None,
        rules: str | None = None,
        rewards: str | None = None,
        threads: int | None = None,
    ) -> None:
        """Prepare the arenas.

        Args:
            num_envs: arenas side by side.
            role: the role you begin each episode with.
            opponent: bot:NAME, a policy file, or anything with `act`; by default the bot for the
                other role.
            layout: boxes, as `estragon.tag.layout.load_layouts` reads them.
            rules: seek, transfer or hide.
            rewards: the reward profile.
            threads: threads to play on; None for all cores.
        """
        if role not in ROLES:
            raise UserError(f"role: expected seeker or hider, got '{role}'")
        loaded = load_rules(rules=rules, rewards=rewards)
        self.role = role
        self.num_envs = num_envs
        self.arenas = Arenas(num_envs, rules=loaded, layout=layout, threads=threads)
        self.me = ROLES.index(role)
        chosen = opponent if opponent is not None else OPPONENTS[role]
        self.opponent = (
            load_player(chosen, loaded, ROLES[1 - self.me]) if isinstance(chosen, str) else chosen
        )
        self.single_observation_space = observation_space(loaded, self.arenas.layouts)
        self.single_action_space = action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._actions = np.zeros((num_envs, 2, ACTION_SIZE), dtype=np.float32)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Restart: with a seed, from its first episode; without, with the next ones."""
        first = seed[0] if isinstance(seed, list) else seed
        super().reset(seed=first)
        begin(self.arenas, first, self.np_random)
        return self._observations(), {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One decision in every arena; episodes that end begin again at once."""
        results = self.arenas.step(self.with_opponent(actions))
        ended = results.ends != GOING_ON
        info: dict[str, Any] = {
            "distance_to_other": results.distances.copy(),
            "ticks": results.ticks.copy(),
            "terminal_reason": results.ends.copy(),
            "won": (results.winners == self.me),
        }
        for index, term in enumerate(TERMS):
            info[f"reward_{term}"] = results.terms[:, self.me, index].copy()
        if ended.any():
            info["final_obs"] = results.final_observations[:, self.me].copy()
            info["_final_obs"] = ended
        rewards = results.rewards[:, self.me].astype(np.float64)
        return self._observations(), rewards, ended, np.zeros_like(ended), info

    def with_opponent(self, actions: np.ndarray) -> np.ndarray:
        """Your actions (num_envs, 3) and the opponent's, for both agents of every arena."""
        seen = self.arenas.observations[:, 1 - self.me]
        self._actions[:, self.me] = actions
        self._actions[:, 1 - self.me] = self.opponent.act(np.ascontiguousarray(seen))
        return self._actions

    def _observations(self) -> np.ndarray:
        return self.arenas.observations[:, self.me].copy()


class TagEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """A single match at a time; for speed, take `TagVectorEnv`."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        role: Role = "seeker",
        opponent: str | Player | None = None,
        layout: str | None = None,
        rules: str | None = None,
        rewards: str | None = None,
    ) -> None:
        """Prepare the arena; arguments as for `TagVectorEnv`."""
        self._many = TagVectorEnv(1, role, opponent, layout, rules, rewards, threads=1)
        self.observation_space = self._many.single_observation_space
        self.action_space = self._many.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode: with a seed, its first one; without, the next."""
        super().reset(seed=seed, options=options)
        begin(self._many.arenas, seed, self.np_random)
        return self._many.arenas.observations[0, self._many.me].copy(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """One decision."""
        arenas, me = self._many.arenas, self._many.me
        was_seeker = bool(arenas.is_seeker[0, me])
        results = arenas.step(self._many.with_opponent(action[None]), restart=False)
        ended = bool(results.ends[0] != GOING_ON)
        info = agent_info(results, me, was_seeker)
        reward = float(results.rewards[0, me])
        return results.observations[0, me].copy(), reward, ended, False, info


def observation_space(rules: Rules, layouts: list[Layout]) -> Box:
    """Bounds that no observation leaves: the arena's extent, and the fastest fall in it."""
    tallest = max((box.size_m[1] for layout in layouts for box in layout.boxes), default=0.0)
    top = tallest + rules.jump_height_m + 2.0 * rules.agent.size_m
    fall = (2.0 * rules.physics.gravity_mps2 * top) ** 0.5 + rules.physics.gravity_mps2
    length = max(rules.arena.width_m, rules.arena.depth_m, top)
    speed = max(rules.agent.speed_mps, rules.agent.jump_speed_mps, fall)
    scales = rules.observation
    bound = max(1.0, length / scales.position_scale_m, speed / scales.velocity_scale_mps)
    return Box(-bound, bound, (rules.observation.size,), np.float32)


def action_space() -> Box:
    """move_x, move_z and jump, each from -1 to 1."""
    return Box(-1.0, 1.0, (ACTION_SIZE,), np.float32)


def begin(arenas: Arenas, seed: int | None, random: np.random.Generator) -> None:
    """Begin an episode everywhere: the seed's first, or without a seed the next.

    `random` draws a seed for arenas that have neither begun nor been given one.
    """
    if seed is not None:
        arenas.reset(seed % SEEDS)
    elif arenas.begun:
        arenas.next_episode()
    else:
        arenas.reset(int(random.integers(SEEDS)))


def agent_info(results: Results, agent: int, is_seeker: bool) -> dict[str, Any]:
    """One agent's info in the first arena; the last one of an episode also says how it ended."""
    info: dict[str, Any] = {
        "role": ROLES[not is_seeker],
        "distance_to_other": float(results.distances[0]),
        "ticks": int(results.ticks[0]),
        "reward_terms": dict(zip(TERMS, results.terms[0, agent].tolist(), strict=True)),
    }
    if results.ends[0] != GOING_ON:
        winner = int(results.winners[0])
        info["terminal_reason"] = REASONS[int(results.ends[0])]
        info["won"] = winner == agent
        info["draw"] = winner < 0
    return info
