"""`estragon train tag`: one command from nothing to trained agents, that nothing can spoil."""

import json
import os
import pickle
import re
import shlex
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch

from estragon.cli import main
from estragon.selfplay.checkpoint import TagRun, load_checkpoint
from estragon.support.files import locked
from estragon.tag.policy_files import load_policies, save_policies
from tests.commands.staging import (
    COMMAND,
    LIMITED_COMMAND,
    OPTIONS,
    finish,
    prepared,
    start,
    wait_for,
)
from tests.selfplay.staging import assert_same_runs, beginners, policy_arrays, short_rules, the_run

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and limits")
LINUX = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs a fixed core count")


class Ended(NamedTuple):
    """A command that has run."""

    root: Path
    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A run that nobody interrupted."""
    root = prepared(tmp_path_factory.mktemp("whole"))
    return Ended(root, *finish(start(COMMAND, root, *OPTIONS, "--probe-steps", "2000")))


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """The same run after a Ctrl-C in the middle."""
    root = prepared(tmp_path_factory.mktemp("interrupted"))
    process = start(COMMAND, root, *OPTIONS, "--probe-steps", "0")
    wait_for(process, "at 10% ")
    process.send_signal(signal.SIGINT)
    return Ended(root, *finish(process))


@pytest.mark.slow
def test_the_command_trains_and_leaves_everything(whole: Ended) -> None:
    assert whole.code == 0, whole.err
    assert "Traceback" not in whole.err
    run = the_run(whole.root)
    assert whole.err.startswith(f"run {run.name}: both against league, seed 5, 20,000 steps")
    trainer = whole.root / "trainer"
    for name in ("policy", "policy_seeker", "policy_hider"):
        for suffix in (".pt", ".npz"):
            assert load_policies(trainer / f"{name}{suffix}", short_rules())
    for name in ("metadata.json", "metrics.csv", "strength.csv", "cross_play.json", "state.pt"):
        assert (run / name).is_file(), name
    assert list((run / "tensorboard").glob("events.*"))
    assert len(list((whole.root / "charts").glob("*.png"))) >= 5
    assert not list(whole.root.glob("*.mp4"))
    about = json.loads((run / "metadata.json").read_text())
    assert (about["layout"], about["seed"], about["torch"]) == (
        "four_corners",
        5,
        torch.__version__,
    )
    summary = json.loads((run / "summary.json").read_text())
    assert summary["agent_steps"] == 20_000
    assert summary["agent_steps_per_s"] > 0
    assert [probe["exploited"] for probe in summary["probes"]] == ["seeker", "hider"]
    assert all(0.0 <= probe["win_rate"] <= 1.0 for probe in summary["probes"])
    assert all(2000 <= probe["steps"] < 4000 for probe in summary["probes"])


@pytest.mark.slow
def test_the_end_screen_says_how_strong_and_what_to_do(whole: Ended) -> None:
    shown = whole.out
    assert "Trained 20,000 agent-steps" in shown
    for name in ("0%", "5%", "10%", "20%", "35%", "50%", "75%", "100%"):
        assert re.search(rf"^\s*{name} ", shown, re.MULTILINE), name
    scores = json.loads((the_run(whole.root) / "summary.json").read_text())["scores"]
    for pairing, score in scores.items():
        role, _, bot = pairing.partition("_vs_")
        line = rf"{role}\s+beats {bot}\s+{100 * score['win_rate']:.1f}%\s+\(95% interval"
        assert re.search(line, shown), pairing
    assert "trained against trained: the seeker wins" in shown
    assert shown.count("best response to the") == 2
    assert "charts/*.png" in shown
    assert "tensorboard --logdir" in shown


@pytest.mark.slow
def test_the_commands_it_proposes_work(
    whole: Ended, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(whole.root)
    proposed = [shlex.split(line) for line in whole.out.splitlines() if "estragon eval" in line]
    assert len(proposed) == 2
    for _, *words in proposed:
        assert main([*words, "--episodes", "8", "--rules-file", "rules.json"]) == 0
        assert "8 matches" in capsys.readouterr().out


@POSIX
@pytest.mark.slow
def test_ctrl_c_saves_everything_and_says_so(interrupted: Ended) -> None:
    assert interrupted.code == 130
    assert "Traceback" not in interrupted.err
    last = interrupted.err.splitlines()[-1]
    assert re.fullmatch(r"stopped at [\d,]+ of 20,000 steps; saved; continue with --resume", last)
    assert "stopping after this update; Ctrl-C again stops at once" in interrupted.err
    assert interrupted.out == ""
    run = the_run(interrupted.root)
    saved = load_checkpoint(run / "state.pt")
    assert f"stopped at {saved['trainer']['agent_steps']:,} of" in last
    assert 0 < saved["trainer"]["agent_steps"] < 20_000
    assert load_policies(interrupted.root / "trainer" / "policy.npz", short_rules())


@LINUX
@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, pytest.param(2, marks=pytest.mark.prove)])
def test_stopped_and_killed_at_any_moment_it_goes_on_to_the_same_bits(
    whole: Ended, interrupted: Ended, kills: int, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(interrupted.root, tmp_path / "killed"))
    words = ["--resume", "--no-film", "--probe-steps", "0"]
    random = np.random.default_rng(1)
    killed_at: list[int] = []
    for _ in range(kills):
        process = start(COMMAND, root, *words)
        wait_for(process, "run ")
        time.sleep(random.uniform(0.0, 0.8))
        process.kill()
        assert finish(process)[0] != 0, "it was over before"
        saved = load_checkpoint(the_run(root) / "state.pt")
        killed_at.append(saved["trainer"]["agent_steps"])
    print(f"killed after the checkpoints at {killed_at}")
    assert sorted(killed_at) == killed_at
    code, out, err = finish(start(COMMAND, root, *words))
    assert code == 0, err
    assert "Trained 20,000 agent-steps" in out
    assert_same_runs(whole.root, root)


def stale_policies(root: Path) -> dict[str, dict[str, object]]:
    """Policies of an earlier run in a folder, as they have to stay."""
    policies = beginners(short_rules(), 8)
    paths = [root / "trainer" / f"policy{suffix}" for suffix in (".pt", ".npz")]
    for path in paths:
        save_policies(path, policies, short_rules())
    return {path.name: policy_arrays(path) for path in paths}


@POSIX
@pytest.mark.slow
def test_on_a_full_disk_it_says_so_and_spares_the_policies(whole: Ended, tmp_path: Path) -> None:
    """`whole` comes first: the compiler's cache must not be what does not fit."""
    assert whole.code == 0
    prepared(tmp_path)
    policies = stale_policies(tmp_path)
    code, out, err = finish(start(LIMITED_COMMAND, tmp_path, "20000", *OPTIONS))
    assert code == 2
    assert out == ""
    *lines, complaint = err.splitlines()
    assert [line for line in lines if not line.startswith("run ")] == []
    assert re.match(r"estragon: cannot write .*state\.pt: File too large; ", complaint)
    for name, arrays in policies.items():
        assert policy_arrays(tmp_path / "trainer" / name) == arrays
    assert not list(tmp_path.rglob(".*")), "no half-written file is left"


