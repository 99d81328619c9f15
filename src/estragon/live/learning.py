"""A brain that learns: it answers with the newest policies and delivers what came of it."""

from collections.abc import Sequence

import numpy as np

from estragon.live.brain import Ask, Decision, Experience, Hello
from estragon.live.seat import Seat
from estragon.live.streams import Streams
from estragon.live.trainer import LiveTrainer
from estragon.selfplay.kernels import Numbers
from estragon.selfplay.opponents import RivalPair, sparring_partners
from estragon.selfplay.policy import Policy
from estragon.selfplay.rollout import decide_together
from estragon.support.errors import UserError
from estragon.tag.rules import HIDER, SEEKER

NOBODY = RivalPair(None, None)


class LearningBrain:
    """Plays for one trainer, in the server's thread."""

    learning = True

    def __init__(self, trainer: LiveTrainer) -> None:
        """Play with what `trainer` publishes."""
        self._trainer = trainer
        self._policies = trainer.spare_policies()
        self._numbers: list[Numbers] = []
        self._version = self._load_newest()
        self._seats: dict[int, Seat] = {}
        self._spare: dict[int, list[Policy]] = {}
        """For each client's earlier selves."""
        self._rivals: dict[int, RivalPair] = {}
        self._streams = Streams(self._policies, self._numbers, trainer)
        heading = trainer.task.rules.has_heading
        self._bots = sparring_partners(trainer.task.rules) if heading else NOBODY

    def describe(self) -> str:
        """What it is, in a few words."""
        return f"learning, {self._trainer.agent_steps:,} steps so far"

    def join(self, client: int, hello: Hello) -> None:
        """A client that sends decisions is there."""
        task, config = self._trainer.task, self._trainer.config
        if not task.rules.has_heading:
            raise UserError(f"observations of {hello.observation_size} numbers: say encoding json")
        if hello.rules != task.rules.rules:
            raise UserError(f"rules {hello.rules}; here {task.rules.rules} is learned")
        self._seats[client] = Seat(hello, task, config, self._policies, client)
        self._spare[client] = self._trainer.spare_policies()
        self._draw_rivals(client)

    def decide(self, asked: Sequence[tuple[int, Decision]]) -> list[np.ndarray]:
        """Actions (arenas, 2, 3) float32 for what these clients ask, all at once."""
        self._refresh()
        questions = []
        for client, decision in asked:
            seat = self._seats[client]
            seat.see(decision)
            if seat.full:
                patience = [self._trainer.patience(role) for role in (SEEKER, HIDER)]
                self._trainer.deliver(seat.harvest(patience))
                self._draw_rivals(client)
            questions.append(seat.question(self._numbers, self._rivals[client], self._bots))
        return decide_together(questions)

    def act(self, asks: Sequence[Ask]) -> np.ndarray:
        """Actions (asks, 3) float32."""
        self._refresh()
        return self._streams.act(asks)

    def learn(self, experiences: Sequence[Experience]) -> int:
        """Take note of what decisions brought; how many of them could be used."""
        return self._streams.learn(experiences)

    def leave(self, client: int) -> None:
        """A client is gone; what it has not finished cannot be learned from."""
        self._seats.pop(client, None)
        self._spare.pop(client, None)
        self._rivals.pop(client, None)
        self._streams.leave(client)

    def _refresh(self) -> None:
        if self._trainer.version != self._version:
            self._version = self._load_newest()

    def _load_newest(self) -> int:
        version = self._trainer.load_newest(self._policies)
        self._numbers[:] = [policy.numbers() for policy in self._policies]
        return version

    def _draw_rivals(self, client: int) -> None:
        """Earlier selves for one client's arenas, in policies of their own."""
        self._rivals[client] = self._trainer.draw_rivals(self._spare[client], client)
