"""Both engines play the same game: whole matches, senses, rewards and bots, to the bit."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np
import pytest

from estragon.cli import main
from estragon.tag.arenas import Arenas
from estragon.tag.bots import BOTS, Bot
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.godot_arenas import GodotArenas
from estragon.tag.layout import Box, Layout, layout_names, load_layouts
from estragon.tag.matches import EngineName, evaluate, play_batches, play_matches
from estragon.tag.parity import compare_engines, summarise
from estragon.tag.rules import GOING_ON, VARIABLE, Rules, load_rules
from estragon.tag.variation import Variation
from tests.prove import Recorder

ARENAS = 16
SUMMARY = {
    "episodes",
    "share_identical",
    "share_within_1mm",
    "worst_error_m",
    "ray_agreement",
    "reward_agreement",
    "outcome_agreement",
}
RANDOM = "random:100-103"
LAYOUTS = ",".join([*layout_names(), RANDOM])
"""Every layout of the game, and some at random; each episode draws one."""
CORRIDOR = Layout([Box((0.0, 0.7), (20.0, 2.8, 18.6))], name="corridor")
"""Hardly any drawn place is free: some episodes begin at the far points."""
LEAST_EPISODES = 3
SEED = 11
"""Every layout is drawn at least so often."""


def opened(rules: Rules) -> GodotArenas:
    layouts = [*load_layouts(LAYOUTS, rules), CORRIDOR]
    return GodotArenas(ARENAS, rules=rules, layouts=layouts, seed=SEED)


def every_term(rules: Rules) -> Rules:
    """The same rules without a weight of 0, so that both engines have to compute every term."""
    weights = {name: value or 0.25 for name, value in rules.reward_profiles[rules.rewards].items()}
    profiles = rules.reward_profiles | {rules.rewards: weights}
    return msgspec.structs.replace(rules, reward_profiles=profiles)


def compared(
    godot: GodotArenas, episodes: int = ARENAS, embedded: type[Arenas] = Arenas, **options: Any
) -> list[dict[str, Any]]:
    """Episodes in a Godot that is already running, beside an embedded engine of the same game."""
    ours = embedded(
        godot.count, rules=godot.rules, layout=godot.layouts, seed=godot.seed, **options
    )
    return compare_engines(ours, godot, episodes)[0]


@pytest.fixture(scope="module")
def godot() -> Iterator[GodotArenas]:
    """One Godot for all tests of the default rules."""
    with opened(load_rules()) as arenas:
        yield arenas


@pytest.fixture(scope="module", params=["seek", "transfer", "hide"])
def played(request: pytest.FixtureRequest, godot: GodotArenas) -> dict[str, list[dict[str, Any]]]:
    """Episodes on all layouts, by the layout that they drew."""
    if request.param == "seek":
        found = compared(godot, 5 * ARENAS)
        assert {record["outcome"] for record in found} == {"tag", "timeout"}
    else:
        rewards = "classic" if request.param == "transfer" else None
        with opened(every_term(load_rules(rules=request.param, rewards=rewards))) as other:
            found = compared(other, 5 * ARENAS)
    records: dict[str, list[dict[str, Any]]] = {}
    for record in found:
        name = RANDOM if record["layout"].startswith("random") else record["layout"]
        records.setdefault(name, []).append(record)
    return records


@pytest.mark.parametrize("layout", [*layout_names(), RANDOM, "corridor"])
def test_random_episodes_are_identical(
    played: dict[str, list[dict[str, Any]]], layout: str
) -> None:
    records = played[layout]
    assert len(records) >= LEAST_EPISODES
    assert all(record["identical"] for record in records), [
        record for record in records if not record["identical"]
    ][:3]
    summary = summarise(records)
    assert summary["worst_error_m"] == 0.0
    assert summary["ray_agreement"] == summary["reward_agreement"] == 1.0
    assert summary["outcome_agreement"] == 1.0


@pytest.mark.prove
@pytest.mark.parametrize("rules", ["seek", "transfer", "hide"])
@pytest.mark.parametrize("layout", [*layout_names(), "random:100-163"])
def test_two_hundred_episodes_on_every_layout(
    layout: str, rules: str, record_result: Recorder
) -> None:
    loaded = load_rules(rules=rules)
    layouts = load_layouts(layout, loaded)
    with GodotArenas(32, rules=loaded, layouts=layouts, seed=11) as arenas:
        summary = summarise(compared(arenas, 224))
    assert summary["share_within_1mm"] == summary["outcome_agreement"] == 1.0
    assert summary["ray_agreement"] == summary["reward_agreement"] == 1.0
    record_result(
        f"parity of the engines: {layout}, {rules}",
        f"{summary['episodes']} episodes in 32 arenas, {summary['share_identical']:.1%} identical "
        f"to the bit, worst error {summary['worst_error_m']:g} m",
    )


def test_the_command_writes_what_it_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result, picture = tmp_path / "parity.json", tmp_path / "parity.png"
    words = ["parity", "--episodes", "5", "--arenas", "4", "--json", str(result)]
    assert main([*words, "--plot", str(picture)]) == 0
    data = json.loads(result.read_text())
    assert set(data) >= SUMMARY
    assert data["episodes"] == len(data["per_episode"]) == 5
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "share_identical      1.0" in capsys.readouterr().out


@pytest.fixture
def variation(tmp_path: Path, godot: GodotArenas) -> Variation:
    """Every rule number drawn from its whole range, but for matches of a few seconds."""
    ranges = {name: {"uniform": [low, high]} for name, (_, low, high) in VARIABLE.items()}
    ranges["time_limit_sec"] = {"uniform": [2, 6]}
    path = tmp_path / "parameters.json"
    path.write_text(json.dumps({"parameters": ranges}))
    offered = [list(range(len(godot.layouts)))]
    read = Variation.read(path, godot.rules, layout="empty")
    return dataclasses.replace(read, layouts=godot.layouts, offered=offered)


def test_episodes_with_rules_of_their_own_are_identical(
    godot: GodotArenas, variation: Variation
) -> None:
    try:
        records = compared(godot, 3 * ARENAS, variation=variation)
    finally:
        godot.vary([godot.rules] * godot.count)
    assert all(record["identical"] for record in records), [
        record for record in records if not record["identical"]
    ][:3]
    assert {record["outcome"] for record in records} == {"tag", "timeout"}
    assert summarise(records)["outcome_agreement"] == 1.0
    assert len({record["ticks"] for record in records}) > ARENAS


def test_the_comparison_sees_values_of_another_arena(
    godot: GodotArenas, variation: Variation, monkeypatch: pytest.MonkeyPatch
) -> None:
    vary = godot.vary
    with monkeypatch.context() as patch:
        patch.setattr(godot, "vary", lambda rules: vary([*rules[1:], rules[0]]))
        records = compared(godot, variation=variation)
    vary([godot.rules] * godot.count)
    assert not any(record["identical"] for record in records)


def test_the_command_varies_the_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "parameters.yaml"
    path.write_text(
        "parameters: {layout: {choice: [empty, rooms]}, time_limit_sec: 2}\n"
        "curriculum:\n"
        "- {name: near, parameters: {spawn_separation_m: 2}, until: {progress: 0.5}}\n"
        "- {name: far, parameters: {spawn_separation_m: {uniform: [6, 12]}}}\n"
    )
    assert main(["parity", "--episodes", "2", "--arenas", "2", "--parameters", str(path)]) == 0
    assert "share_identical      1.0" in capsys.readouterr().out
    path.write_text("parameters: {wings: 2}")
    assert main(["parity", "--parameters", str(path)]) == 2
    assert "wings: the game has no such parameter" in capsys.readouterr().err


class Faster(Arenas):
    """An embedded engine whose agents accelerate a little more than the rules say."""

    def __init__(self, count: int, **options: Any) -> None:
        rules: Rules = options.pop("rules")
        agent = msgspec.structs.replace(rules.agent, acceleration_mps2=20.01)
        super().__init__(count, rules=msgspec.structs.replace(rules, agent=agent), **options)


class OneBitOff(Arenas):
    """An embedded engine that puts one agent of one arena a single bit beside its place."""

    def reset(self, seed: int | None = None, *, first_arena: int | None = None) -> np.ndarray:
        super().reset(seed, first_arena=first_arena)
        self.agents["x"][1, 0] = np.nextafter(self.agents["x"][1, 0], np.inf)
        return self._observe()


def test_the_comparison_sees_other_rules(godot: GodotArenas) -> None:
    summary = summarise(compared(godot, embedded=Faster))
    assert summary["share_identical"] == 0.0
    assert summary["share_within_1mm"] < 1.0
    assert summary["worst_error_m"] > 0.001
    assert summary["reward_agreement"] < 1.0


def test_the_comparison_sees_a_single_bit(godot: GodotArenas) -> None:
    records = compared(godot, embedded=OneBitOff)
    different = [record for record in records if not record["identical"]]
    assert [record["episode"] for record in different] == [1]
    assert different[0]["first_difference_tick"] == 0
    assert different[0]["worst_error_m"] > 0.0


def test_a_policy_plays_the_same_match_in_both(godot: GodotArenas) -> None:
    """Closed loop: each engine's own observations drive its own actions."""
    rules = load_rules()
    seeker = FrozenPolicy.untrained(rules, "seeker", seed=1)
    hider = FrozenPolicy.untrained(rules, "hider", seed=2)
    embedded = Arenas(ARENAS, rules=rules, layout=godot.layouts, seed=SEED)
    engines: list[tuple[Arenas | GodotArenas, np.ndarray]] = [
        (embedded, embedded.reset()),
        (godot, godot.reset()),
    ]
    actions = np.zeros((2, ARENAS, 2, 3), dtype=np.float32)
    parted: dict[int, int] = {}
    playing = np.ones(ARENAS, dtype=bool)
    decision = 0
    while playing.any():
        for which, (_, seen) in enumerate(engines):
            actions[which, :, 0] = seeker.act(seen[:, 0])
            actions[which, :, 1] = hider.act(seen[:, 1])
        results = [
            engine.step(actions[which], restart=False) for which, (engine, _) in enumerate(engines)
        ]
        same = (results[0].observations == results[1].observations).all(axis=(1, 2))
        for arena in np.flatnonzero(playing & ~same):
            parted.setdefault(int(arena), 3 * (decision + 1))
        playing &= (results[0].ends == GOING_ON) & (results[1].ends == GOING_ON)
        engines = [
            (engine, result.observations)
            for (engine, _), result in zip(engines, results, strict=True)
        ]
        decision += 1
    assert not parted, f"matches part at these ticks: {parted}"


