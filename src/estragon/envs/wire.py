"""The interface of every wire, and the message types that all of them share.

A wire turns resets and actions into messages for a game, and the game's answers into `StepResult`s;
`godot.channel` carries the bytes. To add a wire: subclass `Wire`, add it to `WIRES` in
`connection.py`, and offer its encoding in the handshake. The environments only see `StepResult`s.
"""

import abc
import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from estragon.envs.spaces import AgentSpaces, SpaceError, read_spaces
from estragon.godot.channel import LENGTH
from estragon.godot.process import GodotError
from estragon.support.parameters import ParameterSpec, Values

BINARY, JSON = "binary1", "json"
"""The encodings that are spoken."""
MAX_AGENTS = 65_536
MAX_DEPTH = 32
SHARED_POLICY = "shared_policy"
PARAMETERS = "parameters"
"""The key in messages and infos."""
TERMINATED, TRUNCATED, HAS_FINAL_OBS, LEFT = 1, 2, 4, 8
"""The flags of an agent in a `StepResult`."""
ENDED = TERMINATED | TRUNCATED
NESTED = (dict, list)
Infos = list[dict[str, Any]]


class BadMessageError(Exception):
    """A message that violates the protocol; says how."""


class AgentInfo(NamedTuple):
    """One agent of a game."""

    id: int
    policy: str
    spaces: AgentSpaces

    @property
    def name(self) -> str:
        """Its name in multi-agent environments, such as shared_policy:3."""
        return f"{self.policy}:{self.id}"


def _offsets(size: str) -> functools.cached_property[np.ndarray]:
    def compute(table: "AgentTable") -> np.ndarray:
        sizes = [getattr(agent.spaces, size) for agent in table.agents]
        return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

    return functools.cached_property(compute)


class AgentTable:
    """Agents in the order of a message's rows, and where each one's part of an array starts.

    Offsets are (agents + 1,) int64; the last one is the size of the whole array. Immutable.
    """

    def __init__(self, agents: tuple[AgentInfo, ...]) -> None:
        self.agents = agents

    def __len__(self) -> int:
        """The number of agents."""
        return len(self.agents)

    @functools.cached_property
    def spaces(self) -> AgentSpaces | None:
        """The spaces of all agents, if they are the same for all."""
        found = {agent.spaces for agent in self.agents}
        return found.pop() if len(found) == 1 else None

    obs_offsets = _offsets("obs_size")
    image_offsets = _offsets("image_size")
    action_offsets = _offsets("action_size")
    mask_offsets = _offsets("mask_size")

    def select(self, rows: np.ndarray) -> "AgentTable":
        """The agents in these rows."""
        return AgentTable(tuple(self.agents[row] for row in rows))

    def extend(self, agents: tuple[AgentInfo, ...]) -> "AgentTable":
        """With these agents at the end."""
        return AgentTable(self.agents + agents) if agents else self

    def describe(self, row: int | np.integer[Any]) -> str:
        """An agent's name in error messages."""
        agent = self.agents[row]
        return f"agent {agent.id} ({agent.policy})"


