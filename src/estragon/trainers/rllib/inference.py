"""A trained checkpoint at play."""

import contextlib
from typing import Any

import numpy as np

from estragon.support.interrupts import STOP_SIGNALS, deferred_interrupts
from estragon.support.progress import Progress
from estragon.trainers.controller import Controller
from estragon.trainers.metrics import Episodes
from estragon.trainers.rllib.env import GameEnv
from estragon.trainers.rllib.plan import STEPS, Plan
from estragon.trainers.rllib.player import Player, players_of
from estragon.trainers.rllib.ray_session import be_quiet
from estragon.trainers.rllib.survey import survey
from estragon.trainers.rllib.training import check_roles


def play(plan: Plan) -> int:
    """Play one game for `timesteps` of all agents, what the policies think best; tell of it."""
    if plan.source is None:
        raise ValueError("a checkpoint is asked for before")
    be_quiet()
    players = players_of(plan.source)
    controller = Controller(stop_file=plan.options.stop_file)
    controller.forget_stop()
    steps = plan.stop.timesteps or STEPS
    with contextlib.closing(GameEnv(plan.game)) as game:
        check_roles(plan.source, survey(game, plan.mapping))
        table = Table(game, players, plan)
        with Progress() as progress, deferred_interrupts(progress.say, STOP_SIGNALS) as request:
            progress.step("playing", announced=False)
            while table.steps < steps and not request.made and not controller.asks_to_stop():
                table.step()
                progress.update(table.steps, steps, " steps")
    for policy in sorted(players):
        print(f"{policy}: {table.ended.get(policy, Episodes()).summary()}")
    if plan.options.onnx_export_path is not None:
        from estragon.trainers.rllib.onnx_export import export_checkpoint

        for path in export_checkpoint(plan.source.path, plan.options.onnx_export_path):
            print(f"onnx saved to {path}")
    return 0


class Table:
    """A game, and who plays it."""

    def __init__(self, game: GameEnv, players: dict[str, Player], plan: Plan) -> None:
        """Begin."""
        self.steps = 0
        self.ended: dict[str, Episodes] = {}
        self._game, self._players, self._policy_of = game, players, plan.mapping
        self._seen, _ = game.reset()
        self._so_far = dict.fromkeys(self._seen, (0.0, 0))

    def step(self) -> None:
        """One step of all agents."""
        actions: dict[str, Any] = {}
        for policy, player in self._players.items():
            agents = [agent for agent in self._seen if self._policy_of(agent) == policy]
            if agents:
                decided = player.act(np.stack([self._seen[agent] for agent in agents]))
                actions |= dict(zip(agents, decided, strict=True))
        seen, rewards, terminated, truncated, infos = self._game.step(actions)
        for agent, reward in rewards.items():
            paid, steps = self._so_far.pop(agent, (0.0, 0))
            if terminated[agent] or truncated[agent]:
                episodes = self.ended.setdefault(self._policy_of(agent), Episodes())
                episodes.add(paid + reward, steps + 1, infos[agent])
            else:
                self._so_far[agent] = (paid + reward, steps + 1)
        going_on = {agent: seen[agent] for agent in seen if agent in self._so_far}
        self._seen = going_on | self._game.begun
        self.steps += len(rewards)
