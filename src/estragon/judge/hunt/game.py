"""A game that is hunted: started with a probe inside, stepped, and read out after every step."""

import contextlib
import dataclasses
import functools
import re
import select
import time
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np

from estragon.envs.connection import GameConnection, GameLostError, listen
from estragon.envs.launch import Launch
from estragon.envs.pool import GamePool
from estragon.envs.sync_nodes import SyncNodes
from estragon.envs.wire import ENDED, AgentTable, StepResult
from estragon.godot.channel import LENGTH, Channel, ChannelError
from estragon.godot.process import NOT_TEXT, GodotError, cpu_sec
from estragon.support import paths
from estragon.support.parameters import Values

SCRIPT = paths.PACKAGE / "judge" / "hunt" / "hunt_tree.gd"
ONE_AGENT = {"copies": 1, "arenas": 1, "parameter.rigs": 1}
"""Arguments that Estragon's scenes understand: a trace of one agent replays best."""
HEAD, WIDTH = 4, 7
"""Numbers of a tick: tick, nodes, objects, memory; of each body: position, velocity, depth."""
PROBE_WAIT_SEC = 5.0
STEP_TIMEOUT_SEC = 10.0
LOG_ENTRY = re.compile(r"^(?:USER )?(SCRIPT ERROR|ERROR|WARNING): (.*)")
LOG_PLACE = re.compile(r"^\s+(?:at:|\[\d+\]) (.*?) \((.*?)(?::\d+)?\)$")
OWN = re.compile(r"hunt_(tree|probe|player)\.gd")


class Scene(msgspec.Struct):
    """What the probe says about the scene when its bodies have changed."""

    bodies: list[str] = []
    sizes: list[float] = []
    is_3d: bool = True
    is_rigid: bool = False
    """Whether the first body moves by forces."""
    bounds: list[list[float]] = []
    """The least and the greatest corner of the level, if it has static colliders."""
    ticks_per_sec: float = 60.0
    things: list[str] = []
    """What the player could meet."""
    kinds: list[str] = []
    """Of the things: those of one kind are siblings."""
    is_solid: list[bool] = []
    variables: list[str] = []
    """Of the scene's scripts."""
    types: str = ""
    """Of the variables: b, i, f, s for texts by their hash, n for sizes of containers."""
    found: dict[tuple[str, ...], list[int]] = {}
    """Where variables are, by their names; filled when they are read."""


class LogEntry(msgspec.Struct, frozen=True):
    """An error in the game's log, or another line, then without a kind."""

    kind: str
    text: str
    place: str = ""
    """Function and file of the game."""


@dataclasses.dataclass
class Snapshot:
    """What is known after a reset or a step."""

    scene: Scene
    ticks: np.ndarray
    """(ticks, HEAD + WIDTH × bodies + watched) float64, of the ticks since the snapshot before."""
    log: list[LogEntry]
    obs: np.ndarray
    rewards: np.ndarray
    ended: np.ndarray
    """Of each agent, whether its episode ended in this step."""
    infos: list[dict[str, Any]]
    state: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))
    """-1, then place and nearness of each thing, then the variables: float64, empty if unknown."""
    cpu_ms: float = 0.0
    lost: str = ""
    """How the game crashed or hung, if it did."""

    @property
    def bodies(self) -> np.ndarray:
        """(ticks, bodies, WIDTH)."""
        count = len(self.scene.bodies)
        return self.ticks[:, HEAD : HEAD + WIDTH * count].reshape(-1, count, WIDTH)

    @property
    def things(self) -> np.ndarray:
        """(things, 4): place, and how near the first body came; 1 is the edge of a thing's box."""
        count = len(self.scene.things) if len(self.state) else 0
        things: np.ndarray = self.state[1 : 1 + 4 * count].reshape(count, 4)
        return things

    @property
    def variables(self) -> np.ndarray:
        """Values of the scripts' variables, NaN where one is gone."""
        return self.state[1 + 4 * len(self.scene.things) :]

    @property
    def names(self) -> list[str]:
        """Of the numbers observed and of the variables."""
        return [*(f"observation {index}" for index in range(len(self.obs))), *self.scene.variables]

    def read(self, names: tuple[str, ...]) -> np.ndarray:
        """The values of some of `names`; NaN where one is not known."""
        found = self.scene.found
        if names not in found:
            places = {name: index for index, name in enumerate(self.names)}
            found[names] = [places.get(name, -1) for name in names]
        variables = (
            self.variables if len(self.state) else np.full(len(self.scene.variables), np.nan)
        )
        values: np.ndarray = np.concatenate([self.obs, variables, [np.nan]])[found[names]]
        return values

    @property
    def watched(self) -> np.ndarray:
        """The watched properties after the last tick."""
        if not len(self.ticks):
            return np.zeros(0)
        last: np.ndarray = self.ticks[-1, HEAD + WIDTH * len(self.scene.bodies) :]
        return last

    @functools.cached_property
    def place(self) -> list[float]:
        """Where the first body is; empty if that is not known."""
        if not len(self.ticks) or not self.scene.bodies:
            return []
        at = self.bodies[-1, 0, :3]
        return [round(float(value), 3) for value in at] if np.isfinite(at).all() else []


