"""Anybody who speaks JSON can play and train: every message, also of older games."""

import json
from typing import Any

import numpy as np
import pytest

from estragon import __version__
from tests.live.staging import SIZE, Game, SpyBrain, hello, serving

FIRST, SECOND = [1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]
NOTHING = [0.0, 0.0, 0.0]


def invalid(observation: Any) -> str:
    return json.dumps({"type": "act", "obs": observation})


INVALID = {
    "missing": '{"type":"act"}',
    "null": invalid(None),
    "a number": invalid(1.0),
    "text": invalid("12345"),
    "an object": invalid({"x": 1.0}),
    "empty": invalid([]),
    "too long": invalid([0.0] * 4097),
    "with text": invalid([1.0, 2.0, "3", 4.0, 5.0]),
    "with null": invalid([1.0, 2.0, None, 4.0, 5.0]),
    "with a truth value": invalid([1.0, 2.0, True, 4.0, 5.0]),
    "nested": invalid([[1.0, 2.0, 3.0, 4.0, 5.0]]),
    "too large for a number": '{"type":"act","obs":[1e999,0,0,0,0]}',
    "too large for float32": '{"type":"act","obs":[1e300,0,0,0,0]}',
    "another size than before": invalid([1.0, 2.0, 3.0]),
}
BAD = {
    "no JSON": "hello",
    "half of it": '{"type":"act","obs":[1,2',
    "NaN": '{"type":"act","obs":[NaN,0,0,0,0]}',
    "empty": "",
    "a list": "[1,2]",
    "no type": '{"obs":[1,2,3,4,5]}',
    "a type that is no text": '{"type":7}',
    "a batch without observations": '{"type":"act_batch"}',
    "a batch of one": '{"type":"act_batch","obs":[1,2,3,4,5]}',
    "a seq that is none": '{"type":"act_batch","obs":{},"seq":"next"}',
    "a seq below 0": '{"type":"act_batch","obs":{},"seq":-1}',
    "transitions that are none": '{"type":"transition_batch","transitions":{}}',
    "too many agents": json.dumps({"type": "act_batch", "obs": {n: [1] for n in range(2049)}}),
    "too many transitions": json.dumps({"type": "transition_batch", "transitions": [0] * 4097}),
    "deeper than anybody digs": '{"type":"act","obs":' + "[" * 100_000 + "]" * 100_000 + "}",
}
STEP = {"obs": FIRST, "action": [0.5, -0.5, 1], "reward": 0.25, "next_obs": SECOND, "done": False}
BAD_STEPS: dict[str, Any] = {
    "no object": 7,
    "no reward": {"obs": FIRST, "action": [0, 0, 0]},
    "a reward that is none": STEP | {"reward": "much"},
    "no observation": STEP | {"obs": None},
    "no action": STEP | {"action": None},
    "an action of two": STEP | {"action": [0, 0]},
    "an observation of text": STEP | {"obs": ["a"]},
    "another size": STEP | {"next_obs": [1.0, 2.0]},
    "a seq of somebody who never asked": {"seq": 7, "reward": 0.0, "info": {"agent": "Agent9"}},
    "a name too long": STEP | {"info": {"agent": "A" * 129}},
    "info that is none": STEP | {"info": 3},
}


def test_a_batch() -> None:
    spy = SpyBrain()
    with serving(lambda _: spy) as server, Game(server.port) as game:
        batch = {"type": "act_batch", "obs": {"Agent1": FIRST, "Agent2": SECOND}}
        actions = {"Agent1": FIRST[:3], "Agent2": SECOND[:3]}
        assert game.ask(batch) == {"type": "action_batch", "actions": actions, "info": {}}
        asks = spy.asked[0]
        assert [(ask.client, ask.agent, ask.seq) for ask in asks] == [
            (1, "Agent1", None),
            (1, "Agent2", None),
        ]
        assert asks[0].observation.dtype == np.float32
        assert server.counts.decisions == 2


@pytest.mark.parametrize("seq", [0, 7, 7.0, 2**53 - 1])
def test_seq_comes_back(seq: float) -> None:
    spy = SpyBrain()
    with serving(lambda _: spy) as server, Game(server.port) as game:
        answer = game.ask({"type": "act_batch", "obs": {"Agent1": FIRST}, "seq": seq})
    assert answer["seq"] == seq
    assert spy.asked[0][0].seq == seq


