"""The loop: the same bits for the same seed, whoever computes them and however often it stops."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.selfplay.config import BLOCKS, Task
from estragon.selfplay.trainer import BALANCE_UPDATES, FAIR_WIN_RATE, Threads, Trainer
from estragon.support.errors import UserError
from estragon.tag.arenas import Results
from estragon.tag.layout import load_layouts
from estragon.tag.policy_files import save_policies
from estragon.tag.rules import GOING_ON, HIDER, SEEKER
from tests.selfplay.staging import (
    CONFIG,
    STEPS_PER_UPDATE,
    Block,
    beginners,
    blocks_of,
    differences,
    short_rules,
    task_of,
    through_a_file,
    trainer_of,
    updated,
    varied_task,
)

VARIED = {"speed_mps": {"uniform": [4, 12]}, "gravity_mps2": {"normal": [10, 2]}}
LESSONS = [
    {"name": "near", "parameters": {"spawn_separation_m": 1}, "until": {"progress": 0.05}},
    {"name": "far", "parameters": {"spawn_separation_m": {"uniform": [4, 8]}}},
]
"""The second one begins within two updates."""


def everything(trainer: Trainer) -> dict[str, Any]:
    saved: dict[str, Any] = through_a_file(trainer.save())
    return saved


def trained(updates: int, task: Task | None = None, **changes: Any) -> dict[str, Any]:
    trainer = trainer_of(task, **changes)
    try:
        for _ in range(updates):
            trainer.update()
        return everything(trainer)
    finally:
        trainer.close()


def tasks(folder: Path) -> dict[str, Task]:
    """One of each kind."""
    seek, transfer = short_rules(), short_rules("transfer")
    path = folder / "policy.npz"
    save_policies(path, beginners(seek, 9), seek)
    return {
        "league": task_of(),
        "league, transfer": task_of(rules=transfer),
        "both against a bot": task_of(opponent="bot:evader"),
        "hider against a bot": task_of("hider", "bot:chaser"),
        "seeker against a file": task_of("seeker", str(path)),
        "both against a file": task_of(opponent=str(path)),
        "both against a file, transfer": task_of(opponent=str(path), rules=transfer),
        "league, varied": varied_task(folder, parameters=VARIED, curriculum=LESSONS),
    }


KINDS = [
    "league",
    "league, transfer",
    "both against a bot",
    "hider against a bot",
    "seeker against a file",
    "both against a file",
    "both against a file, transfer",
    "league, varied",
]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_learned_does_not_depend_on_the_workers(kind: str, tmp_path: Path) -> None:
    task = tasks(tmp_path)[kind]
    assert not differences(trained(4, task, workers=1), trained(4, task, workers=2))


def test_the_same_seed_gives_the_same_bits_and_another_others() -> None:
    one = trained(3)
    assert not differences(one, trained(3))
    other = differences(one, trained(3, task_of(seed=4)))
    for part in ("/learners/0/policy", "/learners/1/optimiser", "/arenas/0/agents", "/league/1/0"):
        assert any(name.startswith(part) for name in other), part


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_run_goes_on_to_the_same_bits(kind: str, tmp_path: Path) -> None:
    task = tasks(tmp_path)[kind]
    trainer, other = trainer_of(task), trainer_of(task)
    try:
        for _ in range(3):
            trainer.update()
        ticks = np.concatenate([block.arenas.arenas["tick"] for block in blocks_of(trainer)])
        assert len(np.unique(ticks)) > 1 or (ticks > 0).all(), "in the middle of episodes"
        other.restore(everything(trainer))
        assert not differences(everything(trainer), everything(other))
        for _ in range(3):
            one, two = updated(trainer), updated(other)
            assert (one.number, one.agent_steps) == (two.number, two.agent_steps)
            assert one.episodes == two.episodes
            assert one.losses == two.losses
            assert one.learning_rate == two.learning_rate
        assert trainer.episodes == other.episodes > 0
        assert not differences(everything(trainer), everything(other))
    finally:
        trainer.close()
        other.close()


def test_everything_that_matters_is_saved() -> None:
    """The test above has teeth: without any one part the run would take another course."""
    trainer = trainer_of(task_of(rules=short_rules("transfer")))
    for _ in range(3):
        trainer.update()
    saved = everything(trainer)
    trainer.update()
    wanted = everything(trainer)
    trainer.close()
    untouched = everything(trainer_of(task_of(rules=short_rules("transfer"))))
    for part in saved:
        other = trainer_of(task_of(rules=short_rules("transfer")))
        other.restore(saved | {part: untouched[part]})
        other.update()
        assert differences(everything(other), wanted), part
        other.close()


def test_layouts_of_a_parameter_file_are_those_of_the_option(tmp_path: Path) -> None:
    task = varied_task(tmp_path)
    assert task.layouts == task_of().layouts
    for name in differences(trained(3), trained(3, task)):
        assert name.startswith("/curriculum") or name.endswith(("/values", "/lesson")), name


def test_lessons_begin_when_they_are_due(tmp_path: Path) -> None:
    trainer = trainer_of(varied_task(tmp_path, parameters=VARIED, curriculum=LESSONS))
    lessons = []
    for _ in range(6):
        trainer.update()
        figures = trainer.source.figures()
        lessons.append((figures["lesson"], figures["parameter_spawn_separation_m"]))
        assert 4.0 < figures["parameter_speed_mps"] < 12.0
    trainer.close()
    assert [lesson for lesson, _ in lessons] == [0, 0, 1, 1, 1, 1]
    assert lessons[1][1] == 1.0
    assert lessons[-1][1] > 4.0


def test_a_lesson_is_judged_by_its_own_episodes(tmp_path: Path) -> None:
    until = {"success_rate": 0.0, "window": 4, "min_episodes": 4}
    names = ["first", "second", "third"]
    lessons: list[dict[str, Any]] = [{"name": name, "until": until} for name in names]
    trainer = trainer_of(
        varied_task(tmp_path, parameters=VARIED, curriculum=[*lessons, {"name": "last"}])
    )
    arenas = [block.arenas for block in blocks_of(trainer)]
    began, ended = [], []
    for _ in range(12):
        trainer.update()
        began.append(arenas[0].lesson)
        ended.append(min(int(each.arenas["episode"].max()) for each in arenas))
    trainer.close()
    assert began == sorted(began)
    for lesson in range(1, began[-1]):
        first, last = began.index(lesson), began.index(lesson + 1)
        assert ended[last] >= ended[first] + 2, "an episode that was running, and one of its own"
    assert began[-1] >= 1


def test_only_rows_of_learners_count() -> None:
    """By hand: of 16 arenas of a block 0.3 / 2 and 0.2 / 2 have one learner at either side."""
    trainer = trainer_of()
    bots, past = int(16 * 0.2 / 2), int(16 * 0.3 / 2)
    assert (bots, past) == (1, 2)
    both = 16 - 2 * (bots + past)
    learners = 2 * both + 2 * (bots + past)
    assert 2 * CONFIG.horizon * learners == STEPS_PER_UPDATE
    for number in range(1, 4):
        update = updated(trainer)
        assert update.agent_steps == trainer.agent_steps == number * STEPS_PER_UPDATE
        assert trainer.updates == number == update.number + 1
    frozen = trainer.freeze()
    assert {policy.trained_steps for policy in frozen.values()} == {3 * STEPS_PER_UPDATE // 2}
    trainer.close()


@pytest.mark.parametrize(
    ("changes", "learners"),
    [
        ({"past": 0.0, "sparring": 0.0}, 64),
        ({"past": 1.0, "sparring": 0.0}, 32),
        ({"past": 0.0, "sparring": 1.0}, 32),
        ({"past": 0.5, "sparring": 0.0}, 48),
    ],
)
def test_the_shares_of_a_league(changes: dict[str, Any], learners: int) -> None:
    trainer = trainer_of(**changes)
    assert updated(trainer).agent_steps == learners * CONFIG.horizon
    trainer.close()


@pytest.mark.parametrize("rule_set", ["seek", "transfer"])
def test_both_against_a_fixed_opponent_learn_from_one_agent_an_arena(rule_set: str) -> None:
    trainer = trainer_of(task_of(opponent="bot:chaser", rules=short_rules(rule_set)))
    assert updated(trainer).agent_steps == CONFIG.arenas * CONFIG.horizon
    trainer.close()


@pytest.mark.parametrize(("role", "learner"), [("seeker", 0), ("hider", 1)])
def test_only_the_role_that_learns_changes(role: Any, learner: int) -> None:
    task = task_of(role, "bot:random")
    before, after = trained(0, task), trained(3, task)
    own, other = f"/learners/{learner}/", f"/learners/{1 - learner}/"
    changed = differences(before, after)
    assert any(name.startswith(own) for name in changed)
    assert not [name for name in changed if name.startswith(other)]
    trainer = trainer_of(task)
    update = updated(trainer)
    trainer.close()
    assert list(update.losses) == list(trainer.freeze()) == [role]
    assert update.agent_steps == CONFIG.arenas * CONFIG.horizon


def test_in_a_league_both_roles_change_and_the_past_is_remembered() -> None:
    changed = differences(trained(0), trained(4))
    for learner in (0, 1):
        assert any(name.startswith(f"/learners/{learner}/policy/layers") for name in changed)
    assert len(trained(0)["league"]) == 1
    assert len(trained(4, snapshot_every=2)["league"]) == 3


def test_past_selves_play_from_a_point_of_the_run_on() -> None:
    """Before, all arenas but those of 3 hiders have two learners; a resumed run is the same."""
    steps = 4 * 32 * 2 * CONFIG.horizon
    trainer = trainer_of(steps=steps, opening=0.25)
    rows = np.diff([0, *(updated(trainer).agent_steps for _ in range(5))]).tolist()
    early = 2 * CONFIG.horizon * (2 * 13 + 3)
    assert rows == [early, early, *[STEPS_PER_UPDATE] * 3]
    trainer.close()
    for after in (1, 3):
        one = trainer_of(steps=steps, opening=0.25)
        for _ in range(after):
            updated(one)
        two = trainer_of(steps=steps, opening=0.25)
        two.restore(everything(one))
        for _ in range(2):
            updated(one)
            updated(two)
        assert not differences(one.save(), two.save())
        one.close()
        two.close()


def test_the_role_that_wins_too_often_learns_more_slowly() -> None:
    trainer = trainer_of(handicap=0.75)
    for balance, paces in [(0.5, (1, 1)), (0.55, (0.75, 1)), (0.65, (0.25, 1)), (0.9, (0.25, 1))]:
        trainer.balance = FAIR_WIN_RATE - 0.5 + balance
        assert tuple(map(trainer.pace, (SEEKER, HIDER))) == pytest.approx(paces)
        trainer.balance = FAIR_WIN_RATE + 0.5 - balance
        assert tuple(map(trainer.pace, (HIDER, SEEKER))) == pytest.approx(paces)
    trainer.close()
    alone = task_of("seeker", "bot:random")
    for other in (trainer_of(alone), trainer_of(handicap=0.0), trainer_of(opening=0.25)):
        other.balance = 1.0
        assert other.pace(SEEKER) == 1.0
        other.close()


def test_the_entropy_coefficient_falls_by_equal_factors() -> None:
    trainer = trainer_of(entropy=0.08, final_entropy=0.02)
    found = []
    for steps in (0, 5_000, 10_000, 20_000):
        trainer.agent_steps = steps
        found.append(trainer.entropy)
    assert found == pytest.approx([0.08, 0.04, 0.02, 0.02])
    trainer.close()
    trainer = trainer_of(entropy=0.08, final_entropy=0.0)
    trainer.agent_steps = 5_000
    assert trainer.entropy == pytest.approx(0.04)
    trainer.close()


def test_the_balance_follows_the_matches_of_the_current_policies() -> None:
    trainer = trainer_of()
    balance = FAIR_WIN_RATE
    for _ in range(6):
        episodes = updated(trainer).episodes
        if episodes.count:
            balance += (episodes.seeker_wins / episodes.count - balance) / BALANCE_UPDATES
    assert trainer.balance == pytest.approx(balance)
    assert balance != FAIR_WIN_RATE
    trainer.close()


def test_symmetries_change_what_is_learned_only_where_there_are_any() -> None:
    """Both layouts of the task have all of them; one that has none learns the same without."""
    assert differences(trained(2), trained(2, symmetry=False))
    rules = short_rules()
    lopsided = replace(task_of(), layouts=load_layouts("random:3", rules))
    assert not differences(trained(2, lopsided), trained(2, lopsided, symmetry=False))


def test_episodes_are_those_of_learners_among_themselves() -> None:
    trainer = trainer_of()
    ended: list[int] = []
    for block in blocks_of(trainer):
        spy_on(block, ended)
    counted = sum(updated(trainer).episodes.count for _ in range(8))
    trainer.close()
    assert counted == sum(ended) == trainer.episodes > 0


def spy_on(block: Block, ended: list[int]) -> None:
    """Note how many episodes end where two learners meet."""
    step, split = block.arenas.step, block.rollout.split

    def spy(actions: np.ndarray, *, restart: bool = True) -> Results:
        results = step(actions, restart=restart)
        both = results.ends[split.first : split.first + split.both]
        ended.append(int((both != GOING_ON).sum()))
        return results

    block.arenas.step = spy  # type: ignore[method-assign]


def test_every_chance_has_a_stream_of_its_own() -> None:
    first = []
    for seed in (3, 4):
        trainer = trainer_of(task_of(seed=seed))
        for updates in range(3):
            trainer.updates = updates
            first += [trainer.rng(purpose, part).random() for purpose, part in np.ndindex(4, 2)]
    assert len(set(first)) == len(first) == 2 * 3 * 8


def test_the_learning_rate_falls_in_a_straight_line() -> None:
    trainer = trainer_of(steps=4 * STEPS_PER_UPDATE, learning_rate=1e-3, final_learning_rate=2e-4)
    rates = []
    while not trainer.done:
        rates.append(updated(trainer).learning_rate)
    trainer.close()
    assert rates == pytest.approx([1e-3, 8e-4, 6e-4, 4e-4])


def test_a_recipe_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(UserError, match="arenas"):
        trainer_of(arenas=33)


@pytest.mark.parametrize(("cores", "workers"), [(1, 1), (2, 2), (8, BLOCKS)])
def test_a_core_each_and_no_more(cores: int, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("estragon.selfplay.trainer.available_cores", lambda: cores)
    assert Threads.of_this_machine() == Threads(workers, 1)
