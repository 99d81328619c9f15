"""ONNX models play agents: each with its own or Sync's, in one run, with memories of their own."""

import contextlib
import json
from collections import Counter
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.onnx.metadata import with_metadata
from tests.godot.addon import models
from tests.godot.addon.cast import (
    COUNTS,
    JUMP,
    KICK,
    MOVE,
    ONNX,
    REPEAT,
    SEES,
    TURN,
    Stage,
    actor,
    told,
)
from tests.godot.addon.peer import playing


def approx(numbers: Any) -> Any:
    return pytest.approx(numbers, abs=1e-6)


def test_models_of_sync_and_of_agents_in_two_and_three_dimensions(stage: Stage) -> None:
    usual = models.linear(stage / "usual.onnx", [[0.01, 0.0], [0.0, 0.01]])
    own = models.constant(stage / "own.onnx", 0.5, -3.0)
    found = stage.play(
        actor("Ann", SEES, MOVE, number=10),
        actor("Bob", SEES, MOVE, number=20, is_3d=True),
        actor("Cy", SEES, MOVE, is_3d=True, set={"onnx_model_path": str(own)}),
        actor("Di", SEES, MOVE, set={"control_mode": 1}),
        onnx_model_path=usual,
    )
    assert found.errors == []
    assert found.heuristics == {"Ann": "model", "Bob": "model", "Cy": "model", "Di": "human"}
    decisions = range(0, 41, REPEAT)
    for name, number in (("Ann", 0.1), ("Bob", 0.2)):
        assert found.ticks(name) == list(decisions)
        assert found.of(name, "move") == [approx([number, 0.01 * tick]) for tick in decisions]
    assert found.of("Cy", "move") == [approx([0.5, -1.0])] * len(decisions)
    assert found.acts["Di"] == []


def test_a_controller_that_asks_for_a_model_where_sync_lets_people_play(stage: Stage) -> None:
    own = models.constant(stage / "own.onnx", 0.0, 1.0, 0.0)
    wish = {"control_mode": ONNX, "onnx_model_path": str(own)}
    found = stage.play(
        actor("Ann", SEES, KICK, set=wish), actor("Bob", SEES, KICK), control_mode=0, ticks=9
    )
    assert found.heuristics == {"Ann": "model", "Bob": "human"}
    assert found.of("Ann", "kick") == [1, 1, 1]
    assert found.errors == []


def test_every_kind_of_action_and_observation(stage: Stage) -> None:
    """Actions in both layouts; several observations by name or side by side."""
    mixed = MOVE | KICK | TURN | JUMP
    sees = {"near": [0.1, 0.2], "far": [0.3, 0.4]}
    weights = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    godot_rl = models.constant(stage / "godot_rl.onnx", 0.1, -0.2, 0, 0, 1, 0.3, 2, 1)
    rllib = models.constant(stage / "rllib.onnx", 0.1, -0.2, -5, -5, 0, 0, 1, 0.3, -5, 2, 1)
    several = models.constant(stage / "several.onnx", 3, 2, 1, -1, 0)
    apart = models.linear(stage / "apart.onnx", weights, names=["far", "near"])
    joined = models.linear(stage / "joined.onnx", weights)
    found = stage.play(
        actor("Means", SEES, mixed, set={"onnx_model_path": str(godot_rl)}),
        actor("Spreads", SEES, mixed, set={"onnx_model_path": str(rllib)}),
        actor("Several", SEES, KICK | JUMP, set={"onnx_model_path": str(several)}),
        actor("Apart", sees, MOVE, set={"onnx_model_path": str(apart)}),
        actor("Joined", sees, MOVE, set={"onnx_model_path": str(joined)}),
        ticks=3,
    )
    assert found.errors == []
    (means,), (spreads,) = ([act["action"] for act in found.acts[n]] for n in ("Means", "Spreads"))
    assert (
        means
        == spreads
        == {"move": approx([0.1, -0.2]), "kick": 2, "turn": approx([0.3]), "jump": 0}
    )
    assert [act["action"] for act in found.acts["Several"]] == [{"kick": 0, "jump": 1}]
    assert found.of("Apart", "move") == found.of("Joined", "move") == [approx([0.4, 0.6])]


