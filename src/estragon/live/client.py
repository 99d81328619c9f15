"""One connected client: its messages, their answers, and its state."""

import math
from dataclasses import dataclass

from msgspec import Raw
from websockets.frames import CloseCode

from estragon import __version__
from estragon.live import protocol
from estragon.live.batcher import Actors, RequestBatcher
from estragon.support.errors import UserError
from estragon.tag.rules import ACTION_SIZE, AGENTS, ROLES, Rules

NO_ACTION = [0.0] * ACTION_SIZE
UNNAMED = ""
"""The agent of an `act`, and of a transition that names none."""


@dataclass
class Counts:
    """Statistics of a server."""

    connections: int = 0
    messages: int = 0
    decisions: int = 0
    """Of agents: a frame of 16 arenas has 32."""
    bad_messages: int = 0
    bad_observations: int = 0
    bad_transitions: int = 0


class RefusedError(Exception):
    """The connection has to be closed; `by_message`: an `error` message is sent as well."""

    def __init__(self, code: CloseCode, reason: str, *, by_message: bool = False) -> None:
        super().__init__(reason)
        self.code, self.by_message = code, by_message


class ClientHandler:
    """Answers the messages of one client, one after the other."""

    def __init__(
        self, number: int, rules: Rules, actors: Actors, batcher: RequestBatcher, counts: Counts
    ) -> None:
        """Handle client `number`; all clients of the server share the rest."""
        self.number = number
        self.hello: protocol.Hello | None = None
        self.decisions = 0
        self._rules, self._actors, self._batcher, self._counts = rules, actors, batcher, counts
        self._frames: protocol.FrameCodec | None = None
        self._sizes: dict[str, int] = {}
        """Of every agent's observations."""
        self._bad_in_a_row = 0

    async def answer(self, message: str | bytes) -> str | bytes | None:
        """The answer to a message, if any; raises RefusedError to close the connection."""
        self._counts.messages += 1
        if isinstance(message, bytes):
            return await self._answer_frame(message)
        try:
            answer = await self._answer_text(message)
        except protocol.InvalidMessageError as error:
            return self._bad_message(str(error))
        self._bad_in_a_row = 0
        return answer

    async def _answer_frame(self, data: bytes) -> bytes:
        if self._frames is None or self.hello is None:
            raise RefusedError(CloseCode.UNSUPPORTED_DATA, "no hello agreed to binary frames")
        try:
            decision = self._frames.read(data)
        except protocol.BadFrameError as error:
            self._counts.bad_messages += 1
            raise RefusedError(CloseCode.INVALID_DATA, str(error)) from error
        size = self.hello.observation_size
        actions = await self._batcher.decide(self.number, size, decision)
        self._decided(AGENTS * self.hello.arenas)
        return self._frames.write(decision.seq, actions)

    async def _answer_text(self, text: str) -> str | None:
        try:
            message = protocol.read_message(text)
        except protocol.BadHelloError as error:
            raise self._refuse_hello(str(error)) from error
        match message:
            case protocol.Hello():
                return self._welcome(message)
            case protocol.Act():
                return await self._act({UNNAMED: message.obs}, message.seq, single=True)
            case protocol.ActBatch():
                return await self._act(message.obs, message.seq, single=False)
            case protocol.Transition():
                self._learn([message])
            case protocol.TransitionBatch():
                self._learn(self._read_transitions(message))
            case protocol.Unknown():
                return protocol.write_echo(text)
        return None

    def _bad_message(self, what: str) -> str:
        self._counts.bad_messages += 1
        self._bad_in_a_row += 1
        if self._bad_in_a_row >= protocol.BAD_MESSAGES_IN_A_ROW:
            reason = f"{protocol.BAD_MESSAGES_IN_A_ROW} bad messages in a row; the last: {what}"
            raise RefusedError(CloseCode.POLICY_VIOLATION, reason, by_message=True)
        return protocol.write_error(what)

    def _welcome(self, hello: protocol.Hello) -> str:
        if error_text := self._hello_error(hello):
            raise self._refuse_hello(error_text)
        binary = hello.encoding == "binary"
        frames = protocol.FrameCodec(hello) if binary else None
        if frames is not None and frames.largest > protocol.LARGEST_MESSAGE:
            raise self._refuse_hello(f"frames of up to {frames.largest:,} bytes; have fewer arenas")
        try:
            actor = self._actors.actor_for(hello.observation_size)
            if binary:
                actor.join(self.number, hello)
        except UserError as error:
            raise self._refuse_hello(str(error)) from error
        self.hello, self._frames = hello, frames
        return protocol.write_message(
            {
                "type": "hello",
                "protocol": protocol.PROTOCOL,
                "encoding": "binary" if binary else "json",
                "observation_size": hello.observation_size,
                "action_size": ACTION_SIZE,
                "learning": actor.learning and hello.training,
                "server": f"estragon {__version__}",
                "says": actor.describe(),
            }
        )

    def _hello_error(self, hello: protocol.Hello) -> str | None:
        ours = self._rules.observation
        if self.hello is not None:
            return "a second hello"
        if hello.protocol != protocol.PROTOCOL:
            return f"protocol {hello.protocol}; this server speaks {protocol.PROTOCOL}"
        if not 1 <= hello.observation_size <= protocol.LARGEST_OBSERVATION:
            return f"observation_size: expected 1 to {protocol.LARGEST_OBSERVATION}"
        if hello.observation_size == ours.size and hello.observation_version != ours.version:
            return f"observation_version {hello.observation_version}; ours is {ours.version}"
        if hello.action_size != ACTION_SIZE:
            return f"action_size {hello.action_size}; expected {ACTION_SIZE}"
        if not 1 <= hello.arenas <= protocol.MOST_ARENAS:
            return f"arenas: expected 1 to {protocol.MOST_ARENAS}"
        return None

    def _refuse_hello(self, what: str) -> RefusedError:
        self._counts.bad_messages += 1
        return RefusedError(CloseCode.POLICY_VIOLATION, f"hello: {what}", by_message=True)

    async def _act(self, observations: dict[str, Raw], seq: int | None, *, single: bool) -> str:
        actions = dict.fromkeys(observations, NO_ACTION)
        requests: dict[int, list[protocol.ActionRequest]] = {}
        for agent, raw in observations.items():
            try:
                observation = protocol.read_vector(raw)
                self._check_size(agent, len(observation))
            except (ValueError, UserError):
                continue
            request = protocol.ActionRequest(self.number, agent, seq, observation)
            requests.setdefault(len(observation), []).append(request)
        answers = [(batch, self._batcher.act(size, batch)) for size, batch in requests.items()]
        asked = 0
        for batch, answer in answers:
            chosen = (await answer).tolist()
            actions |= {
                request.agent: action for request, action in zip(batch, chosen, strict=True)
            }
            asked += len(batch)
        self._decided(asked)
        self._counts.bad_observations += len(observations) - asked
        info = {"error": "invalid_obs"} if asked < len(observations) else {}
        return protocol.write_actions(actions, info, seq, single=single)

    def _decided(self, agents: int) -> None:
        self.decisions += agents
        self._counts.decisions += agents

    def _read_transitions(self, batch: protocol.TransitionBatch) -> list[protocol.Transition]:
        transitions = []
        for raw in batch.transitions:
            try:
                transitions.append(protocol.read_transition(raw))
            except ValueError:
                self._counts.bad_transitions += 1
        return transitions

    def _learn(self, transitions: list[protocol.Transition]) -> None:
        experiences: dict[int, list[protocol.Experience]] = {}
        for transition in transitions:
            try:
                experience = self._experience(transition)
            except (ValueError, UserError):
                self._counts.bad_transitions += 1
                continue
            experiences.setdefault(self._sizes[experience.agent], []).append(experience)
        for size, batch in experiences.items():
            used = self._actors.actor_for(size).learn(batch)
            self._counts.bad_transitions += len(batch) - used

    def _experience(self, transition: protocol.Transition) -> protocol.Experience:
        """Check a transition; raises ValueError or UserError where it is invalid."""
        agent, role = transition.info.get("agent"), transition.info.get("role")
        agent = agent if isinstance(agent, str) else UNNAMED
        seen, action, then = (
            None if bytes(raw) == b"null" else protocol.read_vector(raw)
            for raw in (transition.obs, transition.action, transition.next_obs)
        )
        if seen is not None:
            self._check_size(agent, len(seen))
        if agent not in self._sizes or (transition.seq is None and seen is None):
            raise ValueError("neither seq nor obs")
        if then is not None:
            self._check_size(agent, len(then))
        if action is None and transition.seq is None:
            raise ValueError("neither seq nor action")
        if action is not None and len(action) != ACTION_SIZE:
            raise ValueError(f"action has {len(action)} numbers")
        if not math.isfinite(transition.reward):
            raise ValueError("reward is not finite")
        return protocol.Experience(
            client=self.number,
            agent=agent,
            seq=transition.seq,
            observation=seen,
            action=action,
            reward=transition.reward,
            next_observation=then,
            done=transition.done,
            role=role if role in ROLES else None,
            info=transition.info,
        )

    def _check_size(self, agent: str, size: int) -> None:
        """Note the observation size of an agent; raises where it changed or is one too many."""
        if agent not in self._sizes:
            if len(agent) > protocol.LONGEST_NAME or len(self._sizes) >= protocol.MOST_AGENTS:
                raise ValueError("agent name too long, or too many agents")
            self._actors.actor_for(size)
            self._sizes[agent] = size
        if self._sizes[agent] != size:
            raise ValueError(f"{size} numbers where {self._sizes[agent]} were before")
