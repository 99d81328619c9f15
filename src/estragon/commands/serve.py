"""`estragon serve`: the server for games: it learns, plays a policy, or plays at random."""

import dataclasses
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from estragon.live.batcher import Actor, Actors, PolicyActor, RandomActor
from estragon.live.protocol import PORT
from estragon.live.server import HOST, LiveServer, logging_to
from estragon.support.errors import UserError
from estragon.support.options import check_span, optional
from estragon.tag.policy_files import load_policies
from estragon.tag.rules import load_rules

if TYPE_CHECKING:
    from estragon.commands.live import LiveCommand

REPORT_SEC = 10.0
POLL_SEC = 0.2


@dataclasses.dataclass(frozen=True)
class ServeCommand:
    """Serve actions to games that connect by WebSocket, and optionally learn from them."""

    port: int = PORT
    """Port to listen on, on this machine only; 0: any free port."""
    learn: bool = False
    """Learn from games in training mode. Start from --policy if given, else from trainer/policy.pt
    if it exists, else from new policies. Needs estragon[train]."""
    policy: Annotated[Path | None, optional("FILE")] = None
    """Play this policy (.npz, or .pt if torch is installed); by default trainer/policy.npz if it
    exists, else random actions."""
    random: bool = False
    """Play at random."""
    seed: int = 0
    """Random seed; the same seed gives the same actions."""
    seconds: Annotated[float | None, optional("SECONDS")] = None
    """Stop after this time; by default only Ctrl-C stops the server."""
    output: Path = Path()
    """The folder that contains trainer/ with the policy and logs/server.log."""

    def run(self) -> int:
        """Serve until the time is over."""
        check_span("--seed", self.seed, 0)
        if self.seconds is not None and self.seconds <= 0.0:
            raise UserError(f"--seconds: expected more than 0, got {self.seconds}")
        if self.learn:
            return self._learning().run()
        make, what = self._actor_maker()
        log_file = self.output / "trainer" / "logs" / "server.log"
        with (
            logging_to(log_file) as log,
            LiveServer(Actors(make), port=self.port, log=log) as server,
        ):
            log.info("listening on ws://%s:%d: %s", HOST, server.port, what)
            self._watch(server, log)
        return 0

    def _learning(self) -> "LiveCommand":
        from estragon.commands.live import LiveCommand
        from estragon.live.source import FOREVER_SEC

        if self.random:
            raise UserError("--random and --learn: choose one")
        usual = self.output / "trainer" / "policy.pt"
        return LiveCommand(
            "seeker",
            seconds=self.seconds or FOREVER_SEC,
            warm_start=self.policy or (usual if usual.is_file() else None),
            seed=self.seed,
            port=self.port,
            godot=False,
            output=self.output,
        )

    def _actor_maker(self) -> tuple[Callable[[int], Actor], str]:
        """A factory of actors by observation size, and what they play, in words."""
        if self.random and self.policy is not None:
            raise UserError("--random and --policy: choose one")
        path = self.policy or self.output / "trainer" / "policy.npz"
        if self.random or (self.policy is None and not path.is_file()):
            why = "" if self.random else f"; there is no {path}"
            return lambda _: RandomActor(self.seed), f"random actions{why}"
        rules = load_rules()
        trained = PolicyActor(load_policies(path, rules), rules, self.seed)
        ours = rules.observation.size
        return lambda size: trained if size == ours else RandomActor(self.seed), trained.describe()

    def _watch(self, server: LiveServer, log: logging.Logger) -> None:
        start = reported = time.monotonic()
        decisions = 0
        while self.seconds is None or time.monotonic() - start < self.seconds:
            time.sleep(POLL_SEC)
            server.check()
            if (passed := time.monotonic() - reported) >= REPORT_SEC:
                made = server.counts.decisions - decisions
                if made or server.clients:
                    log.info("clients: %d, decisions/s: %.0f", server.clients, made / passed)
                reported, decisions = reported + passed, decisions + made