def test_an_empty_batch() -> None:
    with serving() as server, Game(server.port) as game:
        answer = game.ask({"type": "act_batch", "obs": {}, "seq": 3})
    assert answer == {"type": "action_batch", "actions": {}, "info": {}, "seq": 3}


def test_one_agent() -> None:
    with serving() as server, Game(server.port) as game:
        answer = game.ask({"type": "act", "obs": FIRST})
    assert answer == {"type": "action", "action": FIRST[:3], "info": {}}


@pytest.mark.parametrize("text", INVALID.values(), ids=INVALID)
def test_an_invalid_observation(text: str) -> None:
    with serving() as server, Game(server.port) as game:
        game.ask({"type": "act", "obs": FIRST})
        game.socket.send(text)
        error = {"error": "invalid_obs"}
        assert game.hear() == {"type": "action", "action": NOTHING, "info": error}
        assert game.ask({"type": "act", "obs": SECOND})["action"] == SECOND[:3]
        assert server.counts.bad_observations == 1
        assert server.counts.bad_messages == 0


def test_an_invalid_observation_spoils_no_other() -> None:
    with serving() as server, Game(server.port) as game:
        answer = game.ask({"type": "act_batch", "obs": {"Agent1": [], "Agent2": SECOND}})
    assert answer["actions"] == {"Agent1": NOTHING, "Agent2": SECOND[:3]}
    assert answer["info"] == {"error": "invalid_obs"}


def test_each_size_has_a_brain_of_its_own() -> None:
    spies: dict[int, SpyBrain] = {}

    def make(size: int) -> SpyBrain:
        return spies.setdefault(size, SpyBrain(size))

    with serving(make, most_sizes=2) as server, Game(server.port) as game:
        observations = {"small": [1.0] * 4, "large": [2.0] * 9, "huge": [3.0] * 10}
        answer = game.ask({"type": "act_batch", "obs": observations})
        assert answer["actions"] == {"small": [1.0] * 3, "large": [2.0] * 3, "huge": NOTHING}
        assert answer["info"] == {"error": "invalid_obs"}
    assert set(spies) == {4, 9}
    assert [ask.agent for ask in spies[9].asked[0]] == ["large"]


def test_two_games_with_the_same_names() -> None:
    spy = SpyBrain(4)
    with serving(lambda _: spy) as server, Game(server.port) as one, Game(server.port) as two:
        for number in range(20):
            for game, own in ((one, 100.0), (two, 200.0)):
                batch = {"type": "act_batch", "obs": {"Agent1": [own, number, 0.0, 0.0]}}
                assert game.ask(batch)["actions"]["Agent1"] == [own, number, 0.0]
    pairs = {(ask.client, float(ask.observation[0])) for asks in spy.asked for ask in asks}
    assert pairs == {(1, 100.0), (2, 200.0)}


def test_agents_may_not_become_too_many() -> None:
    with serving() as server, Game(server.port) as game:
        for start in (0, 2048):
            names = [f"Agent{number}" for number in range(start, start + 2048)]
            answer = game.ask({"type": "act_batch", "obs": dict.fromkeys(names, FIRST)})
            assert answer["info"] == ({"error": "invalid_obs"} if start else {})
        assert game.ask({"type": "act_batch", "obs": {"Agent0": FIRST}})["info"] == {}
        long = game.ask({"type": "act_batch", "obs": {"A" * 129: FIRST}})
        assert long["info"] == {"error": "invalid_obs"}


@pytest.mark.parametrize("batched", [True, False])
def test_transitions(batched: bool) -> None:
    spy = SpyBrain()
    info = {"agent": "Agent1", "role": "hider", "distance_to_other": 3.5, "terminal_reason": "tag"}
    step = STEP | {"done": True, "info": info, "mood": "unknown fields are ignored"}
    message = (
        {"type": "transition_batch", "transitions": [step]}
        if batched
        else {"type": "transition"} | step
    )
    with serving(lambda _: spy) as server, Game(server.port) as game:
        game.say(message)
        game.ask({"type": "act", "obs": FIRST})  # transitions have no answer of their own
        assert server.counts.bad_transitions == 0
    (learned,) = spy.learned
    assert (learned.client, learned.agent, learned.role) == (1, "Agent1", "hider")
    assert (learned.seq, learned.reward, learned.done) == (None, 0.25, True)
    assert learned.info == info
    for vector, expected in (
        (learned.observation, FIRST),
        (learned.action, [0.5, -0.5, 1.0]),
        (learned.next_observation, SECOND),
    ):
        assert vector is not None
        assert vector.tolist() == expected