def test_masks_bind_the_best(stage: Stage) -> None:
    model = models.constant(stage / "model.onnx", 3.0, 2.0, 1.0)
    masks = {"kick": [[1, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 0]]}
    best = stage.play(actor("Ann", SEES, KICK, masks=masks), onnx_model_path=model, ticks=32)
    assert best.of("Ann", "kick") == [0, 1, 2, 0, 0, 1, 2, 0]


def test_drawn_actions_follow_the_policy_the_mask_and_the_seed(stage: Stage) -> None:
    mixed = KICK | TURN
    model = models.constant(stage / "model.onnx", 1.0, 2.0, 0.0, 0.1, -2.0)
    kicks_only = models.constant(stage / "kicks.onnx", 3.0, 2.0, 1.0)
    masked = {"masks": {"kick": [[1, 0, 1]]}, "set": {"onnx_model_path": str(kicks_only)}}
    actors = [actor(f"Actor{i}", SEES, mixed) for i in range(4)]
    plays = [
        stage.play(
            *actors,
            actor("Masked", SEES, KICK, **masked),
            onnx_model_path=model,
            deterministic_inference=False,
            action_repeat=1,
            ticks=300,
        )
        for _ in range(2)
    ]
    assert plays[0].acts == plays[1].acts
    drawn = plays[0].of("Masked", "kick")
    assert 1 not in drawn
    assert drawn.count(2) / len(drawn) == pytest.approx(1 / (1 + exp(2)), abs=0.06)
    acts = [act["action"] for each in actors for act in plays[0].acts[each["name"]]]
    kicks = Counter(act["kick"] for act in acts)
    total = sum(exp(logit) for logit in (1, 2, 0))
    for kick, logit in enumerate((1, 2, 0)):
        assert kicks[kick] / len(acts) == pytest.approx(exp(logit) / total, abs=0.06)
    turns = np.array([act["turn"][0] for act in acts])
    assert turns.mean() == pytest.approx(0.1, abs=0.03)
    assert turns.std() == pytest.approx(exp(-2), rel=0.15)


def test_every_agent_remembers_its_own_episode(stage: Stage) -> None:
    """The model says what was seen two decisions ago, and nothing of the episode before."""
    model = models.echo(stage / "echo.onnx")
    sees = {"obs": ["count"]}
    found = stage.play(
        actor("Ann", sees, TURN, lifetime=18),
        actor("Bob", sees, TURN, lifetime=26, is_3d=True),
        actor("AnnAsks", sees, TURN, lifetime=18, asks=True),
        actor("BobAsks", sees, TURN, lifetime=26, asks=True, is_3d=True),
        actor("Cy", {"obs": [0.25]}, TURN),
        onnx_model_path=model,
        action_repeat=2,
        ticks=80,
        events={
            "21": [{"do": "add", "actor": actor("Di", sees, TURN, lifetime=14)}],
            "33": [{"do": "free", "node": "Cy"}],
        },
    )
    assert found.errors == []
    for name, acts in found.acts.items():
        before: list[int] = []
        assert len(acts) > 10
        episodes = 0
        for act in acts:
            if before and act["count"] < before[-1]:
                before = []
                episodes += 1
            seen = 0.25 if name == "Cy" else act["count"]
            expected = before[-2] if len(before) > 1 else 0.0
            expected = 0.25 if name == "Cy" and len(before) > 1 else expected
            assert act["action"]["turn"] == approx([min(expected, 1.0)]), (name, act, seen)
            before.append(act["count"])
        assert episodes >= (0 if name == "Cy" else 2)
    # A reset that falls on a decision has its tick, as with a trainer.
    assert all(act["count"] != 18 for act in found.acts["AnnAsks"])


