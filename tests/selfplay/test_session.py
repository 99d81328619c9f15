"""A run and its files: all of them there, and the same however often it was stopped."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from estragon.selfplay.checkpoint import TagRun, load_checkpoint, save_checkpoint
from estragon.selfplay.config import Task
from estragon.selfplay.evaluation import StageEvaluator
from estragon.selfplay.session import STAGES, STRENGTH_COLUMNS, Session, start_session
from estragon.selfplay.trainer import Threads
from estragon.show.charts.draw import draw_charts
from estragon.support.errors import UserError
from estragon.support.interrupts import StopRequest
from estragon.support.progress import Progress
from estragon.tag.policy_files import load_policies, save_policies
from estragon.tag.rules import ROLES
from tests.selfplay.staging import (
    CONFIG,
    CPU,
    STEPS_PER_UPDATE,
    Onlooker,
    assert_same_runs,
    beginners,
    few_charts,
    rows_without_speed,
    short_rules,
    task_of,
    the_run,
    varied_task,
)

UPDATES = 20
STEPS = UPDATES * STEPS_PER_UPDATE
"""Every stage falls on an update of its own."""
RULES, TRANSFER = short_rules(seconds=0.5), short_rules("transfer", seconds=0.5)
QUICK = replace(CONFIG, epochs=1, minibatch=128)
NAMES = [f"{100 * share:.0f}%" for share in STAGES]


@pytest.fixture(autouse=True, scope="module")
def few_matches() -> Any:
    """Judge with a handful of matches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "estragon.selfplay.session.StageEvaluator", partial(StageEvaluator, matches=6)
        )
        yield


@pytest.fixture
def few_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """For runs of few updates."""
    monkeypatch.setattr("estragon.selfplay.session.STAGES", (0.0, 0.5, 1.0))


def new_session(root: Path, task: Task | None = None, steps: int = STEPS) -> Session:
    task = task or task_of(rules=RULES)
    session = start_session(root, task, QUICK, steps, CPU)
    session.write_metadata({"layout": None})
    session.folder.mark_latest()
    return session


def resumed(root: Path) -> Session:
    return Session.resume(TagRun.find(root))


def run(session: Session, updates: int = -1) -> Onlooker:
    """Run to the end, or for so many updates."""
    stop = StopRequest()
    onlooker = Onlooker(stop, updates)
    stop.made = updates == 0
    finished = session.run(onlooker, stop)
    assert finished == session.trainer.done
    return onlooker


