"""The agents of one game by name, each with spaces of its own, in episodes of the whole.

An episode lasts from a reset until no agent is left in it. An agent whose own episode ends is out
of it, and does nothing (all zeros) until the next reset; in a party that goes on, its next episode
begins at once. Who joins is in it from then on.
"""

import os
from typing import Any

import numpy as np

from estragon.envs.faces import Eyes, Hands, Masks
from estragon.envs.games import Games
from estragon.envs.launch import Launch
from estragon.envs.outcome import (
    ENDED,
    LAST,
    LEFT,
    TERMINATED,
    TRUNCATED,
    Outcome,
    Sight,
    observations,
)
from estragon.envs.policies import name_of
from estragon.envs.roster import Roster
from estragon.envs.spaces import Spaces
from estragon.support.errors import UserError

Faces = tuple[Eyes, Hands, Masks]
Results = tuple[
    dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
]


class Cast:
    """Who is played in a step, and where in its arrays; made again when somebody comes or goes."""

    def __init__(self, roster: Roster, faces: dict[str, Faces]) -> None:
        self.roster = roster
        self.names = [name_of(agent) for agent in roster.agents]
        widths = [agent.spaces.action_width for agent in roster.agents]
        firsts = roster.actions.tolist()
        self._hands = [faces[name][1] for name in self.names]
        self._spans = [slice(at, at + width) for at, width in zip(firsts, widths, strict=False)]
        rows: dict[Hands, list[slice]] = {}
        for hands, span in zip(self._hands, self._spans, strict=True):
            rows.setdefault(hands, []).append(span)
        self._checks = [
            (hands, np.array([np.arange(span.start, span.stop) for span in spans]))
            for hands, spans in rows.items()
        ]

    def actions(self, given: dict[str, Any], playing: set[str]) -> np.ndarray:
        """What all do, as the game is told it; nothing (all zeros) who is out of the episode."""
        numbers = np.zeros(int(self.roster.actions[-1]), np.float32)
        for name, hands, span in zip(self.names, self._hands, self._spans, strict=True):
            if name in playing:
                if name not in given:
                    raise UserError(f"no action for {name}")
                hands.fill(numbers[span], given[name])
        for hands, places in self._checks:
            hands.checked(numbers[places])
        return numbers

    def sights(self, seen: Sight) -> list[dict[str, Any]]:
        """What each sees."""
        spaces, count = self.roster.spaces, len(self.names)
        if spaces is None:
            return [seen.row(row) for row in range(count)]
        images = seen.images.reshape(count, spaces.image_bytes)
        columns = observations(spaces, seen.numbers.reshape(count, spaces.numbers), images)
        return [{key: column[row] for key, column in columns.items()} for row in range(count)]