@dataclasses.dataclass(slots=True)
class Observations:
    """Observations of the agents of a table, flat: agent by agent, key by key."""

    table: AgentTable
    values: np.ndarray
    """float32, everything but images."""
    images: np.ndarray
    """uint8."""

    def row(self, index: int | np.integer[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Values and images of one agent."""
        table = self.table
        return (
            self.values[table.obs_offsets[index] : table.obs_offsets[index + 1]],
            self.images[table.image_offsets[index] : table.image_offsets[index + 1]],
        )

    def select(self, rows: np.ndarray, spaces: AgentSpaces) -> tuple[np.ndarray, np.ndarray]:
        """(rows, obs_size) values and (rows, image_size) images of agents with these spaces."""
        values = self.table.obs_offsets[rows, None] + np.arange(spaces.obs_size)
        images = self.table.image_offsets[rows, None] + np.arange(spaces.image_size)
        return self.values[values], self.images[images]

    def by_key(self, index: int | np.integer[Any]) -> dict[str, np.ndarray]:
        """The observation of one agent."""
        return self.table.agents[index].spaces.split(*self.row(index))

    def check(self, what: str) -> None:
        """Raise BadMessageError for NaN and infinity."""
        values, table = self.values, self.table
        # A finite sum of squares has finite terms, and is twice as fast as isfinite().all().
        if not math.isfinite(np.vdot(values, values)):
            for place in np.flatnonzero(~np.isfinite(values)):
                row = int(np.searchsorted(table.obs_offsets, place, side="right")) - 1
                within = place - table.obs_offsets[row]
                for spec, start in table.agents[row].spaces.obs_offsets:
                    if spec.kind != "image" and start <= within < start + spec.size:
                        raise BadMessageError(
                            f"{what} '{spec.key}'[{within - start}] of {table.describe(row)} "
                            f"is {values[place]}"
                        )


@dataclasses.dataclass(slots=True)
class StepResult:
    """A game's answer to a reset or to actions; joined agents are the last rows."""

    table: AgentTable
    num_joined: int
    rewards: np.ndarray
    """(rows,) float32."""
    flags: np.ndarray
    """(rows,) uint8: TERMINATED, TRUNCATED, HAS_FINAL_OBS, LEFT."""
    obs: Observations
    final_obs: Observations | None = None
    """Of the rows with HAS_FINAL_OBS."""
    masks: np.ndarray | None = None
    """uint8, agent by agent, choice by choice of the masked actions."""
    infos: Infos | None = None
    """One per row, if there are any; read-only, because the same list may be returned again."""
    uneventful: bool = False
    """Whether it is known that no episode ended, and that no agent left or joined."""
    parameters: dict[int, Values] = dataclasses.field(default_factory=dict)
    """By row, those of the episodes that ended, if the trainer sets any."""
    lost_reason: str = ""
    """Why the game was restarted, if it was: its agents left, and new ones joined."""

    def agents_changed(self) -> bool:
        """Whether an agent left or joined."""
        return not self.uneventful and (self.num_joined > 0 or bool((self.flags & LEFT).any()))

    def remaining(self) -> np.ndarray:
        """The rows of agents that have not left."""
        return np.flatnonzero(self.flags & LEFT == 0)

    def next_table(self) -> AgentTable:
        """The agents of the next step."""
        rows = self.remaining()
        return self.table if len(rows) == len(self.table) else self.table.select(rows)

    def mask(self, row: int | np.integer[Any]) -> np.ndarray:
        """(mask_size,) uint8: the mask of one agent; all ones if the game sent none."""
        offsets = self.table.mask_offsets
        if self.masks is None:
            return np.ones(int(offsets[row + 1] - offsets[row]), np.uint8)
        return self.masks[offsets[row] : offsets[row + 1]]

    def info(self, row: int | np.integer[Any]) -> dict[str, Any]:
        """A copy of the info of one agent."""
        return dict(self.infos[row]) if self.infos else {}

    def check(self) -> None:
        """Raise BadMessageError for NaN and infinity."""
        rewards = self.rewards
        if not math.isfinite(np.vdot(rewards, rewards)):
            for row in np.flatnonzero(~np.isfinite(rewards)):
                raise BadMessageError(f"reward of {self.table.describe(row)} is {rewards[row]}")
        self.obs.check("observation")
        if self.final_obs is not None:
            self.final_obs.check("terminal observation")


class Wire(abc.ABC):
    """Encodes what one game is told, and decodes its answers. Messages include their length."""

    encoding: ClassVar[str]

    def __init__(self, table: AgentTable) -> None:
        self.table = table
        """The agents that are playing now."""

    @abc.abstractmethod
    def encode_reset(self, seed: int | None, parameters: Sequence[Values] | None = None) -> bytes:
        """A request for new episodes, with the parameters of every agent's if there are any."""

    @abc.abstractmethod
    def encode_actions(self, actions: np.ndarray) -> bytes | bytearray:
        """The actions of all agents: float32, agent by agent, key by key."""

    @abc.abstractmethod
    def decode(self, frame: bytearray, *, reset: bool) -> StepResult:
        """The answer to a reset, or to actions; updates `table`."""

    def encode_call(self, method: str) -> bytes:
        """A call of a method of the game's agents."""
        return framed({"type": "call", "method": method})

    def decode_call(self, frame: bytearray) -> list[Any]:
        """What the method returned, agent by agent."""
        reply: CallReply = decode_json(CALL_REPLY, frame)
        check_depth(reply.returns)
        return reply.returns

    def encode_parameters(self, agents: dict[str, Values] | None) -> bytes:
        """The parameters of these agents' next episodes; None asks which ones the game has."""
        return framed({"type": "parameters"} | ({} if agents is None else {"agents": agents}))

    def encode_close(self) -> bytes:
        """A request to quit."""
        return framed({"type": "close"})


class InfoDecoder:
    """Decodes the infos of a step; most steps repeat those of the step before."""

    def __init__(self) -> None:
        self._text: bytes | None = None
        self._infos: Infos | None = None

    def decode(self, text: bytes, rows: int, *, reuse: bool) -> Infos | None:
        """One info per agent, or None if all are empty; may `reuse` the list of the last step."""
        if reuse and text == self._text:
            return self._infos
        infos: Infos | None = decode_json(INFOS, text)
        infos = infos if infos and any(infos) else None
        if infos and len(infos) != rows:
            raise BadMessageError(f"{len(infos)} infos for {rows} agents")
        for info in infos or []:
            for value in info.values():
                if type(value) in NESTED:
                    check_depth(value, MAX_DEPTH - 2)
        if reuse:
            self._text, self._infos = text, infos
        return infos


Specs = Annotated[list[ParameterSpec], msgspec.Meta(max_length=256)]


class EnvInfo(msgspec.Struct, tag_field="type", tag="env_info"):
    """A game's answer to the handshake; older games send one space for all agents, and no names."""

    observation_space: list[Any] | dict[str, Any]
    action_space: list[Any] | dict[str, Any]
    n_agents: int | None = None
    agent_policy_names: list[str] | None = None
    encoding: str | None = None
    agent_ids: list[int] | None = None
    action_mask: list[dict[str, int]] | None = None
    parameters: Specs | None = None
    """None: the game does not take parameters."""


class CallReply(msgspec.Struct, tag_field="type", tag="call"):
    """What a method returned, agent by agent."""

    returns: list[Any]


class ParametersReply(msgspec.Struct, tag_field="type", tag="parameters"):
    """The parameters that the game has."""

    parameters: Specs


PARAMETERS_REPLY = msgspec.json.Decoder(ParametersReply)
CALL_REPLY = msgspec.json.Decoder(CallReply)
INFOS = msgspec.json.Decoder(Infos | None)


def handshake(encoding: str) -> bytes:
    """The first two messages to a game; older games ignore what else is offered."""
    offered = {"encodings": [encoding]} if encoding != JSON else {}
    hello = {"type": "handshake", "major_version": "0", "minor_version": "7", "parameters": True}
    hello |= offered
    return framed(hello) + framed({"type": "env_info"})


def framed(message: dict[str, Any]) -> bytes:
    """A JSON message, after its length."""
    text = msgspec.json.encode(message)
    return LENGTH.pack(len(text)) + text


def decode_json(decoder: msgspec.json.Decoder[Any], data: bytes | bytearray | memoryview) -> Any:
    """Decode one JSON message, or raise BadMessageError."""
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadMessageError(f"{error} in {bytes(data[:120])!r}") from error


def check_depth(value: Any, left: int = MAX_DEPTH) -> None:
    """Raise BadMessageError for JSON that is nested too deeply."""
    if type(value) in NESTED:
        if left == 0:
            raise BadMessageError(f"JSON nested more than {MAX_DEPTH} deep")
        for inner in value.values() if isinstance(value, dict) else value:
            check_depth(inner, left - 1)


def read_agents(info: EnvInfo) -> AgentTable:
    """The agents of a game; raises SpaceError or GodotError if the description is invalid."""
    observed, done = info.observation_space, info.action_space
    counts = {len(space) for space in (observed, done) if isinstance(space, list)}
    if info.n_agents is not None:
        counts.add(info.n_agents)
    if not counts:
        raise GodotError("env_info does not say how many agents there are (n_agents)")
    if len(counts) > 1:
        raise GodotError(f"env_info describes {' and '.join(map(str, sorted(counts)))} agents")
    count = counts.pop()
    if count == 0:
        raise GodotError("it has no agents: no AIController in the scene is in the group AGENT")
    if not 0 < count <= MAX_AGENTS:
        raise GodotError(f"it has {count} agents, expected at most {MAX_AGENTS}")
    ids = _per_agent(count, "agent_ids", info.agent_ids, list(range(count)))
    masks = _per_agent(count, "action_mask", info.action_mask, [{}] * count)
    names = info.agent_policy_names or None
    policies = _per_agent(count, "agent_policy_names", names, [SHARED_POLICY] * count)
    if len(set(ids)) < count or min(ids) < 0:
        raise GodotError(f"agent_ids must be different and not negative, got {ids}")
    agents: list[AgentInfo] = []
    for row in range(count):
        try:
            spaces = read_spaces(
                observed[row] if isinstance(observed, list) else observed,
                done[row] if isinstance(done, list) else done,
                masks[row],
                trusted_images=info.encoding is not None,
            )
        except SpaceError as error:
            raise SpaceError(f"agent {ids[row]}: {error}") from error
        agents.append(AgentInfo(ids[row], policies[row], spaces))
    return AgentTable(tuple(agents))


def _per_agent(count: int, what: str, given: list[Any] | None, default: list[Any]) -> list[Any]:
    if given is None:
        return default
    if len(given) != count:
        raise GodotError(f"it has {count} agents, but {len(given)} {what}")
    return given
