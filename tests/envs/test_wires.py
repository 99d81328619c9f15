"""Whatever a game sends, what comes of it is an answer or a BadMessageError, and soon."""

import json
import random
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estragon.envs.binary_wire import BinaryWire
from estragon.envs.json_wire import JsonWire
from estragon.envs.spaces import read_spaces
from estragon.envs.wire import (
    AgentInfo,
    AgentTable,
    BadMessageError,
    EnvInfo,
    StepResult,
    check_depth,
    read_agents,
)
from estragon.godot.process import GodotError

SPACES = read_spaces(
    {
        "obs": {"size": [3], "space": "box"},
        "near": {"size": 4, "space": "discrete"},
        "eye_2d": {"size": [2, 3, 1], "space": "box"},
    },
    {"go": {"size": 3, "action_type": "discrete"}},
    {"go": 3},
    trusted_images=True,
)
TABLE = AgentTable((AgentInfo(0, "a", SPACES), AgentInfo(4, "b", SPACES)))
JOINED = (
    b'[{"id":5,"policy":"c","observation_space":{"obs":{"size":[1],"space":"box"}},'
    b'"action_space":{},"action_mask":{}}]'
)


def good_frame() -> bytes:
    """All sections there are: someone joins, someone ends, someone leaves."""

    def padded(data: bytes) -> bytes:
        return data + bytes(-len(data) % 4)

    infos = b'[{"seed":3},{},{"x":[1]}]'
    return (
        struct.pack("<BBHI", 0x53, 7, 0, 3)
        + padded(struct.pack("<I", len(JOINED)) + JOINED)
        + struct.pack("<3f", 1.0, 2.0, 0.0)
        + padded(bytes([1 | 4, 8, 0]))
        + struct.pack("<9f", *range(9))
        + struct.pack("<4f", *range(4))
        + padded(bytes(range(12)))
        + padded(bytes(range(6)))
        + padded(bytes([1, 0, 1, 1, 1, 1]))
        + padded(struct.pack("<I", len(infos)) + infos)
    )


def test_the_good_frame_is_good() -> None:
    wire = BinaryWire(TABLE)
    result = wire.decode(bytearray(good_frame()), reset=False)
    assert result.num_joined == 1
    assert [agent.id for agent in wire.table.agents] == [0, 5]
    assert result.obs.by_key(1)["obs"].tolist() == [4, 5, 6]
    assert result.obs.by_key(2)["obs"].tolist() == [8]
    assert result.final_obs is not None
    assert result.final_obs.by_key(0)["near"] == 3
    assert result.final_obs.by_key(0)["eye_2d"].reshape(-1).tolist() == [0, 1, 2, 3, 4, 5]
    assert result.infos == [{"seed": 3}, {}, {"x": [1]}]
    frame = wire.encode_actions(np.array([2.0], np.float32))
    assert bytes(frame) == struct.pack("<IBBHIf", 12, 0x41, 0, 0, 2, 2.0)


def attempt(data: bytes) -> None:
    try:
        result = BinaryWire(TABLE).decode(bytearray(data), reset=False)
    except BadMessageError:
        return
    assert isinstance(result, StepResult)
    assert np.isfinite(result.obs.values).all()


def test_every_damaged_byte_and_every_length() -> None:
    data = good_frame()
    for place in range(len(data)):
        attempt(data[:place])
        for value in (0, 1, 0x7F, 0x80, 0xFF, ord("{"), ord('"')):
            attempt(data[:place] + bytes([value]) + data[place + 1 :])


def test_damage_in_several_places() -> None:
    seed = 4
    print("seed", seed)
    chance = random.Random(seed)
    data = good_frame()
    for _ in range(3000):
        broken = bytearray(data)
        for _ in range(chance.randint(1, 6)):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        attempt(bytes(broken))


@given(st.binary(max_size=200))
@settings(max_examples=150)
def test_noise(data: bytes) -> None:
    attempt(data)
    attempt(b"S" + data)
    for reset in (False, True):
        with pytest.raises(BadMessageError):
            JsonWire(TABLE).decode(bytearray(data), reset=reset)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(["obs", "near", "eye_2d", "size", "space", "action_type"])


@given(obs=JSON, reward=JSON, done=JSON, info=JSON)
@settings(max_examples=50)
def test_json_of_any_shape(obs: object, reward: object, done: object, info: object) -> None:
    text = json.dumps({"type": "step", "obs": obs, "reward": reward, "done": done, "info": info})
    with pytest.raises(BadMessageError):
        JsonWire(TABLE).decode(bytearray(text.encode()), reset=False)


@pytest.mark.parametrize("keys", [["obs"], ["obs", "more"]])
def test_whole_numbers_of_any_length(keys: list[str]) -> None:
    actions = {"go": {"size": 3, "action_type": "discrete"}}
    spaces = read_spaces(
        {key: {"size": [2], "space": "box"} for key in keys},
        actions,
        {"go": 3},
        trusted_images=True,
    )
    seen = {key: [1, 10**400] for key in keys}
    step = {"type": "step", "obs": [seen], "reward": [0.0], "done": [False]}
    with pytest.raises(BadMessageError, match=r"'obs' of agent 0 .*\[1\] is 1000"):
        JsonWire(AgentTable((AgentInfo(0, "a", spaces),))).decode(
            bytearray(json.dumps(step).encode()), reset=False
        )


@given(st.dictionaries(KEYS, JSON | st.dictionaries(KEYS, JSON, max_size=4), max_size=4), JSON)
@settings(max_examples=150)
def test_spaces_of_any_shape(space: dict[str, object], other: object) -> None:
    info = EnvInfo(space, other if isinstance(other, dict | list) else {}, n_agents=1)
    try:
        table = read_agents(info)
    except GodotError:
        return
    assert len(table) == 1


@pytest.mark.parametrize("size", [float("nan"), float("inf"), -1, 1.5, "3", None, [], True, 2**80])
def test_sizes_that_are_none(size: object) -> None:
    with pytest.raises(GodotError, match="agent 0: action 'go'"):
        read_agents(EnvInfo({}, {"go": {"size": size, "action_type": "continuous"}}, n_agents=1))


def test_json_that_is_nested_deep() -> None:
    deep: object = 1
    for _ in range(31):
        deep = [deep]
    check_depth([deep])
    with pytest.raises(BadMessageError, match="32 deep"):
        check_depth([[deep]])
    text = '{"type":"step","obs":' + "[" * 100_000
    with pytest.raises(BadMessageError):
        JsonWire(TABLE).decode(bytearray(text.encode()), reset=False)