def test_episodes_that_restart_go_on_alike(godot: GodotArenas) -> None:
    embedded = Arenas(ARENAS, layout=godot.layouts, seed=SEED)
    embedded.reset()
    godot.reset()
    random = np.random.default_rng(0)
    ended = 0
    for _ in range(230):
        actions = random.uniform(-1, 1, (ARENAS, 2, 3)).astype(np.float32)
        ours, theirs = embedded.step(actions), godot.step(actions)
        over = ours.ends != GOING_ON
        ended += int(over.sum())
        for one, other in zip(ours, theirs, strict=True):
            assert np.array_equal(one[over], other[over])
        assert np.array_equal(ours.observations, theirs.observations)
        assert np.array_equal(ours.distances, theirs.distances)
    assert ended >= ARENAS


@pytest.mark.parametrize("name", BOTS)
def test_a_bot_does_the_same_in_both(godot: GodotArenas, name: str) -> None:
    rules = load_rules()
    arenas = Arenas(64, rules=rules, layout=LAYOUTS, seed=5)
    seen = [arenas.reset().copy()]
    bots = Bot("chaser", rules), Bot("evader", rules)
    actions = np.zeros((64, 2, 3), dtype=np.float32)
    for _ in range(80):
        for agent, bot in enumerate(bots):
            actions[:, agent] = bot.act(np.ascontiguousarray(seen[-1][:, agent]))
        seen.append(arenas.step(actions).observations.copy())
    rows = np.concatenate(seen[::8]).reshape(-1, rules.observation.size)
    ours, theirs = Bot(name, rules).act(rows), godot.ask_bot(BOTS.index(name), rows)
    different = np.flatnonzero((ours != theirs).any(axis=1))
    assert not len(different), (
        f"rows {different[:5]}: {ours[different[:5]]}, {theirs[different[:5]]}"
    )


def test_matches_end_the_same_in_both(godot: GodotArenas) -> None:
    rules = godot.rules
    players = Bot("chaser", rules), Bot("evader", rules)
    ours = play_matches(*players, 20, rules=rules, layouts=godot.layouts, seed=SEED)
    for one, other in zip(ours, play_batches(godot, *players, 20), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.prove
@pytest.mark.parametrize("layout", [*layout_names(), "random:100-163"])
def test_a_thousand_matches_of_bots_on_every_layout(layout: str, record_result: Recorder) -> None:
    rates = {}
    for hider in ("evader", "random"):
        embedded, godot = (
            evaluate(
                "bot:chaser",
                f"bot:{hider}",
                rules=load_rules(),
                engine=engine,
                layout=layout,
                episodes=500,
                seed=4,
            )
            for engine in get_args(EngineName)
        )
        assert {**embedded, "engine": "godot"} == godot
        rates[hider] = embedded["seeker_win_rate"]
    told = ", ".join(f"{hider} in {rate:.1%}" for hider, rate in rates.items())
    record_result(
        f"the same strength in both engines: {layout}",
        f"500 matches each, the same ones embedded and in Godot: the chaser tags {told}",
    )