def test_an_end_that_the_reward_decides(stage: Stage) -> None:
    model = models.constant(stage / "model.onnx", 0, 1, 0)
    found = stage.play(
        actor("Ann", SEES, KICK, lifetime=8, asks=True, is_late=True),
        onnx_model_path=model,
        ticks=20,
    )
    assert found.ticks("Ann") == [0, 4, 9, 13, 18]
    assert [act["count"] for act in found.acts["Ann"]] == [0, 4, 0, 4, 0]


def test_a_model_is_exchanged_while_the_game_runs(stage: Stage) -> None:
    one, two, three = (
        models.constant(stage / f"{number}.onnx", *logits)
        for number, logits in enumerate([(1, 0, 0), (0, 1, 0), (0, 0, 1)])
    )
    bad = stage / "bad.onnx"
    bad.write_bytes(b"no model")
    found = stage.play(
        actor("Ann", SEES, KICK),
        actor("Bob", SEES, KICK),
        onnx_model_path=one,
        ticks=34,
        events={
            "6": [{"do": "set", "node": "Sync", "key": "onnx_model_path", "value": two}],
            "10": [{"do": "set", "node": "Bob", "key": "onnx_model_path", "value": three}],
            "14": [{"do": "set", "node": "Sync", "key": "onnx_model_path", "value": bad}],
            "18": [{"do": "give", "node": "Ann", "value": three}],
            "22": [{"do": "set", "node": "Bob", "key": "control_mode", "value": 1}],
            "26": [{"do": "set", "node": "Bob", "key": "control_mode", "value": ONNX}],
        },
    )
    assert found.of("Ann", "kick") == [0, 0, 1, 1, 1, 2, 2, 2, 2]
    assert found.of("Bob", "kick") == [0, 0, 1, 2, 2, 2, 2, 2]
    (error,) = found.errors
    assert "Stage/Ann cannot be played by" in error
    assert "bad.onnx" in error
    assert "the previous model stays in use" in error


def test_a_model_of_other_spaces_is_refused_naming_both(stage: Stage) -> None:
    def made(name: str, sees: dict[str, Any], does: list[Any]) -> Path:
        path = models.constant(stage / name, 0, 1, 0)
        about = {"observation_space": json.dumps(sees), "action_space": json.dumps(does)}
        path.write_bytes(with_metadata(path.read_bytes(), about))
        return path

    two: dict[str, Any] = {"obs": {"space": "box", "size": [2]}}
    kick: list[Any] = [{"action_type": "discrete", "size": 3}]
    fits = made("fits.onnx", two, kick)
    sees = made("sees.onnx", {"obs": {"space": "box", "size": [84]}}, kick)
    does = made("does.onnx", two, [{"key": "run", "action_type": "continuous", "size": 3}])
    found = stage.play(
        *(
            actor(path.stem, SEES, KICK, set={"onnx_model_path": str(path)})
            for path in (fits, sees, does)
        ),
        ticks=9,
    )
    assert found.of("fits", "kick")[0] == 1
    assert not found.acts.get("sees")
    assert not found.acts.get("does")
    first, second = sorted(found.errors, reverse=True)
    assert "sees.onnx: the model sees obs: 84 numbers, the agent has obs: 2 numbers" in first
    assert "does.onnx: the model does run: 3 continuous, the agent takes kick: 3 discrete" in second


def test_a_file_that_was_written_anew_is_read_again(stage: Stage) -> None:
    path = models.constant(stage / "model.onnx", 1, 0, 0)
    other = models.constant(stage / "other.onnx", 0, 1, 0)
    found = stage.play(
        actor("Ann", SEES, KICK),
        onnx_model_path=path,
        ticks=14,
        events={
            "5": [{"do": "copy", "from": other, "to": path}],
            "9": [{"do": "set", "node": "Sync", "key": "onnx_model_path", "value": path}],
        },
    )
    assert found.of("Ann", "kick") == [0, 0, 0, 1]