def wrong_role(root: Path) -> str:
    path = root / "seeker.npz"
    save_policies(path, {"seeker": beginners(short_rules())["seeker"]}, short_rules())
    return path.name


class Trap:
    """Leaves a file behind where it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return (Path.touch, (Path("sprung"),))


def pickled(root: Path) -> str:
    path = root / "pickled.pt"
    path.write_bytes(pickle.dumps(Trap()))
    return path.name


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--steps -5", "--steps: expected 1"),
        ("--steps 0", "--steps: expected 1"),
        ("--steps many", "--steps"),
        ("--wings 2", "--wings"),
        ("--seed -1", "--seed"),
        ("--seed 9999999999", "--seed"),
        ("--probe-steps -1", "--probe-steps"),
        ("--opponent bot:ninja", "no bot 'ninja'"),
        ("--opponent nobody.npz", "--opponent nobody.npz"),
        ("--layout moon", "no layout 'moon'"),
        ("--rules chess", "no rule set 'chess'"),
        ("--rewards gold", "no reward profile 'gold'"),
        ("--rules-file nowhere.json", "nowhere.json"),
        ("--parameters nowhere.yaml", "cannot read nowhere.yaml"),
        ("--parameters rules.json", "rules.json: Object contains unknown field"),
        ("--parameters WINGS", "wings: the game has no such parameter"),
        ("--role seeker --opponent league", "in a league both roles learn"),
        ("--role hider --rules transfer", "under transfer rules"),
        ("--role seeker --opponent WRONG_ROLE", "holds no hider"),
        ("--opponent WRONG_ROLE", "holds no hider"),
        ("--role seeker --opponent PICKLED", "is not an Estragon policy"),
        ("--run-id x", "--run-id x: only together with --resume"),
        ("--resume", "latest_run.txt"),
        ("--resume --run-id nobody", "no run with a checkpoint (state.pt): nobody"),
        ("--arenas 65", "arenas: expected a multiple of 2"),
        ("--arenas 2", "arenas: expected"),
        ("--horizon 0", "horizon"),
        ("--learning-rate nan", "learning_rate"),
        ("--discount 1.5", "gamma"),
        ("--past 0.9 --sparring 0.9", "past and sparring"),
        ("--output rules.json", "cannot write"),
        ("--output /dev/null/x", "cannot write"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_made(
    words: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prepared(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wings.yaml").write_text("parameters: {wings: 2}")
    words = words.replace("WINGS", "wings.yaml")
    words = words.replace("WRONG_ROLE", wrong_role(tmp_path)).replace("PICKLED", pickled(tmp_path))
    assert main(["train", "tag", *words.split()]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("estragon: ")
    assert captured.err.count("\n") == 1
    assert says in captured.err
    assert not (tmp_path / "trainer" / "logs").exists()
    assert not (tmp_path / "sprung").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "tag", "--device", "cuda"]) == 2
    assert capsys.readouterr().err == (
        "estragon: --device cuda: CUDA is not available; use --device cpu\n"
    )
    assert not (tmp_path / "trainer" / "logs").exists()


@POSIX
@pytest.mark.slow
def test_a_damaged_run_is_one_line_from_the_command_too(
    interrupted: Ended,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = Path(shutil.copytree(interrupted.root, tmp_path / "damaged"))
    monkeypatch.chdir(root)
    path = the_run(root) / "state.pt"
    whole = path.read_bytes()
    for contents in (b"", whole[:-100], pickle.dumps(Trap())):
        path.write_bytes(contents)
        assert main(["train", "tag", "--resume"]) == 2
        complaint = capsys.readouterr().err
        assert complaint.count("\n") == 1
        assert "state.pt is not a checkpoint" in complaint
        assert path.read_bytes() == contents
    assert not (root / "sprung").exists()


@POSIX
@pytest.mark.slow
def test_a_run_is_trained_by_one_process_at_a_time(
    interrupted: Ended, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(interrupted.root)
    run = TagRun.find(interrupted.root, "latest")
    before = run.state.read_bytes()
    with locked(run.lock, timeout_sec=0.0):
        assert main(["train", "tag", "--resume"]) == 2
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert "which another process holds" in complaint
    assert run.state.read_bytes() == before
