"""The messages that are JSON on every wire: introduction, reset, call and close."""

from typing import Any

import msgspec

from estragon.envs.outcome import BadMessageError
from estragon.envs.roster import MOST_AGENTS, Agent, Roster
from estragon.envs.spaces import SpaceError, read_spaces
from estragon.godot.process import GodotError

BINARY, JSON = "binary1", "json"
DEEPEST = 32
NESTED = (dict, list)
SHARED_POLICY = "shared_policy"

encode = msgspec.json.encode


def handshake(encoding: str) -> dict[str, Any]:
    """How Python introduces itself; what it may speak beyond JSON only newer games understand."""
    offered = {"encodings": [encoding]} if encoding != JSON else {}
    return {"type": "handshake", "major_version": "0", "minor_version": "7"} | offered


class EnvInfo(msgspec.Struct, tag_field="type", tag="env_info"):
    """A game's introduction; older games say one space for all, and no names."""

    observation_space: list[Any] | dict[str, Any]
    action_space: list[Any] | dict[str, Any]
    n_agents: int | None = None
    agent_policy_names: list[str] | None = None
    encoding: str | None = None
    agent_ids: list[int] | None = None
    action_mask: list[dict[str, int]] | None = None


class Joined(msgspec.Struct):
    """An agent that has come during the run."""

    id: int
    policy: str
    observation_space: dict[str, Any]
    action_space: dict[str, Any]
    action_mask: dict[str, int] = {}


class Returned(msgspec.Struct, tag_field="type", tag="call"):
    """What a method that was called returned, agent by agent."""

    returns: list[Any]


def decode(decoder: msgspec.json.Decoder[Any], data: bytes | bytearray | memoryview) -> Any:
    """One JSON message; BadMessageError says what is wrong with it."""
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadMessageError(f"{error} in {bytes(data[:120])!r}") from error


def check_depth(value: Any, left: int = DEEPEST) -> None:
    """Raise BadMessageError where JSON of the game's own is nested too deep."""
    if type(value) in NESTED:
        if left == 0:
            raise BadMessageError(f"JSON that is nested more than {DEEPEST} deep")
        for inner in value.values() if isinstance(value, dict) else value:
            check_depth(inner, left - 1)


def check_infos(infos: list[dict[str, Any]]) -> None:
    """The same for what agents tell, most of which is not nested at all."""
    for info in infos:
        for value in info.values():
            if type(value) in NESTED:
                check_depth(value, DEEPEST - 2)


def read_roster(info: EnvInfo) -> Roster:
    """The agents that a game introduces; SpaceError or GodotError says what is wrong."""
    counts = {len(space) for space in (info.observation_space, info.action_space) if _each(space)}
    if info.n_agents is not None:
        counts.add(info.n_agents)
    if not counts:
        raise GodotError("it says nowhere how many agents it has")
    if len(counts) > 1:
        raise GodotError(f"it describes {' and '.join(map(str, sorted(counts)))} agents at once")
    count = counts.pop()
    if count == 0:
        raise GodotError("it has no agents: no AIController in the scene is in the group AGENT")
    if not 0 < count <= MOST_AGENTS:
        raise GodotError(f"it has {count} agents, of which there are at most {MOST_AGENTS}")
    ids = _exactly(count, "agent_ids", info.agent_ids, list(range(count)))
    masks = _exactly(count, "action_mask", info.action_mask, [{}] * count)
    names = info.agent_policy_names or None
    policies = _exactly(count, "agent_policy_names", names, [SHARED_POLICY] * count)
    if len(set(ids)) < count or min(ids) < 0:
        raise GodotError(f"agent_ids {ids} are not all different")
    seen, does = info.observation_space, info.action_space
    trusted = info.encoding is not None
    agents: list[Agent] = []
    for row in range(count):
        try:
            spaces = read_spaces(
                seen[row] if isinstance(seen, list) else seen,
                does[row] if isinstance(does, list) else does,
                masks[row],
                trusted_images=trusted,
            )
        except SpaceError as error:
            raise SpaceError(f"agent {ids[row]}: {error}") from error
        agents.append(Agent(ids[row], policies[row], _same(spaces, agents)))
    return Roster(tuple(agents))


def _each(space: object) -> bool:
    return isinstance(space, list)


def _same(spaces: Any, agents: list[Agent]) -> Any:
    """The very object of the agent before, if equal, so that what is cached in it is shared."""
    return agents[-1].spaces if agents and agents[-1].spaces == spaces else spaces


def _exactly(count: int, what: str, given: list[Any] | None, usual: list[Any]) -> list[Any]:
    if given is None:
        return usual
    if len(given) != count:
        raise GodotError(f"it has {count} agents, but {len(given)} {what}")
    return given