def test_on_threads_what_was_decided_is_done_at_the_next_decision(stage: Stage) -> None:
    linear = models.linear(stage / "linear.onnx", [[0.01]])
    waits = {str(tick): [{"do": "sleep", "value": 10}] for tick in range(44)}
    found = stage.play(
        actor("Linear", COUNTS, TURN, lifetime=21, set={"onnx_model_path": str(linear)}),
        actor("Ann", COUNTS, TURN, lifetime=21),
        actor("Bob", {"obs": [0.5]}, TURN),
        onnx_model_path=models.echo(stage / "echo.onnx"),
        inference_on_threads=True,
        ticks=44,
        events=waits,
    )
    assert found.errors == []
    assert found.ticks("Linear")[:8] == [4, 8, 12, 16, 20, 28, 32, 36]
    counts = [0, 4, 8, 12, 16, 3, 7, 11]
    assert found.of("Linear", "turn")[:8] == [approx([0.01 * count]) for count in counts]
    # Of what it saw, 0 4 8 12 … and then 3 7 11 …, what was two decisions before; at most 1.
    assert found.of("Ann", "turn") == [approx([x]) for x in (0, 0, 0, 1, 1, 0, 0, 1, 1)]
    assert found.of("Bob", "turn") == [approx([x]) for x in (0, 0, *[0.5] * 8)]


def test_a_heavy_model_on_a_thread_does_not_hold_up_the_game(stage: Stage) -> None:
    model = models.heavy(stage / "heavy.onnx")
    found = stage.play(
        actor("Ann", {"obs": [0.5]}, TURN),
        onnx_model_path=model,
        inference_on_threads=True,
        action_repeat=1,
        ticks=3000,
    )
    assert found.errors == []
    assert set(np.round(np.ravel(found.of("Ann", "turn")), 3)) <= {0.5}
    assert 0 < len(found.acts["Ann"]) < 2000


def test_a_model_is_exchanged_while_it_thinks(stage: Stage) -> None:
    heavy = models.heavy(stage / "heavy.onnx")
    quick = models.linear(stage / "quick.onnx", [[1.0]], [-1.0])
    found = stage.play(
        actor("Ann", {"obs": [0.5]}, TURN),
        onnx_model_path=heavy,
        inference_on_threads=True,
        action_repeat=2,
        ticks=2000,
        events={
            "3": [{"do": "add", "actor": actor("Bob", {"obs": [0.5]}, TURN)}],
            "4": [{"do": "set", "node": "Sync", "key": "onnx_model_path", "value": quick}],
        },
    )
    assert found.errors == []
    for name in ("Ann", "Bob"):
        turns = [turn for (turn,) in found.of(name, "turn")]
        assert turns.count(-0.5) > 10
        assert turns == [0.5] * turns.count(0.5) + [-0.5] * turns.count(-0.5)


def test_people_take_over_and_give_back(stage: Stage) -> None:
    model = models.constant(stage / "model.onnx", 0, 1, 0)
    found = stage.play(
        actor("Ann", SEES, KICK),
        onnx_model_path=model,
        ticks=30,
        events={
            "9": [{"do": "set", "node": "Sync", "key": "control_mode", "value": 0}],
            "17": [{"do": "set", "node": "Sync", "key": "control_mode", "value": 2}],
        },
    )
    assert found.errors == []
    assert found.heuristics == {"Ann": "model"}
    assert found.ticks("Ann") == [0, 4, 8, 20, 24, 28]


