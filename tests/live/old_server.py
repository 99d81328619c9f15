"""A server as there were before `hello`: it knows the JSON messages and echoes everything else."""

import json
import threading
from collections import Counter
from typing import Any, Self

import numpy as np
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve


class OldServer:
    """Listens while its block lasts, plays at random, and keeps what it was told."""

    def __init__(self, *, knows_batches: bool = True, echoes: bool = True) -> None:
        self.transitions: list[dict[str, Any]] = []
        self.asked: Counter[str] = Counter()
        """How often, by type."""
        self.answers: list[dict[str, list[float]]] = []
        self._knows_batches, self._echoes = knows_batches, echoes
        self._random = np.random.default_rng(3)
        self._server = serve(self._attend, "127.0.0.1", 0, compression=None, max_size=None)
        self.port = self._server.socket.getsockname()[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join(10.0)

    def _attend(self, connection: ServerConnection) -> None:
        try:
            for text in connection:
                answer = self._answer(json.loads(text))
                if answer is not None:
                    connection.send(json.dumps(answer))
        except ConnectionClosed:
            pass

    def _answer(self, message: dict[str, Any]) -> dict[str, Any] | None:
        kind = message["type"]
        self.asked[kind] += 1
        if kind == "act":
            action = self._action(message["obs"])
            self.answers.append({"": action})
            return {"type": "action", "action": action, "info": {}}
        if kind == "act_batch" and self._knows_batches:
            actions = {name: self._action(obs) for name, obs in message["obs"].items()}
            self.answers.append(actions)
            return {"type": "action_batch", "actions": actions, "info": {}}
        if kind == "transition":
            self.transitions.append(message)
            return None
        if kind == "transition_batch" and self._knows_batches:
            self.transitions += message["transitions"]
            return None
        return {"type": "echo", "recv": message} if self._echoes else None

    def _action(self, observation: list[float]) -> list[float]:
        assert len(observation) == 126
        move_x, move_z, jump = self._random.uniform(-1.0, 1.0, 3)
        return [round(move_x, 3), round(move_z, 3), round(jump, 3)]
