"""A trainer's end of the wire, written from the protocol's page, and the game at the other end."""

import contextlib
import json
import shutil
import socket
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from estragon.godot.process import GodotProcess
from estragon.support import paths
from tests.godot.staging import kept_project

GAMES = Path(__file__).parent / "games"
ADDON = paths.godot_project() / "addons" / "godot_rl_agents"
TIMEOUT_SEC = 30.0


@dataclass
class Row:
    """One agent's part of an answer."""

    id: int
    reward: float
    state: int
    obs: dict[str, Any]
    last: dict[str, Any] | None = None
    mask: dict[str, list[int]] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)


@dataclass
class Known:
    """What `env_info` or a joining says of an agent."""

    id: int
    policy: str
    observations: dict[str, Any]
    actions: dict[str, Any]
    masks: dict[str, int]

    def numbers(self) -> dict[str, tuple[int, ...]]:
        """The shapes of all that is seen and no image."""
        return {
            key: (1,) if space["space"] == "discrete" else tuple(space["size"])
            for key, space in self.observations.items()
            if not self.is_image(key)
        }

    def images(self) -> dict[str, tuple[int, ...]]:
        """The shapes of all images."""
        return {key: tuple(s["size"]) for key, s in self.observations.items() if self.is_image(key)}

    def is_image(self, key: str) -> bool:
        return "2d" in key and self.observations[key]["space"] == "box"


class Peer:
    """Speaks as a trainer does, old or new."""

    def __init__(self, connection: socket.socket, process: GodotProcess) -> None:
        self.connection = connection
        self.process = process
        self.roster: list[Known] = []
        connection.settimeout(TIMEOUT_SEC)

    def send(self, payload: bytes) -> None:
        self.connection.sendall(struct.pack("<I", len(payload)) + payload)

    def say(self, **message: Any) -> None:
        self.send(json.dumps(message).encode())

    def receive(self) -> bytes:
        (length,) = struct.unpack("<I", self._exactly(4))
        return self._exactly(length)

    def hear(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.receive(), parse_constant=_refuse)
        return message

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.connection.recv(count - len(data))
            if not part:
                raise EOFError(self.process.tail())
            data += part
        return data

    def greet(self, *encodings: str) -> dict[str, Any]:
        """Shake hands and ask who plays."""
        extra = {"encodings": list(encodings)} if encodings else {}
        self.say(type="handshake", major_version="0", minor_version="7", **extra)
        self.say(type="env_info")
        info = self.hear()
        assert info["type"] == "env_info"
        if "encoding" in info:
            assert info["encoding"] == "binary1"
            self.roster = [
                Known(*each)
                for each in zip(
                    info["agent_ids"],
                    info["agent_policy_names"],
                    info["observation_space"],
                    info["action_space"],
                    info["action_mask"],
                    strict=True,
                )
            ]
        return info

    # JSON, version 0.7

    def old_reset(self) -> dict[str, Any]:
        self.say(type="reset")
        return self.hear()

    def old_step(self, actions: list[dict[str, Any]]) -> dict[str, Any]:
        self.say(type="action", action=actions)
        return self.hear()

    # binary1

    def reset(self, seed: int | None = None) -> list[Row]:
        self.say(type="reset", **({} if seed is None else {"seed": seed}))
        return self.read(self.receive(), 0x52)

    def step(self, *actions: float) -> list[Row]:
        """Play: the numbers of all agents' actions, one after the other."""
        self.send(
            struct.pack("<BxxxI", 0x41, len(self.roster)) + np.asarray(actions, "<f4").tobytes()
        )
        return self.read(self.receive(), 0x53)

    def read(self, frame: bytes, expected: int) -> list[Row]:
        kind, flags, zeros, count = struct.unpack_from("<BBHI", frame)
        assert (kind, zeros) == (expected, 0)
        at = 8

        def take(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
            nonlocal at
            data = np.frombuffer(frame, dtype, int(np.prod(shape)), at).reshape(shape)
            at += data.nbytes
            return data

        def align() -> None:
            nonlocal at
            assert not any(frame[at : (at + 3) & ~3])
            at = (at + 3) & ~3

        def text() -> Any:
            nonlocal at
            (length,) = struct.unpack_from("<I", frame, at)
            at += 4 + length
            found = json.loads(frame[at - length : at], parse_constant=_refuse)
            align()
            return found

        if flags & 1:
            self.roster += [
                Known(
                    new["id"],
                    new["policy"],
                    new["observation_space"],
                    new["action_space"],
                    new["action_mask"],
                )
                for new in text()
            ]
        assert len(self.roster) == count
        rewards = take("<f4", (count,))
        states = take("u1", (count,))
        align()
        rows = [
            Row(known.id, float(reward), int(state), {})
            for known, reward, state in zip(self.roster, rewards, states, strict=True)
        ]

        def see(dtype: str, shapes: list[dict[str, tuple[int, ...]]], last: bool) -> None:
            for row, keys in zip(rows, shapes, strict=True):
                if last and not row.state & 4:
                    continue
                if last and row.last is None:
                    row.last = {}
                into = row.last if last and row.last is not None else row.obs
                for key, shape in keys.items():
                    into[key] = take(dtype, shape).tolist()

        numbers = [known.numbers() for known in self.roster]
        images = [known.images() for known in self.roster]
        see("<f4", numbers, last=False)
        see("<f4", numbers, last=True)
        see("u1", images, last=False)
        align()
        see("u1", images, last=True)
        align()
        if flags & 4:
            for row, known in zip(rows, self.roster, strict=True):
                row.mask = {key: take("u1", (n,)).tolist() for key, n in known.masks.items()}
            align()
        if flags & 2:
            for row, info in zip(rows, text(), strict=True):
                row.info = info
        assert at == len(frame)
        self.roster = [k for k, r in zip(self.roster, rows, strict=True) if not r.state & 8]
        return rows


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def copy_game(game: str, project: Path, addon: Path = ADDON) -> Path:
    """One of the test games with the addon in it, not imported."""
    shutil.copytree(GAMES / game, project, ignore=shutil.ignore_patterns(".godot"))
    shutil.copytree(addon, project / "addons" / "godot_rl_agents")
    return project


def staged(game: str, name: str = "") -> Path:
    """One of the test games with the addon in it, imported once for all tests.

    A test that writes into it needs a name of its own: asking for it removes such files.
    """
    with tempfile.TemporaryDirectory() as folder:
        return kept_project(name or game, copy_game(game, Path(folder) / game))


@contextlib.contextmanager
def playing(
    project: Path,
    folder: Path,
    *arguments: str,
    fixed: bool = True,
    scene: str = "",
    window: dict[str, str] | None = None,
) -> Iterator[Peer]:
    """The game, connected; with a window where an environment for one is given."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(TIMEOUT_SEC)
        drawing = ["--rendering-driver", "opengl3", "--audio-driver", "Dummy"]
        words = [*(drawing if window else ["--headless"]), "--path", str(project)]
        words += ["--fixed-fps", "60"] if fixed else []
        words += [scene] if scene else []
        words += [f"--port={server.getsockname()[1]}", *arguments]
        with GodotProcess(words, folder=folder, env=window) as process:
            connection, _ = server.accept()
            with connection:
                yield Peer(connection, process)
