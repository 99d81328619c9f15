"""The parts of the hunt that need no game: delta debugging, archive, oracles, words, explorers."""

import copy
import functools
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest

from estragon.envs.spaces import ActionSpec, AgentSpaces, ObservationSpec
from estragon.envs.wire import AgentInfo, AgentTable
from estragon.judge.hunt.archive import CellArchive, Rollout
from estragon.judge.hunt.explorers import EXPLORERS, ActionSampler, Bandit
from estragon.judge.hunt.game import Scene, Snapshot, read_log
from estragon.judge.hunt.oracles import LEAKS, PAID_LOOPS, Finding, Watcher
from estragon.judge.hunt.shorten import ddmin
from estragon.judge.hunt.traces import FORMAT, Trace
from estragon.judge.hunt.user_oracles import UserOracles
from estragon.judge.hunt.usual import Usual, Warmup
from estragon.judge.hunt.words import steps, to_markdown
from estragon.support.errors import UserError

BOUNDS = [[-10.0, -1.0, -10.0], [10.0, 0.0, 10.0]]
TABLE = AgentTable(
    (
        AgentInfo(
            0,
            "shared_policy",
            AgentSpaces(
                (ObservationSpec("obs", "box", (3,)),),
                (ActionSpec("push", "continuous", 2), ActionSpec("jump", "discrete", 2)),
            ),
        ),
    )
)


def shot(
    place: tuple[float, float, float] = (0.0, 0.5, 0.0),
    *,
    velocity: tuple[float, float, float] = (1.0, 0.0, 0.0),
    obs: tuple[float, ...] = (0.1, 0.2, 0.3),
    log: str = "",
    counts: tuple[float, float, float] = (10.0, 100.0, 1e6),
    reward: float = 0.0,
    ended: bool = False,
    info: dict[str, object] | None = None,
    lost: str = "",
    cpu_ms: float = 1.0,
    near: tuple[float, ...] = (),
    variables: dict[str, float] | None = None,
) -> Snapshot:
    """A step of 8 ticks; `near` are distances to things of one kind."""
    tick = [0.0, *counts, *place, *velocity, 0.0]
    things = [f"/root/Main/Thing{number}" for number in range(len(near))]
    known = variables or {}
    scene = Scene(
        bodies=["Main/Ball"],
        sizes=[1.0],
        bounds=BOUNDS,
        things=things,
        kinds=["Thing"] * len(near),
        is_solid=[True] * len(near),
        variables=list(known),
        types="".join(type(value).__name__[0] for value in known.values()),
    )
    return Snapshot(
        scene=scene,
        state=np.array([-1.0, *(x for each in near for x in (0, 0, 0, each)), *known.values()]),
        ticks=np.array([tick] * 8),
        log=read_log(log),
        obs=np.array(obs),
        rewards=np.array([reward]),
        ended=np.array([ended]),
        infos=[info or {}],
        cpu_ms=cpu_ms,
        lost=lost,
    )


def healthy() -> Usual:
    """What is usual in a game that walks about, with a time limit of 50 steps."""
    return copy.deepcopy(_warmed_up())


