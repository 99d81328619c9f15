"""Parameters in the game: in force when an episode starts, per agent and for the game, echoed."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from estragon.godot.process import GodotProcess
from tests.godot.addon.peer import Peer, playing, staged

ORDERS = ("asks", "at_once", "reset_first", "no_reset", "limit")
DECLARED = [
    {"name": "speed", "default": 2.0, "low": 1.0, "high": 9.0, "unit": "m/s"},
    {"name": "wind", "default": 0.0, "unit": ""},
    {"name": "map", "default": "small", "unit": "", "choices": ["small", "large"]},
]
ACT = [{"push": [0.0]}]


@pytest.fixture(scope="session")
def dials(godot: Path) -> Path:
    return staged("dials")


def greet(peer: Peer, *encodings: str) -> dict[str, Any]:
    """As `peer.greet`, offering parameters."""
    say = peer.say

    def offer(**message: Any) -> None:
        say(**message, **({"parameters": True} if message["type"] == "handshake" else {}))

    peer.say = offer  # type: ignore[method-assign]
    info = peer.greet(*encodings)
    peer.say = say  # type: ignore[method-assign]
    return info


def values(number: int) -> dict[str, Any]:
    return {"speed": float(number), "wind": number / 10, "map": ["small", "large"][number % 2]}


def reset(peer: Peer, *numbers: int) -> list[Any]:
    peer.say(type="reset", parameters=[values(number) for number in numbers])
    return peer.read(peer.receive(), 0x52)


def give(peer: Peer, agent: int, number: int) -> None:
    peer.say(type="parameters", agents={str(agent): values(number)})


def tell(peer: Peer) -> Any:
    peer.say(type="call", method="tell")
    return peer.hear()["returns"]


def test_they_are_announced_if_the_trainer_knows_them(dials: Path, tmp_path: Path) -> None:
    with playing(dials, tmp_path / "new") as peer:
        assert greet(peer, "binary1")["parameters"] == DECLARED
        peer.reset()
        peer.say(type="parameters")
        unsaid = {"name": "unsaid", "default": 3.0}
        assert peer.hear() == {"type": "parameters", "parameters": [*DECLARED, unsaid]}
    with playing(dials, tmp_path / "old") as peer:
        assert "parameters" not in peer.greet("binary1")
        assert "parameters" not in peer.reset()[0].info
        assert tell(peer) == [[2.0, 0.0, "small", 0]], "the declared defaults"


@pytest.mark.parametrize("order", ORDERS)
def test_a_reset_reads_what_is_to_be_played(dials: Path, tmp_path: Path, order: str) -> None:
    with playing(dials, tmp_path, "--agents=2", f"--order={order}") as peer:
        greet(peer, "binary1")
        first = reset(peer, 1, 2)
        assert [row.info["parameters"] for row in first] == [values(1), values(2)]
        expected = {0: 1, 1: 2}
        ahead = {0: 3, 1: 4}
        for agent, number in ahead.items():
            give(peer, agent, number)
        newest, first_agent, ends = 4, 1, 0
        for _ in range(24):
            for row in peer.step(0.0, 0.0):
                if row.state:
                    ends += 1
                    assert row.last is not None
                    if order != "reset_first":
                        assert row.last["obs"][1] == expected[row.id], "the end is of the old one"
                    expected[row.id] = ahead[row.id]
                    assert row.info["parameters"] == values(expected[row.id])
                    newest = newest % 8 + 1
                    ahead[row.id] = newest
                    give(peer, row.id, newest)
                    if row.id == 0:
                        first_agent = expected[0]
                assert row.obs["obs"][1] == expected[row.id]
                assert row.obs["obs"][3] == expected[row.id] % 2
        assert ends >= 14
        assert tell(peer)[0][1] == pytest.approx(first_agent / 10)
        assert tell(peer)[0][3] >= ends // 2, "changes are told"
        assert not [line for line in peer.process.lines() if "ERROR" in line]


def test_the_values_of_the_game_are_those_of_its_first_agent(dials: Path, tmp_path: Path) -> None:
    with playing(dials, tmp_path, "--agents=2", "--order=at_once", "--leave=30") as peer:
        greet(peer, "binary1")
        assert [row.obs["obs"][2] for row in reset(peer, 1, 2)] == pytest.approx([0.1, 0.1])
        give(peer, 0, 3)
        give(peer, 1, 4)
        winds = {0: 0.1, 1: 0.1}
        while len(peer.roster) > 1:
            for row in peer.step(0.0, 0.0):
                if row.state & 3 and not row.state & 8:
                    winds[row.id] = row.obs["obs"][2]
        assert winds == pytest.approx({0: 0.3, 1: 0.3})
        give(peer, 1, 6)
        rows = [peer.step(0.0)[0] for _ in range(6)]
        assert rows[-1].obs["obs"][2] == pytest.approx(0.6)


def test_who_joins_plays_with_the_values_of_the_game(dials: Path, tmp_path: Path) -> None:
    with playing(dials, tmp_path, "--order=at_once", "--join=6") as peer:
        greet(peer, "binary1")
        reset(peer, 5)
        give(peer, 0, 7)
        rows = [peer.step(*[0.0] * len(peer.roster)) for _ in range(3)]
        joined = next(row for step in rows for row in step if row.id == 1)
        assert joined.info == {"parameters": values(5)}
        give(peer, 1, 8)
        while len(rows[-1]) < 2 or not rows[-1][1].state:
            rows.append(peer.step(0.0, 0.0))
        assert rows[-1][0].obs["obs"][1] == 7.0
        assert rows[-1][1].obs["obs"][1] == 8.0
        last = rows[-1][1].last
        assert last is not None
        assert last["obs"][1] == 5.0


@pytest.mark.parametrize("order", [order for order in ORDERS if order != "limit"])
def test_in_json(dials: Path, tmp_path: Path, order: str) -> None:
    with playing(dials, tmp_path, f"--order={order}") as peer:
        info = greet(peer)
        assert (info["parameters"], info["agent_ids"]) == (DECLARED, [0])
        peer.say(type="reset", parameters=[values(1)])
        assert peer.hear()["info"] == [{"parameters": values(1)}]
        give(peer, 0, 2)
        playing_now, ahead, ends = 1, 2, 0
        for _ in range(20):
            answer = peer.old_step(ACT)
            if answer["done"][0]:
                playing_now, ahead, ends = ahead, ahead % 8 + 1, ends + 1
                assert answer["info"] == [{"parameters": values(playing_now)}]
                give(peer, 0, ahead)
            else:  # version 0.7 may send what was seen before the reset with `done`
                assert answer["info"] == [{}]
                assert answer["obs"][0]["obs"][1] == playing_now
        assert ends >= 6


def test_numbers_come_back_as_they_were_sent(dials: Path, tmp_path: Path) -> None:
    chance = random.Random(3)
    with playing(dials, tmp_path) as peer:
        greet(peer, "binary1")
        for _ in range(100):
            number = float(f"{chance.uniform(-10, 10) * 10 ** chance.randint(-8, 8):.12g}")
            peer.say(type="reset", parameters=[{"speed": number, "map": "größer \"'\n{"}])
            (row,) = peer.read(peer.receive(), 0x52)
            assert row.info["parameters"] == {"speed": number, "map": "größer \"'\n{"}


def test_the_command_line(dials: Path, tmp_path: Path) -> None:
    def played(*typed: str) -> tuple[Any, list[str]]:
        words = ["--headless", "--path", str(dials), "--fixed-fps", "60", "--report=5"]
        with GodotProcess([*words, *typed], folder=tmp_path) as process:
            process.wait("its end", 30.0)
            lines = process.lines()
        (report,) = [line for line in lines if line.startswith("REPORT ")]
        return json.loads(report.removeprefix("REPORT ")), [x for x in lines if "WARNING" in x]

    assert played() == ([2.0, 0.0, "small", 0], [])
    given = ("--parameter.speed=4.5", "--parameter.map=large", "--parameter.wind=far")
    found, warnings = played(*given)
    assert found == [4.5, 0.0, "large", 0]
    assert ["parameter wind: expected a number, got far" in line for line in warnings] == [True]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"type": "parameters", "agents": {"7": {}}}, "expected an object with ids of agents"),
    ({"type": "parameters", "agents": {"zero": {}}}, "expected an object with ids of agents"),
    ({"type": "parameters", "agents": [{}]}, "expected an object with ids of agents"),
    ({"type": "parameters", "agents": None}, "expected an object with ids of agents"),
    ({"type": "parameters", "agents": {"0": [1]}}, "at most 256 values"),
    ({"type": "parameters", "agents": {"0": {"speed": None}}}, "speed: expected a number or a"),
    ({"type": "parameters", "agents": {"0": {"speed": [1]}}}, "speed: expected a number or a"),
    ({"type": "parameters", "agents": {"0": {"speed": True}}}, "speed: expected a number or a"),
    ({"type": "parameters", "agents": {"0": {"map": "x" * 257}}}, "at most 256 characters"),
    ({"type": "parameters", "agents": {"0": {"x" * 65: 1}}}, "1 to 64 characters"),
    ({"type": "parameters", "agents": {"0": {"": 1}}}, "1 to 64 characters"),
    ({"type": "parameters", "agents": {"0": {str(n): n for n in range(257)}}}, "at most 256 val"),
    ({"type": "reset", "parameters": {}}, "expected a list for 1 agents"),
    ({"type": "reset", "parameters": [{}, {}]}, "expected a list for 1 agents"),
    ({"type": "reset", "parameters": [7]}, "at most 256 values"),
]


@pytest.mark.parametrize("number", range(0, len(BAD), 4))
def test_what_makes_no_sense_is_refused_with_one_line(
    dials: Path, tmp_path: Path, number: int
) -> None:
    for which, (message, why) in enumerate(BAD[number : number + 4]):
        with playing(dials, tmp_path / str(which)) as peer:
            greet(peer, *(["binary1"] if which % 2 else []))
            peer.say(**message)
            assert peer.process.wait("its end", 20.0) == 1
            lines = peer.process.lines()
        said = [line for line in lines if line.startswith("Godot RL Agents: ")]
        assert len(said) == 1, said
        assert why in said[0]
        assert not [line for line in lines if "SCRIPT ERROR" in line]


@pytest.mark.parametrize("text", ["NaN", "1e999", "-inf"])
def test_no_number_but_nan(dials: Path, tmp_path: Path, text: str) -> None:
    with playing(dials, tmp_path) as peer:
        greet(peer, "binary1")
        peer.send(b'{"type":"parameters","agents":{"0":{"speed":%s}}}' % text.encode())
        assert peer.process.wait("its end", 20.0) == 1
        said = [line for line in peer.process.lines() if line.startswith("Godot RL Agents: ")]
        assert len(said) == 1
