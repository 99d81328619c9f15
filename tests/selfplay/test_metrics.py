"""The tables of a run: the contract's columns, a row an update, and numbers that add up."""

import contextlib
import csv
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.selfplay.metrics import COLUMNS, Board, MetricsTable, row_of
from estragon.show.charts.data import read_table
from estragon.support.errors import UserError
from estragon.tag.arenas import Results
from estragon.tag.rules import GOING_ON, ROLES, TERMS
from tests.selfplay.staging import Block, blocks_of, short_rules, task_of, trainer_of, updated

CONTRACT = [
    "episode",
    "episode_id",
    "reward_mean",
    "reward_sum",
    "steps",
    "updates",
    "advantage_mean",
    "advantage_std",
    "policy_loss",
    "value_loss",
    "seeker_reward_sum",
    "seeker_reward_mean",
    "seeker_steps",
    "seeker_avg_distance",
    "hider_reward_sum",
    "hider_reward_mean",
    "hider_steps",
    "hider_avg_distance",
    "winner",
    "terminal_reason",
    "duration_sec",
]
OF_EPISODES = [
    "reward_mean",
    "reward_sum",
    "steps",
    *(f"{role}_{what}" for role in ROLES for what in ("reward_sum", "reward_mean", "steps")),
    *(f"{role}_avg_distance" for role in ROLES),
    "winner",
    "terminal_reason",
    "duration_sec",
    "seeker_win_rate",
    *(f"{role}_term_{term}" for role in ROLES for term in TERMS),
]


def test_the_columns_begin_with_the_contract() -> None:
    assert list(COLUMNS[: len(CONTRACT)]) == CONTRACT
    assert len(set(COLUMNS)) == len(COLUMNS)


class Witness:
    """Adds up what happens in the arenas of a block where two learners meet."""

    def __init__(self, block: Block) -> None:
        self._arenas, self._split, self._step = block.arenas, block.rollout.split, block.arenas.step
        self._course: dict[int, list[tuple[np.ndarray, float]]] = {}
        self.episodes: list[dict[str, Any]] = []
        """Those that ended."""
        block.arenas.step = self.step  # type: ignore[method-assign]

    def step(self, actions: np.ndarray, *, restart: bool = True) -> Results:
        seekers = self._arenas.arenas["seeker"].copy()
        results = self._step(actions, restart=restart)
        first = self._split.first if self._split.both else 0
        for a in range(first, first + (self._split.both or self._split.count)):
            order = [seekers[a], 1 - seekers[a]]
            course = self._course.setdefault(a, [])
            course.append((results.rewards[a, order].astype(float), float(results.distances[a])))
            if results.ends[a] != GOING_ON:
                self.episodes.append(
                    {
                        "rewards": np.sum([rewards for rewards, _ in course], axis=0),
                        "distance": [distance for _, distance in course],
                        "ticks": int(results.ticks[a]),
                        "won": {0: 1.0, 1: 0.0, -1: 0.5}[int(results.winners[a])],
                    }
                )
                course.clear()
        return results


@pytest.mark.parametrize("rule_set", ["seek", "transfer"])
@pytest.mark.parametrize("opponent", ["league", "bot:evader"])
def test_the_sums_are_those_of_the_arenas(rule_set: str, opponent: str) -> None:
    trainer = trainer_of(task_of(opponent=opponent, rules=short_rules(rule_set)))
    witnesses = [Witness(block) for block in blocks_of(trainer)]
    told, total = 0, 0
    for number in range(12):
        update = updated(trainer)
        row: dict[str, Any] = row_of(update, trainer)
        assert set(row) == set(COLUMNS)
        assert row["updates"] == number + 1
        assert row["episode_id"] == f"update_{number:05d}"
        assert row["agent_steps"] == trainer.agent_steps
        episodes = [episode for witness in witnesses for episode in witness.episodes]
        for witness in witnesses:
            witness.episodes = []
        total += len(episodes)
        assert row["episode"] == total
        if not episodes:
            assert [row[name] for name in OF_EPISODES] == [None] * len(OF_EPISODES)
            continue
        told += 1
        agree(row, episodes)
    trainer.close()
    assert told >= 2


def agree(row: dict[str, Any], episodes: list[dict[str, Any]]) -> None:
    """A row is the mean of these episodes."""
    earned = np.mean([episode["rewards"] for episode in episodes], axis=0)
    decisions = np.mean([len(episode["distance"]) for episode in episodes])
    distances = np.concatenate([episode["distance"] for episode in episodes])
    for number, role in enumerate(ROLES):
        assert row[f"{role}_reward_sum"] == pytest.approx(earned[number], abs=1e-4)
        assert row[f"{role}_reward_mean"] == pytest.approx(earned[number] / decisions, abs=1e-5)
        assert row[f"{role}_steps"] == pytest.approx(decisions)
        assert row[f"{role}_avg_distance"] == pytest.approx(distances.mean())
        terms = sum(row[f"{role}_term_{term}"] for term in TERMS)
        assert terms == pytest.approx(row[f"{role}_reward_sum"], abs=1e-6)
    assert row["reward_sum"] == pytest.approx(earned.sum(), abs=1e-4)
    assert row["reward_mean"] == pytest.approx(earned.sum() / decisions / 2.0, abs=1e-5)
    assert row["duration_sec"] == pytest.approx(np.mean([e["ticks"] for e in episodes]) / 60.0)
    rate = np.mean([episode["won"] for episode in episodes])
    assert row["seeker_win_rate"] == pytest.approx(rate)
    assert row["winner"] == ("seeker" if rate > 0.5 else "hider")
    assert row["terminal_reason"] in ("tag", "timeout")