def test_models_that_do_not_fit_are_named_once_and_people_play(stage: Stage) -> None:
    broken = stage / "broken.onnx"
    broken.write_bytes(b"no model")
    two_eyes = models.linear(stage / "eyes.onnx", [[0.0] * 3] * 4, names=["eyes", "ears"])
    says = {
        stage / "nowhere.onnx": "there is no file",
        broken: "",
        models.unsupported(stage / "det.onnx"): 'the operator Det "odd" cannot be run',
        models.constant(stage / "wide.onnx", 1, 0, 0, sees=5): (
            "'obs' has 2 numbers, the model takes 5"
        ),
        models.constant(stage / "few.onnx", 1, 0): (
            "the model gives 2 numbers, the action space needs 3 (kick: 3 discrete)"
        ),
        two_eyes: "the observation lacks 'eyes'",
    }
    good = models.constant(stage / "good.onnx", 0, 1, 0)
    actors = [
        actor(f"{path.stem}{number}", SEES, KICK, set={"onnx_model_path": str(path)})
        for path in (*says, good)
        for number in (1, 2)
    ]
    found = stage.play(actor("Lost", SEES, KICK), *actors, ticks=10)
    assert "Stage/Lost cannot be played by a model: there is no onnx_model_path" in found.errors[0]
    for (path, problem), error in zip(says.items(), found.errors[1:], strict=True):
        assert f"Stage/{path.stem}1 cannot be played by {path}: {problem}" in error
        assert error.endswith("; people control it")
    assert [name for name, by in found.heuristics.items() if by == "model"] == ["good1", "good2"]
    assert found.of("good2", "kick") == [1, 1, 1]


def test_an_observation_that_changes_its_size_is_its_agents_own_trouble(stage: Stage) -> None:
    model = models.constant(stage / "model.onnx", 0, 1, 0)
    found = stage.play(
        actor("Ann", SEES, KICK),
        actor("Bob", SEES, KICK, shrinks_at=8),
        onnx_model_path=model,
        ticks=22,
    )
    (error,) = found.errors
    assert "Stage/Bob cannot be played by" in error
    assert "'obs' has 1 numbers, the model takes 2" in error
    assert found.heuristics["Bob"] == "human"
    assert len(found.acts["Bob"]) == 2
    assert len(found.acts["Ann"]) >= 5


def test_a_policy_that_says_no_numbers_does_nothing_wild(stage: Stage) -> None:
    nan = float("nan")
    model = models.constant(stage / "model.onnx", nan, float("inf"), nan, 1.0, 2.0)
    zeros = models.constant(stage / "zeros.onnx", 0, 0, 0, 0, 0)
    masks = {"kick": [[1, 1, 0], [1, 0, 0]]}
    own = {"onnx_model_path": str(zeros)}
    found = stage.play(
        actor("Ann", {"obs": ["nan", 1]}, MOVE | KICK, masks=masks, set=own),
        actor("Bob", SEES, MOVE | KICK, masks=masks),
        onnx_model_path=model,
        ticks=6,
    )
    assert found.of("Ann", "kick") == [0, 0]
    assert found.of("Ann", "move") == [[0, 0]] * 2
    assert found.of("Bob", "kick") == [1, 0]
    assert found.of("Bob", "move") == [[0, 1]] * 2


def test_a_model_plays_beside_a_trainer(stage: Stage) -> None:
    """The opponent decides in the same ticks as the one that learns."""
    model = models.linear(stage / "rival.onnx", [[0.01]])
    rival = {"control_mode": ONNX, "onnx_model_path": str(model)}
    actors = [actor("Ann", COUNTS, TURN), actor("Rival", COUNTS, TURN, set=rival)]
    play = stage.file(actors, 40, {}, {"control_mode": 1})
    with playing(stage.project, stage.folder, play) as peer:
        assert peer.greet("binary1")["n_agents"] == 1
        peer.reset()
        with contextlib.suppress(EOFError):
            while True:
                peer.step(0.5)
        found = told(peer.process.lines())
    assert found.ticks("Ann") == found.ticks("Rival")
    assert found.of("Ann", "turn") == [[0.5]] * 10
    assert found.of("Rival", "turn") == [approx([0.01 * a["count"]]) for a in found.acts["Rival"]]