@pytest.fixture(scope="module")
def whole(few_matches: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root folder of a run that nobody interrupted."""
    root = tmp_path_factory.mktemp("whole")
    torch.set_num_threads(1)
    run(new_session(root))
    return root


@pytest.fixture(scope="module")
def half(few_matches: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root folder of a run that was stopped halfway."""
    root = tmp_path_factory.mktemp("half")
    torch.set_num_threads(1)
    run(new_session(root), 9)
    return root


@pytest.fixture
def stopped(half: Path, tmp_path: Path) -> Path:
    """A copy of the run that was stopped halfway, for a test of its own."""
    return Path(shutil.copytree(half, tmp_path / "stopped"))


def files_of(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def test_a_run_leaves_the_files_of_the_contract(whole: Path) -> None:
    trainer, run_folder = whole / "trainer", the_run(whole)
    for suffix in (".pt", ".npz"):
        for role in ROLES:
            (held,) = load_policies(trainer / f"policy_{role}{suffix}", RULES).items()
            assert held[0] == role
            assert held[1].trained_steps == STEPS // 2
        assert list(load_policies(trainer / f"policy{suffix}", RULES)) == list(ROLES)
    logs = trainer / "logs"
    assert run_folder.parent == logs / "runs" / "ppo-league"
    latest = (logs / "latest_run.txt").read_text()
    assert latest == f"runs/ppo-league/{run_folder.name}\n"
    assert (logs / "metrics.csv").read_bytes() == (run_folder / "metrics.csv").read_bytes()
    about = json.loads((run_folder / "metadata.json").read_text())
    assert (about["run_id"], about["seed"], about["budget"]) == (run_folder.name, 3, STEPS)
    assert about["recipe"]["arenas"] == QUICK.arenas
    assert list((run_folder / "tensorboard").glob("events.*"))
    kept = {path.name for path in (run_folder / "checkpoints").iterdir()}
    at = [round(share * UPDATES) for share in STAGES]
    expected = {f"{role}_{update:05d}" for role in ROLES for update in at}
    assert kept == {f"{name}{suffix}" for name in expected for suffix in (".pt", ".npz")}
    assert (run_folder / "state.pt").is_file()
    assert not [name for name in files_of(whole) if Path(name).name.startswith(".")]


def test_a_run_with_random_rules_goes_on_to_the_same_bits(few_stages: None, tmp_path: Path) -> None:
    lessons: list[dict[str, Any]] = [
        {"name": "near", "parameters": {"spawn_separation_m": 1}, "until": {"progress": 0.4}},
        {"name": "far", "parameters": {"spawn_separation_m": {"uniform": [4, 8]}}},
    ]
    task = varied_task(tmp_path, parameters={"speed_mps": {"uniform": [4, 12]}}, curriculum=lessons)
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    session = new_session(whole, task, 8 * STEPS_PER_UPDATE)
    run(session)
    run(new_session(stopped, task, 8 * STEPS_PER_UPDATE), 5)
    run(resumed(stopped))
    assert_same_runs(whole, stopped)
    header, *rows = rows_without_speed(the_run(whole) / "metrics.csv")
    taught = [row[header.index("lesson")] for row in rows]
    assert taught == sorted(taught)
    assert set(taught) == {"0", "1"}
    assert {"parameter_speed_mps", "parameter_spawn_separation_m"} <= set(header)
    session.write_summary(0, Progress())
    assert json.loads((the_run(whole) / "summary.json").read_text())["lesson"] == 1


def test_the_tables_and_charts_of_a_run(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("estragon.show.charts.draw.all_charts", few_charts)
    run_folder = the_run(whole)
    metrics = rows_without_speed(run_folder / "metrics.csv")
    assert len(metrics) == 1 + UPDATES
    assert [row[metrics[0].index("updates")] for row in metrics[1:]] == [
        str(update) for update in range(1, UPDATES + 1)
    ]
    strength = rows_without_speed(run_folder / "strength.csv")
    assert strength[0] == list(STRENGTH_COLUMNS)
    assert len(strength) == 1 + len(STAGES)
    assert all(all(row) for row in strength)
    cross_play = json.loads((run_folder / "cross_play.json").read_text())
    assert [stage["name"] for stage in cross_play["stages"]] == NAMES
    assert [stage["agent_steps"] for stage in cross_play["stages"]] == [
        round(share * UPDATES) * STEPS_PER_UPDATE for share in STAGES
    ]
    assert len(draw_charts(run_folder, tmp_path)) >= 5


def test_the_final_policies_are_those_of_the_last_stage(whole: Path) -> None:
    last = load_policies(the_run(whole) / "checkpoints" / f"hider_{UPDATES:05d}.npz", RULES)
    final = load_policies(whole / "trainer" / "policy_hider.pt", RULES)
    for one, other in zip(last["hider"].weights, final["hider"].weights, strict=True):
        assert np.array_equal(one[0], other[0])
    first = load_policies(the_run(whole) / "checkpoints" / "hider_00000.npz", RULES)
    assert not np.array_equal(first["hider"].weights[0][0], final["hider"].weights[0][0])


@pytest.mark.parametrize("stops", [[3, 0, 6], pytest.param([0, 13], marks=pytest.mark.prove)])
def test_a_stopped_run_goes_on_to_the_same_bits(
    whole: Path, tmp_path: Path, stops: list[int]
) -> None:
    seen = run(new_session(tmp_path), stops[0])
    stages = list(seen.stages)
    for updates in [*stops[1:], -1]:
        session = resumed(tmp_path)
        assert session.trainer.agent_steps < STEPS
        stages += run(session, updates).stages
    assert stages == NAMES
    assert_same_runs(whole, tmp_path)


def test_a_run_killed_between_its_tables_and_its_checkpoint(whole: Path, stopped: Path) -> None:
    """Tables are written first: they may be ahead of the checkpoint, with rows to be forgotten."""
    run_folder = the_run(stopped)
    for name in ("metrics.csv", "strength.csv"):
        path = run_folder / name
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join([*lines, *lines[-2:]]))
    (run_folder / "cross_play.json").write_text("{}")
    (run_folder / "checkpoints" / "seeker_00010.pt").write_bytes(b"half a file")
    run(resumed(stopped))
    assert_same_runs(whole, stopped)


def test_what_a_kill_left_half_written_is_cleared_away(stopped: Path) -> None:
    """Files are written beside their place and then put there: a kill in between leaves one."""
    run_folder = the_run(stopped)
    left = [run_folder / ".state.pt.abcd1234", run_folder / "checkpoints" / ".hider_00005.pt.x_y1"]
    for path in left:
        path.write_bytes(b"half a file")
    run(resumed(stopped), 1)
    assert not [path.name for path in left if path.exists()]


def test_a_run_killed_while_it_was_judged(
    whole: Path, stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint is older than some of the stage's files; the stage is judged again."""
    session = resumed(stopped)
    monkeypatch.setattr(session.evaluator, "elo", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(session)
    run(resumed(stopped))
    assert_same_runs(whole, stopped)


def test_a_finished_run_has_nothing_left_to_do(whole: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(whole, tmp_path / "finished"))
    onlooker = run(resumed(root))
    assert (onlooker.updates, onlooker.stages) == ([], [])
    assert_same_runs(whole, root)


def test_no_stage_is_judged_twice_where_an_update_passes_several(tmp_path: Path) -> None:
    """A short run: its first update is past 5% and 10% at once."""
    steps = 4000
    assert 0.1 * steps < STEPS_PER_UPDATE
    seen = run(new_session(tmp_path, steps=steps))
    assert len(seen.stages) == len(set(seen.stages)), f"judged {seen.stages}"
    assert seen.stages[0] == "0%"
    assert seen.stages[-1] == "100%"
    again = run(resumed(tmp_path))
    assert again.stages == [], "it was finished"


def test_a_run_of_one_update(tmp_path: Path) -> None:
    seen = run(new_session(tmp_path, steps=1))
    assert seen.stages == ["0%", "100%"]
    assert len(seen.updates) == 1
    assert run(resumed(tmp_path)).stages == [], "it was finished"


def test_a_run_against_its_own_earlier_policies_goes_on_to_the_same_bits(
    few_stages: None, tmp_path: Path
) -> None:
    """They are in the very file that the run writes its own to."""
    roots = [tmp_path / "whole", tmp_path / "stopped"]
    for root in roots:
        path = root / "trainer" / "policy.pt"
        save_policies(path, beginners(RULES, 5), RULES)
        session = new_session(root, task_of(opponent=str(path), rules=RULES), steps=6 * 256)
        run(session, -1 if root is roots[0] else 3)
    run(resumed(roots[1]))
    assert_same_runs(*roots)


def test_a_run_of_one_role(few_stages: None, tmp_path: Path) -> None:
    session = new_session(tmp_path, task_of("hider", "bot:chaser", rules=RULES), steps=6 * 256)
    run(session, 5)
    assert run(resumed(tmp_path)).stages[-1] == "100%"
    trainer = tmp_path / "trainer"
    assert not (trainer / "policy_seeker.pt").exists()
    assert list(load_policies(trainer / "policy_hider.npz", RULES)) == ["hider"]
    run_folder = the_run(tmp_path)
    assert run_folder.parent.name == "ppo-hider-against-a-fixed-opponent"
    assert not (run_folder / "cross_play.json").exists()
    header, *rows = rows_without_speed(run_folder / "strength.csv")
    for row in rows:
        cells = dict(zip(header, row, strict=True))
        for name in header[2:]:
            assert bool(cells[name]) == name.startswith("hider"), name


def test_a_run_under_transfer_rules(few_stages: None, tmp_path: Path) -> None:
    task = task_of(rules=TRANSFER)
    roots = [tmp_path / "whole", tmp_path / "stopped"]
    for root in roots:
        run(new_session(root, task, steps=6 * STEPS_PER_UPDATE), -1 if root is roots[0] else 4)
    session = resumed(roots[1])
    assert session.task.rules == task.rules
    run(session)
    assert_same_runs(*roots)


def test_a_resumed_run_remembers_what_it_was_asked(stopped: Path) -> None:
    session = resumed(stopped)
    task = task_of(rules=RULES)
    assert (session.task.rules, session.task.layouts) == (task.rules, task.layouts)
    assert (session.task.seed, session.task.role, session.task.opponent) == (3, "both", "league")
    assert (session.config, session.budget, session.threads) == (
        QUICK,
        STEPS,
        Threads.of_this_machine(),
    )
    assert session.seconds > 0.0
    assert [stage.name for stage in session.evaluator.stages] == NAMES[:5]
    assert len(session.scores) == 5


def cut_short(data: bytes) -> bytes:
    return data[: len(data) // 2]


def emptied(_: bytes) -> bytes:
    return b""


def foreign(_: bytes) -> bytes:
    return b"agent_steps\n1\n"


@pytest.mark.parametrize("damage", [cut_short, emptied, foreign])
@pytest.mark.parametrize("name", ["state.pt", "checkpoints/hider_00004.pt", "metrics.csv"])
def test_a_damaged_run_is_refused_and_left_alone(
    stopped: Path, name: str, damage: Callable[[bytes], bytes]
) -> None:
    path = the_run(stopped) / name
    path.write_bytes(damage(path.read_bytes()))
    before = files_of(stopped)
    with pytest.raises(UserError) as refusal:
        resumed(stopped)
    assert path.name in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert files_of(stopped) == before


def without(*names: str) -> Callable[[dict[str, Any]], None]:
    def remove(saved: dict[str, Any]) -> None:
        for name in names[:-1]:
            saved = saved[name]
        del saved[names[-1]]

    return remove


def replaced(value: Any, *names: Any) -> Callable[[dict[str, Any]], None]:
    def replace(saved: Any) -> None:
        for name in names[:-1]:
            saved = saved[name]
        saved[names[-1]] = value

    return replace


@pytest.mark.parametrize(
    "change",
    [
        without("trainer"),
        without("task"),
        without("task", "seed"),
        without("trainer", "league"),
        without("recipe", "arenas"),
        replaced(64, "recipe", "arenas"),
        replaced(32, "recipe", "hidden"),
        replaced(7, "recipe", "wings"),
        replaced("fast", "task", "rules", "agent", "speed_mps"),
        replaced([], "trainer", "learners"),
        replaced([], "trainer", "arenas"),
        replaced(torch.zeros(3), "trainer", "arenas", 0, "agents"),
        replaced(["0%"], "stages"),
        replaced([["0%", "50%"]], "played"),
        replaced("many", "metrics_rows"),
        replaced("the moon", "device"),
        replaced([1, 2, 3], "threads"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused(
    stopped: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    path = the_run(stopped) / "state.pt"
    saved = load_checkpoint(path)
    change(saved)
    save_checkpoint(path, saved)
    before = files_of(stopped)
    with pytest.raises(UserError) as refusal:
        resumed(stopped)
    assert "\n" not in str(refusal.value)
    assert files_of(stopped) == before


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_run_from_a_machine_with_cuda_says_what_is_missing(stopped: Path) -> None:
    path = the_run(stopped) / "state.pt"
    save_checkpoint(path, load_checkpoint(path) | {"device": "cuda"})
    with pytest.raises(UserError, match=r"(?i)cuda"):
        resumed(stopped)


def test_nothing_to_go_on_with(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"latest_run\.txt"):
        resumed(tmp_path)


def test_a_run_can_be_gone_on_with_from_its_first_moment(tmp_path: Path) -> None:
    """It is the latest run from the start: killed before its first stage is judged, it goes on."""
    new_session(tmp_path)
    assert run(resumed(tmp_path), 2).stages[0] == "0%"


@pytest.mark.parametrize("steps", [0, -5, 10**13])
def test_a_budget_that_makes_no_sense_is_refused(tmp_path: Path, steps: int) -> None:
    with pytest.raises(UserError, match="--steps"):
        new_session(tmp_path, steps=steps)
    assert files_of(tmp_path) == {}


def test_a_root_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trainer").write_text("a file")
    with pytest.raises(UserError, match="cannot create"):
        new_session(tmp_path)


@pytest.mark.parametrize(
    "name", ["policy.pt", "logs/metrics.csv", "run/state.pt", "run/strength.csv", "run/checkpoints"]
)
def test_a_file_that_cannot_be_written_is_said(tmp_path: Path, name: str) -> None:
    session = new_session(tmp_path)
    path = tmp_path / "trainer" / name
    if name.startswith("run/"):
        path = session.folder.path / name.removeprefix("run/")
    if name == "run/checkpoints":
        path.write_text("a file where a folder should be")
    else:
        path.unlink(missing_ok=True)
        path.mkdir(parents=True)
    with pytest.raises(UserError, match=rf"cannot write .*{path.name}"):
        run(session)


def test_a_board_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    session = new_session(tmp_path)
    session.folder.tensorboard.write_text("a file where a folder should be")
    with pytest.raises(UserError, match="tensorboard"):
        run(session)