@functools.cache
def _warmed_up() -> Usual:
    random, warmup = np.random.default_rng(0), Warmup()
    for _ in range(12):
        rollout, at = [shot()], np.array([0.0, 0.5, 0.0])
        actions = list(random.uniform(-1.0, 1.0, (150, 3)))
        for step in range(150):
            at = np.clip(at + random.uniform(-0.5, 0.5, 3) * [1, 0, 1], -9, 9)
            ended = step % 50 == 49
            obs = tuple(random.uniform(-1.0, 1.0, 3))
            info: dict[str, object] = {"score": step // 50}
            rollout.append(shot(tuple(at), obs=obs, ended=ended, reward=float(ended), info=info))
        warmup.learn(rollout, actions)
    return warmup.finish()


def findings(shots: list[Snapshot]) -> list[str]:
    """The signatures that the oracles see in a rollout, its reset first."""
    watcher = Watcher(healthy(), UserOracles(), [])
    random, found = np.random.default_rng(0), []
    for number, each in enumerate(shots):
        action = None if number == 0 else random.uniform(-1.0, 1.0, 3)
        found += [finding.signature for finding in watcher.watch(each, action)]
    return list(dict.fromkeys(found))


def test_ddmin_keeps_what_matters() -> None:
    def needed(parts: list[int]) -> int | None:
        return parts.index(91) + 1 if {7, 42, 91} <= set(parts) else None

    assert ddmin(range(100), needed, time.monotonic() + 60.0) == [7, 42, 91]
    assert ddmin(range(100), len, time.monotonic() + 60.0) == []
    assert len(ddmin(range(100), len, time.monotonic())) == 100


def test_a_healthy_game_raises_no_alarm() -> None:
    for seed in range(1, 4):
        random = np.random.default_rng(seed)
        shots = [shot()]
        for step in range(400):
            place = tuple(random.uniform(-9.0, 9.0, 3) * [1, 0, 1] + [0, 0.5, 0])
            obs = tuple(random.uniform(-1.5, 1.5, 3))
            ended = step % 50 == 49
            shots.append(shot(place, obs=obs, ended=ended, reward=float(ended), cpu_ms=3.0))
        assert findings(shots) == [], f"seed {seed}"


ERROR = """SCRIPT ERROR: Invalid access to property 'x7' on a base object of type 'null'.
          at: Ball._process (res://ball.gd:17)
"""
PUSHED = """ERROR: no door 12
   at: push_error (core/variant/variant_utility.cpp:1024)
   GDScript backtrace (most recent call first):
       [0] open (res://door.gd:3)
"""
NAN = "ERROR: Godot RL Agents: agent /root/A: observation 'obs', index 3 is nan; sending 0\n"


@pytest.mark.parametrize(
    ("shots", "expected"),
    [
        ([shot(log=ERROR)], "script error: Invalid access to property 'x#'"),
        ([shot(), shot(log=PUSHED)], "error: no door # in open (res://door.gd)"),
        ([shot(), shot(log=NAN)], "nan: observation 'obs'"),
        ([shot((float("nan"), 0.0, 0.0))], "nan: position of Main/Ball"),
        ([shot(), shot(lost="crash: SIGSEGV")], "crash: SIGSEGV"),
        ([shot(), shot(lost="hang")], "hang: no answer"),
        ([shot()] + [shot((15.0, 0.5, 0.0))] * 12, "out of bounds: Main/Ball +x"),
        ([shot()] + [shot((0.0, -50.0, 0.0))] * 12, "endless fall: Main/Ball -y"),
        ([shot()] + [shot((9.0, 0.5, 9.0))] * 70, "stuck: actions change nothing"),
        ([shot(), shot(), shot(velocity=(99.0, 0.0, 0.0))], "speed: Main/Ball"),
        ([shot(), shot(), shot(obs=(0.1, 99.0, 0.3))], "range: observation 1 beyond"),
        ([shot(), shot(reward=50.0)], "reward: beyond what is usual"),
        ([shot(), shot(info={"score": -1})], "counter: score is negative"),
        ([shot(), shot(cpu_ms=300.0)], "frame time: a step over budget"),
    ],
)
def test_oracles_find(shots: list[Snapshot], expected: str) -> None:
    assert any(each.startswith(expected) for each in findings(shots)), findings(shots)


def test_a_few_held_actions_may_change_nothing_for_a_while() -> None:
    assert not findings([shot()] + [shot((9.0, 0.5, 9.0))] * 50)


def test_a_player_that_is_put_elsewhere_is_not_fast_but_one_that_says_so_is() -> None:
    def signatures(velocity: tuple[float, float, float]) -> list[str]:
        usual = healthy()
        usual.speed["Main/Ball"] = usual.jump["Main/Ball"] = 1e4
        watcher, action = Watcher(usual, UserOracles(), []), np.zeros(3)
        watcher.watch(shot(), None)
        moved = [shot((-9.0, 0.5, 9.0)), shot((9.0, 0.5, -9.0), velocity=velocity)]
        return [each.signature for one in moved for each in watcher.watch(one, action)]

    assert not signatures((1.0, 0.0, 0.0))
    assert signatures((900.0, 0.0, 0.0)) == ["speed: Main/Ball"]


def test_what_a_reset_does_not_set_back_is_learned() -> None:
    random, warmup = np.random.default_rng(0), Warmup()

    def known(number: int, step: int) -> dict[str, float]:
        return {"Main:streak": (number + (step > 30)) % 3, "Main:is_open": step % 7 == 0}

    for number in range(12):
        rollout = [
            shot(obs=tuple(random.uniform(-1.0, 1.0, 3)), variables=known(number, step))
            for step in range(61)
        ]
        warmup.learn(rollout, list(random.uniform(-1.0, 1.0, (60, 3))))
        warmup.learn_first(shot(variables=known(number, 1)))
    usual = warmup.finish()
    assert set(usual.flags) == {"Main:streak", "Main:is_open"}
    assert usual.lasting == ("Main:streak",)


def test_a_leak_grows_from_reset_to_reset() -> None:
    watcher = Watcher(healthy(), UserOracles(), [])
    found = []
    for count in range(LEAKS["nodes"][2] + 4):
        found += watcher.watch(shot(counts=(10.0 + 2 * count, 100.0, 1e6)), None)
    assert [each.signature for each in found] == ["leak: nodes"] * len(found) != []


def test_an_episode_without_end_and_an_event_that_is_paid_twice() -> None:
    random = np.random.default_rng(0)
    endless = [shot(obs=tuple(random.uniform(-1, 1, 3))) for _ in range(100)]
    assert "endless episode: no end" in findings(endless)
    paid = [shot(reward=1.0, ended=True) for _ in range(30)]
    assert findings(paid) == []
    assert "reward: paid twice, end" in findings([*paid, shot(reward=2.0, ended=True)])


def test_a_reset_that_leaves_something_behind() -> None:
    watcher = Watcher(healthy(), UserOracles(), [])
    found = []
    for carried in (0.0, 0.0, 0.0, 0.5):
        watcher.begin(7)
        watcher.watch(shot(), None)
        found = watcher.watch(shot(obs=(0.1, 0.2, carried)), np.ones(3, np.float32))
    assert [each.signature for each in found] == ["reset: depends on what was played before"]
    assert "observation 2 is 0.5 1 steps after a reset" in found[0].text
    # What differs from the beginning does not count.
    watcher = Watcher(healthy(), UserOracles(), [])
    for noise in (0.1, 0.4, 0.2, 0.9, 0.5):
        watcher.begin(7)
        assert watcher.watch(shot(), None) == []
        assert watcher.watch(shot(obs=(0.1, 0.2, noise)), np.ones(3, np.float32)) == []


def test_a_loop_that_pays_again_and_again() -> None:
    around = [shot(obs=(x, 0.2, 0.3), reward=0.3 * (x == 0.0)) for x in (0.0, 0.5, 1.0, -0.5)]
    assert "reward: the same loop pays again and again" in findings(around * (PAID_LOOPS + 2))
    potential = [shot(obs=(x, 0.2, 0.3), reward=pay) for x, pay in ((0.0, 0.5), (1.0, -0.5))]
    assert findings([potential[0], *potential * 20]) == []


def test_what_stops_responding_while_the_rest_still_moves() -> None:
    random = np.random.default_rng(0)
    slow = [
        shot(tuple(random.uniform(-0.01, 0.01, 3)), obs=tuple(random.uniform(-1, 1, 3)))
        for _ in range(49)
    ]
    assert findings(slow) == []
    usual = healthy()
    usual.longest_episode = 500
    watcher, found = Watcher(usual, UserOracles(), []), []
    for each in slow * 6:
        found += watcher.watch(each, random.uniform(-1.0, 1.0, 3))
    assert {each.signature for each in found} == {"stuck: place does not change"}


def test_a_range_that_is_filled_is_not_left() -> None:
    usual = healthy()
    assert usual.ranges == {f"observation {index}": (-1.6, 1.6) for index in range(3)}
    assert findings([shot(), shot(obs=(1.4, 0.0, 0.0))]) == []
    expected = ["range: observation 0"]
    assert findings([shot(), shot(obs=(1.9, 0.0, 0.0))]) == expected


def test_a_bug_in_the_warm_up_does_not_become_usual() -> None:
    warmup, random = Warmup(), np.random.default_rng(0)
    for number in range(20):
        fast = (99.0 if number == 7 else 1.0, 0.0, 0.0)
        rollout = [shot(velocity=fast, ended=step % 50 == 49) for step in range(151)]
        if number == 7:
            rollout[50:101] = [shot()] * 50
        warmup.learn(rollout, list(random.uniform(-1.0, 1.0, (150, 3))))
    usual = warmup.finish()
    assert usual.speed["Main/Ball"] == 1.0
    assert (usual.longest_episode, usual.is_capped) == (50, True)


def test_shares_and_flags_are_recognized() -> None:
    warmup, random = Warmup(), np.random.default_rng(0)
    shots = [
        shot(obs=(float(step % 2), *random.normal(size=2)), info={"fuel": fuel, "height": fuel})
        for step, fuel in enumerate([*random.uniform(0.0, 1.0, 99), -0.3])
    ]
    for each in shots[50:]:
        each.infos[0]["height"] = -2.0
    warmup.learn(shots, [np.zeros(3)] * 99)
    usual = warmup.finish()
    assert usual.info_low == {"fuel": 0.0, "height": -2.0}
    assert usual.flags == ("observation 0",)
    archive = CellArchive(20.0, usual.obs, flags=usual.flags)
    off, on = (archive.key_of(shot(obs=(flag, 0.2, 0.3))) for flag in (0.0, 1.0))
    assert off != on


def test_expectations_and_patterns_of_the_user() -> None:
    user = UserOracles(("door",), ("score >= 0", "{Main/Ball:position:y} > -5"))
    assert user.watched == ("Main/Ball:position:y",)
    assert user.broken({"score": 1}, np.array([-9.0])) == ["{Main/Ball:position:y} > -5"]
    assert user.broken({"score": -1}, np.array([np.nan])) == ["score >= 0"]
    assert user.broken({}, np.array([0.0])) == []
    watcher = Watcher(Usual(), user, [])
    found = watcher.watch(shot(log="the door is open\n"), None)
    assert [each.signature for each in found] == ["log pattern: door"]
    for wrong in ("score >", "__import__('os')", "score.real", "[1][0]"):
        with pytest.raises(UserError, match="--expect"):
            UserOracles(expects=(wrong,))
    for costly in ("9 ** 9 ** 9 > score", "1 << score > 0"):
        with pytest.raises(UserError, match="--expect"):
            UserOracles(expects=(costly,))
    with pytest.raises(UserError, match="score > 1"):
        UserOracles(expects=("score > 1",)).broken({"score": "high"}, np.zeros(0))
    with pytest.raises(UserError, match="--log-pattern"):
        UserOracles(log_patterns=("(",))


def test_the_archive_counts_cells_and_keeps_the_shortest_way(tmp_path: Path) -> None:
    archive = CellArchive(20.0, [1.0, 1.0, 1.0])
    far, near = Rollout(1, [[0.0]] * 9), Rollout(2, [[1.0]] * 3)
    here, there = shot((1.0, 0.5, 1.0)), shot((5.0, 0.5, 1.0))
    assert archive.visit(archive.key_of(here), here, far, 9)
    assert not archive.visit(archive.key_of(here), here, near, 3)
    assert archive.visit(archive.key_of(there), there, far, 5)
    again = CellArchive(20.0, [1.0, 1.0, 1.0])
    again.load(msgspec.json.decode(msgspec.json.encode(archive.plain())))
    cell = again.cells[archive.key_of(here)]
    assert (cell.visits, cell.steps, cell.rollout.seed) == (2, 3, 2)
    assert again.heat == archive.heat
    assert again.choose(np.random.default_rng(0)) is not None


def warmed_up(rollouts: list[list[Snapshot]]) -> Usual:
    """What is usual in these rollouts, each with its reset first."""
    warmup = Warmup()
    for rollout in rollouts:
        warmup.learn(rollout, [np.zeros(3)] * (len(rollout) - 1))
    return warmup.finish()


def seen(usual: Usual, shots: list[Snapshot]) -> set[str]:
    """The signatures that the oracles see in a rollout."""
    watcher = Watcher(usual, UserOracles(), [])
    watcher.begin(0)
    found = [
        watcher.watch(each, np.zeros(3) if number else None) for number, each in enumerate(shots)
    ]
    return {finding.signature for part in found for finding in part}


def test_a_thing_that_can_be_passed_is_told_from_its_siblings() -> None:
    random = np.random.default_rng(0)

    def rollout(ghost: float) -> list[Snapshot]:
        stops = [(*random.uniform(2.0, 2.2, 4), ghost) for _ in range(5)]
        return [shot(near=each) for each in stops]

    usual = warmed_up([rollout(2.1) for _ in range(15)])
    assert seen(copy.deepcopy(usual), rollout(2.0)) == set()
    assert seen(copy.deepcopy(usual), rollout(0.9)) == {"sibling: Main/Thing# can be passed"}
    assert "overlap: inside Main/Thing#" in seen(warmed_up([rollout(2.1)]), rollout(0.2))
    free = warmed_up([[shot(near=tuple(random.uniform(0.6, 9.0, 5)))] * 2 for _ in range(15)])
    assert seen(free, rollout(0.6)) == set(), "things that stop nobody"


def test_variables_of_scripts_are_judged() -> None:
    random = np.random.default_rng(0)

    def rollout(length: int = 60, stops_at: int = 1000, fuel: float = 1.0) -> list[Snapshot]:
        return [
            shot(
                variables={
                    "Main:ticks": 6 * min(step, stops_at),
                    "Main:fuel": float(fuel * random.uniform(0.0, 1.0)),
                    "Main:since_hit": 6 * (step % 20),
                }
            )
            for step in range(length)
        ]

    usual = warmed_up([rollout() for _ in range(12)])
    assert set(usual.clocks) == {"Main:ticks"}
    assert usual.ranges["Main:fuel"] == pytest.approx((-0.05, 1.05))
    assert seen(usual, rollout()) == set()
    assert seen(usual, rollout(stops_at=30)) == {"clock: Main:ticks"}
    assert seen(usual, rollout(fuel=-1.0)) == {"range: Main:fuel"}


def test_a_lock_is_a_flag_after_which_nothing_else_changes() -> None:
    random = np.random.default_rng(0)

    def rollout(*, locked: bool) -> list[Snapshot]:
        flags = {"Main:page": 0, "Main:door": 0, "Main:item": 0, "Main:modal": False}
        shots = [shot(variables=dict(flags))]
        for step in range(100):
            if not (locked and step > 20):
                name = ["Main:page", "Main:door", "Main:item"][random.integers(3)]
                flags[name] = int(random.integers(3))
            flags["Main:modal"] = locked and step >= 20
            shots.append(shot(variables=dict(flags)))
        return shots

    def found(*, varied: bool) -> set[str]:
        usual = warmed_up([rollout(locked=False) for _ in range(10)])
        watcher, told = Watcher(usual, UserOracles(), []), set()
        for number in range(40):
            watcher.begin(number)
            for step, each in enumerate(rollout(locked=number % 4 == 3)):
                action = random.uniform(-1.0, 1.0, 3) * varied if step else None
                told |= {finding.signature for finding in watcher.watch(each, action)}
            assert number > 12 or not told
        return {each for each in told if each.startswith("lock")}

    assert found(varied=False) == set(), "whoever does nothing changes nothing"
    assert found(varied=True) == {"lock: Main:modal=#"}


@pytest.mark.parametrize("name", EXPLORERS)
def test_explorers_act_within_the_action_space(name: str) -> None:
    random, archive = np.random.default_rng(0), CellArchive(20.0, [1.0, 1.0, 1.0])
    explorer = EXPLORERS[name](ActionSampler(TABLE), random)
    here = shot()
    archive.visit(archive.key_of(here), here, Rollout(5, [[0.0, 0.0, 1.0]]), 1)
    taken = []
    for _ in range(20):
        start = explorer.start(archive)
        assert len(start.prefix) <= (name in ("goexplore", "seek", "repeat"))
        taken += [explorer.act(here, (0,), archive) for _ in range(10)]
    actions = np.array(taken)
    assert actions.shape == (200, 3)
    assert np.abs(actions).max() <= 1.0
    assert set(actions[:, 2]) == {0.0, 1.0}
    assert len(np.unique(actions, axis=0)) > 4


@pytest.mark.parametrize("is_rigid", [False, True])
def test_seek_gets_to_things_in_a_game_that_it_does_not_know(is_rigid: bool) -> None:
    random, archive = np.random.default_rng(0), CellArchive(20.0, [])
    explorer = EXPLORERS["seek"](ActionSampler(TABLE), random)
    goal, reached = np.array([6.0, 0.5, -5.0]), 0
    for _ in range(30):
        explorer.start(archive)
        at, velocity = np.array([-6.0, 0.5, 4.0]), np.zeros(3)
        for _ in range(150):
            x, y, z = velocity.tolist()
            here = shot(tuple(at), velocity=(x, y, z), near=(1.0,))
            here.scene.is_rigid = is_rigid
            here.state[1:4] = goal
            action = explorer.act(here, (), archive)
            push = 0.3 * np.array([-action[1], 0.0, action[0]])  # turned by a quarter
            velocity = velocity + push if is_rigid else 8.0 * push
            at = np.clip(at + velocity / 8.0, [-9.0, 0.5, -9.0], [9.0, 0.5, 9.0])
            near = bool(np.linalg.norm(at - goal) < 1.0)
            explorer.learn(shot(reward=float(near)))
            if near:
                reached += 1
                break
    assert reached >= 12


def test_repeat_does_again_what_paid() -> None:
    random, archive = np.random.default_rng(0), CellArchive(20.0, [])
    explorer = EXPLORERS["repeat"](ActionSampler(TABLE), random)
    paid = [[0.5, -0.5, 0.0], [0.5, -0.5, 1.0]]
    archive.note_pay(archive.key_of(shot()), Rollout(3, paid), random)
    presses = []
    for _ in range(12):
        start = explorer.start(archive)
        assert (start.seed, start.prefix) == (3, paid)
        actions = np.array([explorer.act(shot(), (), archive) for _ in range(8)])
        presses.append(actions[:, 2].sum())
    assert np.mean(presses) >= 3.0


def test_the_bandit_prefers_what_finds_more() -> None:
    bandit = Bandit(["good", "bad"])
    for _ in range(200):
        name = bandit.choose()
        bandit.reward(name, 20 if name == "good" else 1, 0, 1.0)
    assert bandit.time_sec["good"] > 3 * bandit.time_sec["bad"] > 0


def trace() -> Trace:
    actions = [[1.0, 0.0, 0.0]] * 3 + [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    return Trace(
        format=FORMAT,
        game="walker",
        digest="0123",
        scene="res://main.tscn",
        arguments={},
        seed=1,
        action_repeat=None,
        columns=["push[0]", "push[1]", "click"],
        before=[],
        rollout=Rollout(7, actions),
        finding=Finding("crash", "SIGSEGV", "it crashed", [3.0, 0.5, 0.0]),
        usual=Usual(),
        log_patterns=[],
        expects=[],
        first_length=90,
        explorer="sticky",
        found_sec=1.0,
        first_seen="2026-01-01",
        places=[[float(x), 0.5, 0.0] for x in (0, 1, 2, 3, 3, 3)],
        clicks={"4": "Open"},
        step_sec=0.1,
    )


def test_steps_in_words() -> None:
    assert steps(trace()) == [
        "Start res://main.tscn with seed 7 at (0, 0.5, 0).",
        "Hold push[0] for 0.3 s, 3 actions; the body goes +x to (3, 0.5, 0).",
        "Click “Open” for 0.1 s, 1 action; the body stays.",
        "Wait for 0.1 s, 1 action; the body stays.",
    ]
    text = to_markdown(trace(), "bug01_crash.json")
    assert "# The game crashes: SIGSEGV" in text
    assert "estragon judge replay bug01_crash.json" in text


def test_traces_are_files(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    trace().write(file)
    assert Trace.read(file) == trace()
    file.write_text(file.read_text().replace('"format": 1', '"format": 9'))
    with pytest.raises(UserError, match="format"):
        Trace.read(file)