def plays_by_input(game: Path, scene: str | None) -> bool:
    """Whether a project has to be played by its InputMap, because the scene has no Sync node."""
    if not (game / "project.godot").is_file():
        return False
    return SyncNodes(game).uncertainty(scene) is None


class HuntedGame:
    """One game process at a time; `restart` replaces it."""

    def __init__(self, launch: Launch, watched: tuple[str, ...] = ()) -> None:
        path = Path(str(launch.env_path)).expanduser()
        path = path.parent if path.name == "project.godot" else path
        self.by_input = plays_by_input(path, launch.scene)
        self.has_probe = path.is_dir() or path.suffix == ".pck"
        """An exported game only shows what the wire and the log show."""
        self._watched = len(watched)
        options, self._step_timeout_sec = launch.engine_options, launch.step_timeout_sec
        arguments = ONE_AGENT | dict(launch.arguments)
        with contextlib.ExitStack() as opened:
            if self.has_probe:
                options += ("--script", str(SCRIPT))
                self._listener = opened.enter_context(listen(0))
                self._listener.settimeout(PROBE_WAIT_SEC)
                arguments["hunt-port"] = self._listener.getsockname()[1]
                arguments |= {"hunt-watch": "|".join(watched)} if watched else {}
            arguments |= {"hunt-input": 1} if self.by_input else {}
            launch = dataclasses.replace(
                launch,
                env_path=path,
                engine_options=options,
                needs_sync=not self.by_input,
                arguments=arguments,
            )
            self._pool = opened.enter_context(GamePool(launch))
            self._attach()
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        """The game, closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    @property
    def table(self) -> AgentTable:
        """The agents."""
        return self._connection.table

    def close(self) -> None:
        """End the process."""
        self._opened.close()
        if self._probe is not None:
            self._probe.close()

    def restart(self, step_timeout_sec: float | None = None) -> None:
        """Start a new process, which may have less time for a step."""
        timeout = step_timeout_sec or self._step_timeout_sec
        self._pool.launch = dataclasses.replace(self._pool.launch, step_timeout_sec=timeout)
        if self._probe is not None:
            self._probe.close()
        self._pool.restart()
        self._attach()

    def _attach(self) -> None:
        self._scene, self._log_at, self._width = Scene(), 0, HEAD
        self._ticks: list[np.ndarray] = []
        self._state, self._step_ticks = np.zeros(0), 0
        self._last_ticks = np.zeros((0, HEAD))
        self._probe: Channel | None = None
        if self.has_probe:
            self._probe = Channel(self._listener.accept()[0])
        self._connection: GameConnection = self._pool.games[0]
        self._cpu_sec = self._cpu()

    def reset(self, seed: int) -> Snapshot:
        """Start the first episode of a seed."""
        self._announce(0)
        try:
            parameters: list[Values] = [{"seed": float(seed)}]
            self._connection.send_reset(seed, parameters if self.by_input else None)
            result = self._connection.receive()
        except GodotError as error:
            return self._lost(error)
        return self._snapshot(result)

    def step(self, action: np.ndarray) -> Snapshot:
        """Play the action of all agents: float32."""
        self._announce(self._step_ticks)
        try:
            self._connection.send_actions(action)
            result = self._connection.receive()
        except GodotError as error:
            return self._lost(error)
        shot = self._snapshot(result)
        self._step_ticks, self._last_ticks = len(shot.ticks), shot.ticks
        return shot

    def _announce(self, ticks: int) -> None:
        """Say when the probe has to report the state: in the last tick of the step."""
        if self._probe is not None:
            with contextlib.suppress(ChannelError):  # a game that is lost shows elsewhere
                self._probe.send_framed(LENGTH.pack(ticks), PROBE_WAIT_SEC)

    def _snapshot(self, result: StepResult) -> Snapshot:
        before, self._cpu_sec = self._cpu_sec, self._cpu()
        rows = len(self.table)
        infos = [result.info(row) for row in range(len(result.table))]
        ticks = self._read_probe()  # which also updates the scene
        return Snapshot(
            scene=self._scene,
            ticks=ticks,
            log=self._read_log(),
            obs=result.obs.values[: int(result.table.obs_offsets[rows])],
            rewards=result.rewards[:rows],
            ended=(result.flags[:rows] & ENDED) != 0,
            infos=infos[:rows],
            state=self._state,
            cpu_ms=1e3 * (self._cpu_sec - before),
        )

    def _lost(self, error: GodotError) -> Snapshot:
        text = str(error)
        if not isinstance(error, GameLostError):
            how = "bad message: " + re.sub(r"[\d.]+", "#", text)[:120]
        elif "timed out" in text:
            how = "hang"
        else:
            found = re.search(r"ended by (\w+)|ended with exit code (-?\d+)", text)
            how = (
                f"crash: {found[1] or 'exit code ' + found[2]}" if found else "crash: disconnected"
            )
        empty = np.zeros(0)
        ticks = self._read_probe()
        ticks = ticks if len(ticks) else self._last_ticks
        log = self._read_log()
        return Snapshot(self._scene, ticks, log, empty, empty, empty, [], lost=how)

    def _read_probe(self) -> np.ndarray:
        probe = self._probe
        states: list[np.ndarray] = []
        while probe is not None and select.select([probe], [], [], 0.0)[0]:
            try:
                probe.read(1.0)
                while frame := probe.take():
                    if frame[:1] == b"{":
                        self._scene = msgspec.json.decode(frame, type=Scene)
                        self._width = HEAD + WIDTH * len(self._scene.bodies) + self._watched
                        self._ticks, states, self._state = [], [], np.zeros(0)
                        continue
                    numbers = np.frombuffer(frame, np.float64)
                    if numbers[0] == -1.0:
                        states.append(numbers)
                    else:
                        self._ticks.append(numbers.reshape(-1, self._width))
            except ChannelError:
                break
        if states:
            self._state = states[-1]
        ticks, self._ticks = self._ticks, []
        return np.concatenate(ticks) if ticks else np.zeros((0, self._width))

    def _read_log(self) -> list[LogEntry]:
        process = self._connection.process
        if process is None or process.log_file.stat().st_size == self._log_at:
            return []
        with process.log_file.open("rb") as stream:
            stream.seek(self._log_at)
            data = stream.read()
        self._log_at += len(data)
        return read_log(data.decode(errors="replace"))

    def _cpu(self) -> float:
        process = self._connection.process
        used = None if process is None else cpu_sec([process.pid])
        return time.monotonic() if used is None else used


def read_log(text: str) -> list[LogEntry]:
    """Errors with the place in the game's own files, and all other lines."""
    found: list[LogEntry] = []
    for line in NOT_TEXT.sub("", text).splitlines():
        if entry := LOG_ENTRY.match(line):
            found.append(LogEntry(entry[1], entry[2]))
        elif (place := LOG_PLACE.match(line)) and found and found[-1].kind:
            last = found[-1]
            if not last.place and ("res://" in place[2] or OWN.search(place[2])):
                found[-1] = LogEntry(last.kind, last.text, f"{place[1]} ({place[2]})")
        elif line.strip() and not line.startswith(" "):
            found.append(LogEntry("", line))
    return [each for each in found if not OWN.search(each.place)]