class Party:
    """One game, and who is in the episode."""

    def __init__(
        self,
        env_path: str | os.PathLike[str] | None,
        key: str | None,
        options: dict[str, Any],
        *,
        goes_on: bool = False,
    ) -> None:
        """Start the game, or wait for the editor."""
        launch = Launch(env_path, **options)
        if launch.n_parallel != 1:
            raise UserError("n_parallel: this environment is one game; make several of them")
        self._key, self._goes_on = key, goes_on
        self.games = Games(launch)
        self.names: list[str] = []
        """Who is in the episode."""
        self.known: list[str] = []
        """Whoever was seen so far."""
        self._faces: dict[Spaces, Faces] = {}
        self.faces: dict[str, Faces] = {}
        """By name."""
        self._before: dict[str, Any] = {}
        self.begun: dict[str, Any] = {}
        """By name, what is seen first in episodes that began in the last step."""
        try:
            self._get_to_know(self._roster)
            self._cast = Cast(self._roster, self.faces)
        except BaseException:
            self.games.close()
            raise

    @property
    def _roster(self) -> Roster:
        return self.games.rosters[0]

    def reset(self, seed: int | None) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Begin an episode of the whole: observations and infos of all."""
        (outcome,) = self.games.reset(seed)
        self._get_to_know(self._roster)
        self.names = [name_of(agent) for agent in self._roster.agents]
        rows = np.flatnonzero(outcome.states & LEFT == 0)
        seen = {
            name: self._see(outcome.seen.row(row))
            for name, row in zip(self.names, rows, strict=True)
        }
        self._before = seen
        infos = {name: self._info(outcome, row) for name, row in zip(self.names, rows, strict=True)}
        return dict(seen), infos

    def step(self, actions: dict[str, Any]) -> Results:
        """One action of everybody in the episode."""
        before = self._roster
        if before is not self._cast.roster:
            self._cast = Cast(before, self.faces)
        self.games.send([self._cast.actions(actions, set(self.names))])
        (outcome,) = self.games.gather()
        if outcome.calm and len(self.names) == len(before):
            return self._read_calm(outcome)
        return self._read(before, outcome)

    def _read_calm(self, outcome: Outcome) -> Results:
        """Most steps: everybody is in the episode, and goes on."""
        names = self._cast.names
        sights = self._cast.sights(outcome.seen)
        seen = {name: self._see(sight) for name, sight in zip(names, sights, strict=True)}
        if outcome.infos is None and outcome.masks is None:
            infos: dict[str, dict[str, Any]] = {name: {} for name in names}
        else:
            infos = {name: self._info(outcome, row) for row, name in enumerate(names)}
        self.begun = {}
        self._before = seen
        rewards = dict(zip(names, outcome.rewards.tolist(), strict=True))
        going_on = dict.fromkeys(names, False)
        return dict(seen), rewards, going_on, dict(going_on), infos

    def _read(self, before: Roster, outcome: Outcome) -> Results:
        seen: dict[str, Any] = {}
        rewards: dict[str, float] = {}
        terminated: dict[str, bool] = {}
        truncated: dict[str, bool] = {}
        infos: dict[str, dict[str, Any]] = {}
        self._get_to_know(outcome.roster)
        self.begun = {}
        last_row = np.cumsum(outcome.states & LAST != 0) - 1
        playing = set(self.names)
        for row, agent in enumerate(outcome.roster.agents):
            name, state = name_of(agent), int(outcome.states[row])
            new = row >= len(before)
            if new and outcome.lost:  # the same names again
                if self._goes_on:
                    self.begun[name] = self._see(outcome.seen.row(row))
                continue
            if not new and name not in playing:
                continue
            over = bool(state & (ENDED | LEFT))
            rewards[name] = float(outcome.rewards[row])
            terminated[name] = bool(state & TERMINATED)
            # Who leaves without an end of the episode is cut off.
            truncated[name] = bool(state & TRUNCATED) or (over and not state & TERMINATED)
            infos[name] = self._info(outcome, row)
            if state & LAST and outcome.last is not None:
                seen[name] = self._see(outcome.last.row(last_row[row]))
            elif state & ENDED:
                seen[name] = self._before[name]
                infos[name]["final_obs_missing"] = True
            else:
                seen[name] = self._see(outcome.seen.row(row))
            if self._goes_on and state & ENDED and not state & LEFT:
                self.begun[name] = self._see(outcome.seen.row(row))
            if over:
                infos[name].pop("seed", None)  # of an episode that nobody here will see
                infos[name].pop("action_mask", None)
            if state & LEFT:
                infos[name]["agent_left"] = True
        self._before = seen | self.begun
        going_on = [name for name in seen if not (terminated[name] or truncated[name])]
        self.names = [*going_on, *self.begun]
        return dict(seen), rewards, terminated, truncated, infos

    def _see(self, seen: dict[str, np.ndarray]) -> Any:
        return seen if self._key is None else seen[self._key]

    def _info(self, outcome: Outcome, row: int | np.integer[Any]) -> dict[str, Any]:
        info = dict(outcome.infos[row]) if outcome.infos else {}
        agent = outcome.roster.agents[row]
        masks = self._faces[agent.spaces][2]
        if masks.are_told and outcome.masks is not None:
            first = int(outcome.roster.mask_bytes[row])
            told = outcome.masks[first : first + agent.spaces.mask_bytes]
            info["action_mask"] = masks.all_choices(told[None])[0].astype(np.int8)
        return info

    def _get_to_know(self, roster: Roster) -> None:
        for agent in roster.agents:
            name = name_of(agent)
            if name not in self.faces:
                spaces = agent.spaces
                if spaces not in self._faces:
                    self._faces[spaces] = Eyes(spaces, self._key), Hands(spaces), Masks(spaces)
                self.faces[name] = self._faces[spaces]
                self.known.append(name)