def test_losses_are_told_for_each_role_and_on_average() -> None:
    trainer = trainer_of()
    update = updated(trainer)
    row: dict[str, Any] = row_of(update, trainer)
    trainer.close()
    for name in ("policy_loss", "value_loss"):
        both = [getattr(update.losses[role], name) for role in ROLES]
        assert [row[f"{role}_{name}"] for role in ROLES] == both
        assert row[name] == pytest.approx(np.mean(both))
    for role in ROLES:
        assert row[f"{role}_entropy"] > 1.0
        assert row[f"{role}_kl"] >= 0.0
        assert row[f"{role}_explained_variance"] <= 1.0


def test_a_role_that_does_not_learn_has_no_losses() -> None:
    trainer = trainer_of(task_of("hider", "bot:chaser"))
    row = row_of(updated(trainer), trainer)
    trainer.close()
    assert row["seeker_policy_loss"] is None
    assert row["hider_policy_loss"] == row["policy_loss"]


def table_of(path: Path, rows: int) -> MetricsTable:
    table = MetricsTable(path, ["agent_steps", "a", "b"])
    for row in range(rows):
        table.add({"agent_steps": 100 * row, "a": row / 3.0, "b": None if row % 2 else "x"})
    table.save()
    return table


def test_a_table_is_a_csv_file_with_gaps(tmp_path: Path) -> None:
    path, copy = tmp_path / "new" / "metrics.csv", tmp_path / "copy.csv"
    table = table_of(path, 3)
    table.save(copy)
    assert len(table) == 3
    assert path.read_bytes() == copy.read_bytes()
    with path.open(newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["agent_steps", "a", "b"]
    assert [row[2] for row in rows[1:]] == ["x", "", "x"]
    assert read_table(path).column("a").tolist() == [0.0, 1.0 / 3.0, 2.0 / 3.0], "to the last bit"


def test_it_grows_and_so_does_a_copy_unless_somebody_else_wrote_there(tmp_path: Path) -> None:
    path, copy = tmp_path / "metrics.csv", tmp_path / "copy.csv"
    copy.write_text("of another run")
    table = table_of(path, 2)
    for number in range(4):
        table.save(copy)
        assert copy.read_bytes() == path.read_bytes()
        assert len(path.read_text().splitlines()) == 1 + len(table)
        table.add({"agent_steps": 1000 + number})
        if number == 2:
            copy.write_text("of a third run")
    inode = path.stat().st_ino
    table.save(copy)
    assert path.stat().st_ino == inode, "nothing is written twice"


def test_restored_it_forgets_later_rows(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    table_of(path, 3)
    three = path.read_bytes()
    table_of(path, 5)
    other = MetricsTable(path, ["agent_steps", "a", "b"])
    other.restore(3)
    assert len(other) == 3
    other.save()
    assert path.read_bytes() == three
    other.restore(0)
    other.save()
    assert path.read_text() == "agent_steps,a,b\n"


@pytest.mark.parametrize(
    "contents",
    [
        b"",
        b"\n",
        b"agent_steps,a\n1,2\n1,2\n1,2\n",
        b"other,a,b\n1,2,3\n1,2,3\n1,2,3\n",
        b"agent_steps,a,b\n1,2,3\n",
        b"\xff\xfe\x00",
        b"PK\x03\x04",
    ],
)
def test_a_foreign_or_shorter_file_is_refused(tmp_path: Path, contents: bytes) -> None:
    path = tmp_path / "metrics.csv"
    path.write_bytes(contents)
    with pytest.raises(UserError, match=re.escape(str(path))):
        MetricsTable(path, ["agent_steps", "a", "b"]).restore(3)
    assert path.read_bytes() == contents


def test_a_table_older_than_a_reward_term_gets_its_column(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    table_of(path, 3)
    table = MetricsTable(path, ["agent_steps", "a", "hider_term_new", "b"])
    old = [line.split(",") for line in path.read_text().splitlines()[1:]]
    table.restore(2)
    rows = [line.split(",") for line in path.read_text().splitlines()]
    assert rows == [["agent_steps", "a", "hider_term_new", "b"]] + [
        [steps, a, "", b] for steps, a, b in old[:2]
    ]
    assert len(table) == 2


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot resume"):
        MetricsTable(tmp_path / "metrics.csv", ["a"]).restore(0)


def test_tensorboard_gets_the_numbers(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = Board(tmp_path, 0)
    for update in (1, 2, 3):
        board.add({"policy_loss": 0.5 * update, "seeker_kl": 1, "winner": "x", "a": None}, update)
    board.close()
    read = EventAccumulator(str(tmp_path)).Reload()
    assert sorted(read.Tags()["scalars"]) == ["run/policy_loss", "seeker/kl"]
    assert [event.value for event in read.Scalars("run/policy_loss")] == [0.5, 1.0, 1.5]
    again = Board(tmp_path, 2)
    again.add({"policy_loss": 9.0}, 3)
    again.close()
    read = EventAccumulator(str(tmp_path)).Reload()
    steps = [(event.step, event.value) for event in read.Scalars("run/policy_loss")]
    assert steps == [(1, 0.5), (2, 1.0), (3, 9.0)], "two updates are kept, the third is done again"


@contextlib.contextmanager
def files_up_to(limit: int) -> Iterator[None]:
    """No file may grow beyond so many bytes, as on a full disk."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits")
def test_tensorboards_file_is_no_exception_on_a_full_disk(tmp_path: Path) -> None:
    """It grows all the time: on a disk that fills up it is the first that does not fit."""
    board = Board(tmp_path, 0)
    row = {f"column_{number}": 0.5 for number in range(50)}

    def fill() -> None:
        for update in range(200):
            board.add(row, update)
        board.close()

    with files_up_to(100_000), pytest.raises(UserError, match=r"cannot write .*File too large"):
        fill()
    board.close()
