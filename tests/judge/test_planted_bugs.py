"""The planted bugs of tests/judge/bugs: their patches fit, and each does what it says.

A proof plays the patched game and the clean one in the same way: the effect shows in the patched
game only, and also when the other bugs of the game are planted with it.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from estragon.envs.gymnasium_env import GodotEnv
from estragon.godot.project import import_project
from estragon.support import paths
from tests.godot.staging import write_program
from tests.judge import planted_plays as plays
from tests.judge.planted import Bug, bugs_of, copy_with, patched
from tests.judge.planted_plays import Game, LostError, Play

ONE = {
    "marble": {"copies": 1},
    "orchard": {"copies": 1},
    "tag": {"arenas": 1},
    "goals": {"parameter.rigs": 1},
    "landing": {"parameter.rigs": 1},
    "menu": {"parameter.rigs": 1},
}
"""Arguments for a game with one arena, where an effect is easiest to see."""
LEVELS = ["easy", "hard", "medium"]
STEP_TIMEOUT_SEC = 8.0

Effect = Callable[[Game], bool]


class Proof(NamedTuple):
    """What a bug is, and how to see it."""

    kind: str
    difficulty: str
    play: Play
    effect: Effect


BUGS: dict[str, Bug] = {bug.id: bug for game in ONE for bug in bugs_of(game)}


@pytest.mark.parametrize("game", ONE)
def test_patches_fit_alone_and_together(game: str) -> None:
    bugs = bugs_of(game)
    for bug in bugs:
        for name, text in patched([bug]).items():
            assert text != (paths.godot_project() / name).read_text(encoding="utf-8")
            assert "agent.point" not in str(bug.patches)
    assert patched(bugs) == patched(bugs[::-1])


@pytest.mark.parametrize("game", ONE)
def test_sets_are_alike(game: str) -> None:
    bugs = bugs_of(game)
    assert all(bug.id.startswith(f"{game}_") and bug.game == game for bug in bugs)
    for which, each in (("known", 2), ("unseen", 1)):
        levels = [PROOFS[bug.id].difficulty for bug in bugs if bug.set == which]
        assert sorted(levels) == sorted(each * LEVELS)
    assert len({bug.scene for bug in bugs}) == 1
    assert (paths.godot_project() / bugs[0].scene.removeprefix("res://")).is_file()


def test_every_bug_has_a_proof() -> None:
    assert set(PROOFS) == set(BUGS)
    assert len(BUGS) == 54


def says(*words: str) -> Effect:
    """Whether the log of the game has all these words."""
    return lambda game: all(word in game.log() for word in words)


def is_lost(game: Game) -> bool:
    return game.lost


def leaks(megabytes: float) -> Effect:
    return lambda game: game.leaked_mb() > megabytes


def takes(seconds: float) -> Effect:
    return lambda game: max(game.seconds) > seconds


def largest(part: int | slice, size: float, key: str = "obs") -> Effect:
    """Whether numbers of an observation were ever larger than that, whatever their sign."""
    return lambda game: bool(np.abs(game.column(part, key)).max() > size)


def highest(part: int | slice, value: float, key: str = "obs") -> Effect:
    return lambda game: bool(game.column(part, key).max() > value)


def lowest(part: int | slice, value: float, key: str = "obs") -> Effect:
    return lambda game: bool(game.column(part, key).min() < value)


def starts_with(part: int | slice) -> Effect:
    """Whether numbers that are 0 at the start of an episode were not."""
    return lambda game: any(np.abs(obs["obs"][:, part]).max() > 0.01 for obs in game.starts)


def noted(check: Callable[[list[float]], bool]) -> Effect:
    """What a play noted down."""
    return lambda game: bool(game.notes) and check(game.notes)


def never_ended(game: Game) -> bool:
    """Whether a play saw an episode go on beyond its time limit."""
    return game.notes == [1.0]


def pays(more_than: float) -> Effect:
    return lambda game: max(float(row.max()) for row in game.rewards) > more_than


def costs(more_than: float) -> Effect:
    return lambda game: min(float(row.min()) for row in game.rewards) < -more_than


def stands_for(steps: int) -> Effect:
    """Whether a marble that is pushed all the time did not move for so long."""

    def effect(game: Game) -> bool:
        slow = np.linalg.norm(game.column(slice(34, 36))[:, 0], axis=1) < 0.05
        return bool(np.convolve(slow, np.ones(steps), "valid").max() >= steps)

    return effect


def has_negative_score(game: Game) -> bool:
    scores = [info["score"][0] for end, info in zip(game.ends, game.infos, strict=True) if end]
    return min(scores) < 0


def is_in_column(game: Game) -> bool:
    """Whether the hider was inside the column at (6, 6)."""
    at = 10 * game.column(slice(0, 3))[:, 1]
    return bool((np.abs(at - [6, 0.5, 6]).max(axis=1) < 0.5).any())


def runs(share: float) -> Effect:
    """Whether somebody ran faster than that share of the top speed."""
    return lambda game: bool(np.linalg.norm(game.column([3, 5]), axis=2).max() > share)


def falls_again(game: Game) -> bool:
    """Whether falling was paid more than once in an episode."""
    steps = zip(game.rewards, game.ends, strict=True)
    return sum(float(row.min()) < -3 and not end for row, end in steps) > 1


def focuses_nothing(game: Game) -> bool:
    """Whether the fourth slot of the menu was focused without being shown."""
    seen = game.column(slice(15, 18))[:, 0]
    return bool(((seen[:, 0] == 0) & (seen[:, 2] == 1)).any())


PROOFS: dict[str, Proof] = {
    "marble_endless_fall": Proof(
        "fall without end", "easy", plays.roll_off_in_front, noted(lambda y: min(y) < -5)
    ),
    "marble_double_goal": Proof("trigger fires twice", "medium", plays.roll_into_goals, pays(1.7)),
    "marble_boost": Proof(
        "velocity spike", "medium", plays.roll_to(-4.6, 4.6), largest(slice(34, 36), 1.4)
    ),
    "marble_dazed": Proof("soft lock", "hard", plays.roll_about, stands_for(25)),
    "marble_hang": Proof("hang", "hard", plays.roll_into_goals, is_lost),
    "marble_leak": Proof("node leak", "easy", plays.roll_off_at_the_side, leaks(4.0)),
    "marble_ledge": Proof(
        "invisible collider",
        "easy",
        plays.roll_beyond_the_left_edge,
        noted(lambda beside: sum(beside) > 9),
    ),
    "marble_drain": Proof(
        "pit without exit", "medium", plays.roll_into_drain, noted(lambda ways: max(ways) < 0.3)
    ),
    "marble_last_second": Proof(
        "infinite reward", "hard", plays.reach_goal_late, says("its reward is inf")
    ),
    "orchard_wall_gap": Proof(
        "hole in a wall", "medium", plays.leave_at_the_upper_right, largest(16, 0.97)
    ),
    "orchard_ghost_thorn": Proof(
        "missing collider", "easy", plays.run_into_thorns, largest(slice(0, 16), 0.96)
    ),
    "orchard_negative_score": Proof(
        "counter runs negative", "easy", plays.run_into_thorns, has_negative_score
    ),
    "orchard_no_end": Proof("episode never ends", "hard", plays.eat(3, plays.rest), never_ended),
    "orchard_slow_fruit": Proof("slow frame", "medium", plays.eat(2, plays.rest), takes(0.15)),
    "orchard_wall_bump": Proof(
        "script error",
        "hard",
        plays.eat(4, plays.run_against_walls),
        says("SCRIPT ERROR", "drop_fruit"),
    ),
    "orchard_fading_fruit": Proof(
        "trigger fires twice", "easy", plays.eat(1, plays.rest), pays(1.9)
    ),
    "orchard_doze": Proof(
        "soft lock", "medium", plays.stand_then_run, noted(lambda places: len(set(places)) <= 2)
    ),
    "orchard_withered_thorn": Proof(
        "use of a freed node", "hard", plays.eat(5, plays.rest), says("SCRIPT ERROR", "freed")
    ),
    "tag_ghost_column": Proof(
        "missing collider", "medium", plays.walk((4, 6), plays.go_east), is_in_column
    ),
    "tag_carried_velocity": Proof("wrong reset", "easy", plays.run_up_and_down, starts_with(5)),
    "tag_floor_pit": Proof(
        "pit without exit", "easy", plays.walk((0, 0), plays.stay), lowest(1, -0.1)
    ),
    "tag_stopped_clock": Proof(
        "episode never ends", "hard", plays.walk((0, -2), plays.climb), never_ended
    ),
    "tag_corner_nan": Proof(
        "NaN in reward",
        "medium",
        plays.walk((8, 8), plays.press_into_corner),
        says("its reward is nan"),
    ),
    "tag_combo": Proof(
        "script error",
        "hard",
        plays.walk(None, plays.hop, agent=0),
        says("SCRIPT ERROR", "Out of bounds"),
    ),
    "tag_fast_diagonal": Proof("too fast", "easy", plays.run_askew, runs(1.2)),
    "tag_low_wall": Proof(
        "out of the level", "medium", plays.walk((8, 0), plays.jump_east), largest(0, 0.96)
    ),
    "tag_head_hang": Proof("hang", "hard", plays.walk(None, plays.pounce), is_lost),
    "goals_vignette_leak": Proof(
        "memory leak", "easy", plays.hold(0, 1, 0, 1200, flip=6), leaks(2.5)
    ),
    "goals_crawl": Proof(
        "soft lock", "medium", plays.bump(backwards=False), noted(lambda speeds: min(speeds) < 0.3)
    ),
    "goals_clean_arrival": Proof(
        "script error", "hard", plays.walk_to_goal, says("SCRIPT ERROR", "Division by zero")
    ),
    "goals_drifting_hand": Proof(
        "observation out of range", "easy", plays.hold(0, -1, 0, 300), largest(slice(29, 32), 2.0)
    ),
    "goals_stopped_clock": Proof(
        "episode never ends", "medium", plays.hold(0, 0, 1, 520), lambda game: not any(game.ends)
    ),
    "goals_recoil": Proof(
        "velocity spike", "hard", plays.bump(backwards=True), largest(slice(7, 10, 2), 10.0)
    ),
    "goals_compass": Proof(
        "off by one", "easy", plays.hold(0, 0, 1, 120), says("SCRIPT ERROR", "Out of bounds")
    ),
    "goals_walled_start": Proof(
        "starts in a wall", "medium", plays.start_again, noted(lambda rooms: min(rooms) < 0.35)
    ),
    "goals_edge_loop": Proof("endless respawn", "hard", plays.walk_off, falls_again),
    "landing_double_touchdown": Proof("trigger fires twice", "easy", plays.fly(250), costs(90)),
    "landing_no_ceiling": Proof(
        "out of the level", "medium", plays.fly(300, lift=1), largest(0, 1.75)
    ),
    "landing_crash": Proof("crash", "hard", plays.land, is_lost),
    "landing_carried_spin": Proof(
        "wrong reset", "easy", plays.fly(250, rcs=(1, 0)), starts_with(slice(4, 7))
    ),
    "landing_negative_fuel": Proof(
        "counter runs negative",
        "medium",
        plays.fly(240, lift=0.324, rcs=(1, 1)),
        lowest(7, -0.01, "landing"),
    ),
    "landing_pad_sink": Proof(
        "body sinks into another", "hard", plays.land, highest(1, 0.02, "landing")
    ),
    "landing_fissure": Proof("hole in the ground", "easy", plays.drop(15, 16), lowest(0, -0.1)),
    "landing_time_out": Proof(
        "script error", "medium", plays.hover, says("SCRIPT ERROR", "timed_out")
    ),
    "landing_bullseye": Proof(
        "reward without bound", "hard", plays.land_in_the_middle, pays(120.0)
    ),
    "menu_slider_overflow": Proof(
        "setting corrupts", "easy", plays.drag_beyond_the_end, largest(slice(3, 19), 1.05)
    ),
    "menu_credits_lock": Proof(
        "soft lock", "medium", plays.press_all(1, 2, 3), noted(lambda pages: pages == [1])
    ),
    "menu_back_hang": Proof("hang", "hard", plays.press_all(1, 0, 3, 3), is_lost),
    "menu_badge_leak": Proof(
        "node leak", "easy", plays.press_all(1, 3, 1, 3, 1, 3, times=60), leaks(5.0)
    ),
    "menu_lantern_farm": Proof(
        "trigger fires twice",
        "hard",
        plays.take_and_drop,
        lambda game: float(np.sum(game.rewards)) > 10,
    ),
    "menu_sort_twice": Proof(
        "script error",
        "medium",
        plays.press_all(2, 1, times=2),
        says("SCRIPT ERROR", "Out of bounds"),
    ),
    "menu_ray_aside": Proof(
        "observation out of range", "easy", plays.point_aside, largest(slice(0, 2), 20.0)
    ),
    "menu_hidden_slot": Proof(
        "invisible collider", "medium", plays.press_all(1, 1, 3), focuses_nothing
    ),
    "menu_full_hand": Proof("stale state", "hard", plays.hold_lantern, starts_with(34)),
}


def write_game(bugs: list[Bug], folder: Path, godot: Path) -> Path:
    """A copy of the games with bugs in it, as a program: the import of the original serves it."""
    original = import_project(paths.godot_project(), godot=godot)
    copy_with(bugs, folder / "project", original)
    return write_program(folder / "game", f'exec "{godot}" --path "{folder / "project"}" "$@"')


@contextlib.contextmanager
def playing(program: Path, bug: Bug, logs: Path) -> Iterator[Game]:
    options: dict[str, Any] = {"step_timeout_sec": STEP_TIMEOUT_SEC, "log_folder": logs, "seed": 1}
    arguments = bug.arguments | ONE[bug.game]
    env = GodotEnv(program, scene=bug.scene, arguments=arguments, **options)
    with contextlib.closing(env):
        yield Game(env, logs / "game.log")


def is_seen(name: str, bugs: list[Bug], folder: Path, godot: Path) -> bool:
    """Play a bug's proof in a game with these bugs; whether its effect was seen."""
    proof = PROOFS[name]
    with playing(write_game(bugs, folder, godot), BUGS[name], folder / "log") as game:
        with contextlib.suppress(LostError):
            proof.play(game)
        return proof.effect(game)


@pytest.mark.prove
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_seen_only_where_it_is_planted(name: str, godot: Path, tmp_path: Path) -> None:
    bug = BUGS[name]
    assert is_seen(name, [bug], tmp_path / "alone", godot)
    assert is_seen(name, bugs_of(bug.game), tmp_path / "together", godot)
    assert not is_seen(name, [], tmp_path / "clean", godot)