def test_a_transition_with_seq_needs_no_more() -> None:
    spy = SpyBrain()
    with serving(lambda _: spy) as server, Game(server.port) as game:
        game.ask({"type": "act_batch", "obs": {"Agent1": FIRST}, "seq": 7})
        game.say({"type": "transition", "seq": 7, "reward": 1, "info": {"agent": "Agent1"}})
        game.ask({"type": "act", "obs": FIRST})
    (learned,) = spy.learned
    assert (learned.agent, learned.seq, learned.reward, learned.role) == ("Agent1", 7, 1.0, None)
    assert learned.observation is None
    assert learned.action is None


@pytest.mark.parametrize("step", BAD_STEPS.values(), ids=BAD_STEPS)
def test_a_bad_transition_is_left_out_and_counted(step: Any) -> None:
    spy = SpyBrain()
    with serving(lambda _: spy) as server, Game(server.port) as game:
        game.say({"type": "transition_batch", "transitions": [STEP, step, STEP]})
        game.ask({"type": "act", "obs": FIRST})
        assert server.counts.bad_transitions == 1
        assert server.counts.bad_messages == 0
    assert len(spy.learned) == 2


@pytest.mark.parametrize("recv", [{"type": "ping"}, {"type": "x", "deep": [1, {"n": None}]}])
def test_an_unknown_type_is_echoed(recv: dict[str, Any]) -> None:
    with serving() as server, Game(server.port) as game:
        assert game.ask(recv) == {"type": "echo", "recv": recv}
        assert server.counts.bad_messages == 0


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_a_bad_message_is_answered_with_an_error(text: str) -> None:
    with serving() as server, Game(server.port) as game:
        game.socket.send(text)
        answer = game.hear()
        assert answer["type"] == "error"
        assert answer["error"]
        assert game.ask({"type": "act", "obs": FIRST})["action"] == FIRST[:3]
        assert server.counts.bad_messages == 1


def test_a_hundred_bad_messages_in_a_row_are_enough() -> None:
    with serving() as server, Game(server.port) as game:
        for _ in range(99):
            assert game.ask("?")["type"] == "error"
        game.ask({"type": "act", "obs": FIRST})
        for _ in range(99):
            assert game.ask("?")["type"] == "error"
        assert "in a row" in game.ask("?")["error"]
        assert game.closed()[0] == 1008


def test_hello_in_json() -> None:
    with serving() as server, Game(server.port) as game:
        assert game.hello(encoding="json") == {
            "type": "hello",
            "protocol": 1,
            "encoding": "json",
            "observation_size": SIZE,
            "action_size": 3,
            "learning": True,
            "server": f"estragon {__version__}",
            "says": f"a spy of size {SIZE}",
        }
        assert game.ask({"type": "act", "obs": FIRST})["action"] == FIRST[:3]


def test_hello_of_a_game_that_only_plays() -> None:
    with serving() as server, Game(server.port) as game:
        assert game.hello(training=False, encoding="smoke")["learning"] is False
        assert game.ask({"type": "act", "obs": FIRST})["action"] == FIRST[:3]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"protocol": 2}, "protocol 2"),
        ({"protocol": "one"}, "protocol"),
        ({"observation_size": 126, "observation_version": 99}, "observation_version 99"),
        ({"observation_size": 0}, "observation_size"),
        ({"observation_size": 4097}, "observation_size"),
        ({"action_size": 2}, "action_size 2"),
        ({"arenas": 0}, "arenas"),
        ({"arenas": 1025}, "arenas"),
        ({"arenas": 1024, "observation_size": 4096}, "fewer arenas"),
        ({"controlled": [True]}, "controlled"),
    ],
)
def test_a_hello_that_does_not_fit(changes: dict[str, Any], says: str) -> None:
    with serving() as server, Game(server.port) as game:
        answer = game.hello(**changes)
        assert answer["type"] == "error"
        assert says in answer["error"]
        code, reason = game.closed()
        assert code == 1008
        assert reason == answer["error"][:123]


def test_a_hello_without_a_size() -> None:
    with serving() as server, Game(server.port) as game:
        assert game.ask({"type": "hello", "protocol": 1})["type"] == "error"
        assert game.closed()[0] == 1008


def test_a_second_hello() -> None:
    with serving() as server, Game(server.port) as game:
        game.hello()
        assert "second" in game.ask(hello())["error"]
        assert game.closed()[0] == 1008
