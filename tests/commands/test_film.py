"""`estragon film`: one command from a run to its video, that no kill can spoil."""

import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from estragon.cli import main
from estragon.godot.find import require_godot
from estragon.selfplay.checkpoint import TagRun, load_checkpoint, save_checkpoint
from estragon.selfplay.config import RoleChoice
from estragon.selfplay.evaluation import StageEvaluator
from estragon.selfplay.session import start_session
from estragon.show.film import read_filmed_run
from estragon.show.film_plan import AFTER_SEC, CARD_SEC, END_SEC, TITLE_SEC
from estragon.show.frames import QUALITIES, Quality, film_name
from estragon.support.interrupts import StopRequest
from tests.commands.staging import finish, wait_for
from tests.selfplay.staging import (
    CONFIG,
    CPU,
    STEPS_PER_UPDATE,
    Onlooker,
    short_rules,
    task_of,
    the_run,
)
from tests.show.staging import footage

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
TINY = """
import sys
from estragon.cli import main
from estragon.commands import film
from estragon.show import frames
film.REPORT_SEC = 0.0
frames.QUALITIES["low"] = frames.Quality((192, 108), 5)
sys.exit(main(["film", "--renderer", "top-down", *sys.argv[1:]]))
"""
"""The verb with smaller pictures, which tells of every frame."""


def train(root: Path, role: RoleChoice = "both", opponent: str = "league") -> Path:
    """A tiny run of two stages; returns its folder."""
    task = task_of(role, opponent, rules=short_rules(seconds=0.5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("estragon.selfplay.session.STAGES", (0.0, 1.0))
        patch.setattr(
            "estragon.selfplay.session.StageEvaluator", partial(StageEvaluator, matches=6)
        )
        steps = 3 * STEPS_PER_UPDATE
        session = start_session(root, task, CONFIG, steps, CPU)
        assert session.run(Onlooker(), StopRequest())
    return the_run(root)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run in it."""
    root = tmp_path_factory.mktemp("trained")
    train(root)
    return root


@pytest.fixture
def here(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, and the current folder."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_preview_of_the_latest_run(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert QUALITIES["low"] == ((960, 540), 30)
    monkeypatch.setitem(QUALITIES, "low", Quality((192, 108), 10))
    (the_run(here) / "film" / "another").mkdir(parents=True)
    assert main(["film", "--renderer", "top-down"]) == 0
    (film,) = here.glob("learn_progress-*.mp4")
    stream, seconds, frames = footage(film, (192, 108))
    assert stream.startswith("h264")
    assert "yuv420p" in stream
    assert "192x108" in stream
    assert "10 fps" in stream
    shortest = TITLE_SEC + END_SEC + 2 * (CARD_SEC + AFTER_SEC)
    assert shortest < seconds < shortest + 2 * 3.0
    assert len(frames) == round(10 * seconds)
    assert b"moov" in film.read_bytes()[:100], "it can be watched while it loads"
    shown = capsys.readouterr()
    assert f"wrote {film.name}: " in shown.out
    assert "s for each second of film" in shown.out
    assert "the drawn frames are removed again" in shown.out
    assert "frames of other films are still in trainer" in shown.out
    assert "choosing matches" in shown.err
    assert {path.name for path in (the_run(here) / "film").iterdir()} == {"lock", "another"}


def begin(root: Path, *words: str, before: str = "") -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", before + TINY, *words],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@POSIX
@pytest.mark.prove
def test_killed_again_and_again_it_goes_on_to_the_same_bytes(here: Path) -> None:
    assert finish(begin(here, "--output", "whole.mp4"))[0] == 0
    for moment in ("drawing 5/", "encoding 5/"):
        process = begin(here, "--output", "killed.mp4")
        wait_for(process, moment)
        workers = children_of(process.pid)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert not (here / "killed.mp4").exists()
        wait_for_the_end_of(workers)
    process = begin(here, "--output", "killed.mp4")
    wait_for(process, "encoding 9/")
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130
    last_words = ["drawn frames are kept: the same command resumes", "estragon: stopped"]
    assert err.splitlines()[-2:] == last_words
    assert "Traceback" not in err
    code, out, err = finish(begin(here, "--output", "killed.mp4", "--keep-frames"))
    assert code == 0, err
    assert out.splitlines()[1].startswith("0 frames drawn"), "all were there"
    assert (here / "killed.mp4").read_bytes() == (here / "whole.mp4").read_bytes()
    assert "the drawn frames are in trainer" in out
    (work,) = (path for path in (the_run(here) / "film").iterdir() if path.is_dir())
    assert not [path for path in work.rglob("*") if path.name.startswith(".")]
    assert not [path for path in here.iterdir() if path.name.startswith(".")]


def children_of(pid: int) -> list[str]:
    """The processes it has begun, where the system tells."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    return children.read_text().split() if children.is_file() else []


def wait_for_the_end_of(pids: list[str]) -> None:
    deadline = time.monotonic() + 30.0
    while any(_runs(pid) for pid in pids):
        assert time.monotonic() < deadline, "workers outlive their film"
        time.sleep(0.05)


def _runs(pid: str) -> bool:
    """Whether a process is there, and not only waits to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
def test_real_godot_draws_it(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_godot()
    monkeypatch.setitem(QUALITIES, "low", Quality((192, 108), 1))
    assert main(["film", "--renderer", "godot", "--output", "film.mp4", "--keep-frames"]) == 0
    stream, _, frames = footage(here / "film.mp4", (192, 108))
    assert "192x108" in stream
    assert "1 fps" in stream
    assert frames.mean(axis=(1, 2, 3)).min() > 40, "no black frame"
    assert frames.std(axis=(1, 2, 3)).min() > 5, "and none empty"
    drawn = list((the_run(here) / "film").rglob("frame_*.png"))
    assert 4 <= len(drawn) <= 12


@pytest.mark.parametrize(
    ("godot", "reason"), [(False, "no usable Godot 4"), (True, "Xvfb could not be")]
)
def test_without_godot_it_is_drawn_from_above_and_says_so(
    godot: bool, reason: str, here: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from estragon.show.film_renderers import TopDownRenderer, choose_renderer
    from estragon.support.errors import UserError

    def find() -> Path:
        if godot:
            return tmp_path / "godot"
        raise UserError("no usable Godot 4 here: run estragon godot install")

    monkeypatch.setattr("estragon.godot.find.find_godot", find)
    monkeypatch.setattr("estragon.godot.display.has_display", lambda: False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ESTRAGON_HOME", str(tmp_path / "home"))
    said: list[str] = []
    assert isinstance(choose_renderer("auto", said.append), TopDownRenderer)
    assert len(said) == 1
    assert said[0].startswith("drawing from above, without Godot: ")
    assert reason in said[0]


def test_what_a_run_tells_of_itself(trained: Path) -> None:
    run = read_filmed_run(TagRun(trained, the_run(trained)))
    assert [stage.name for stage in run.facts.stages] == ["0%", "100%"]
    untrained, last = run.facts.stages
    assert (untrained.agent_steps, untrained.training_sec) == (0, None)
    assert last.agent_steps == 3 * STEPS_PER_UPDATE
    assert last.training_sec is not None
    assert 0.0 < last.training_sec < 300.0
    assert set(last.win_rates) == {
        "seeker_vs_random",
        "seeker_vs_evader",
        "hider_vs_random",
        "hider_vs_chaser",
    }
    assert set(last.elo) == {"seeker", "hider"}
    assert [(curve.role, curve.bot) for curve in run.facts.curves] == [
        ("seeker", "evader"),
        ("hider", "chaser"),
    ]
    assert run.facts.curves[0].win_rates[-1] == last.win_rates["seeker_vs_evader"]
    assert run.facts.learned_by == "self-play"
    assert run.facts.seeker_wins is not None
    assert 0.0 <= run.facts.seeker_wins <= 1.0
    assert "checkpoints" in run.stages[1].hider.name


def test_a_role_that_learned_alone_is_shown_with_its_opponent(tmp_path: Path) -> None:
    folder = TagRun(tmp_path, train(tmp_path, "hider", "bot:chaser"))
    run = read_filmed_run(folder)
    assert run.stages[0].seeker.name == "bot:chaser"
    assert "hider" in run.stages[0].hider.name
    assert run.facts.learned_by == "play against bot:chaser"
    assert [curve.role for curve in run.facts.curves] == ["hider"]
    assert set(run.facts.stages[-1].elo) == {"hider"}
    assert run.facts.seeker_wins is None


def test_runs_are_found_by_folder_by_id_and_by_themselves(here: Path) -> None:
    run = the_run(here)
    for name in (None, run.name, str(run), str(run.relative_to(here))):
        assert TagRun.find(Path(), name or "latest").path.resolve() == run.resolve()


def test_five_of_many_stages_are_shown(here: Path) -> None:
    folder = TagRun(here, the_run(here))
    saved = load_checkpoint(folder.state)
    first, last = saved["stages"]
    saved["stages"] = [first, *[last] * 7]
    save_checkpoint(folder.state, saved)
    assert len(read_filmed_run(folder).stages) == 5


def spoil_nothing(run: Path) -> None:
    shutil.rmtree(run.parents[2])


def spoil_stages(run: Path) -> None:
    saved = load_checkpoint(run / "state.pt")
    save_checkpoint(run / "state.pt", saved | {"stages": []})


def spoil_policy(run: Path) -> None:
    (path,) = (run / "checkpoints").glob("seeker_00003.npz")
    path.write_bytes(path.read_bytes()[:-100])


def spoil_state(run: Path) -> None:
    (run / "state.pt").write_bytes(b"PK\x03\x04 nothing")


def spoil_strength(run: Path) -> None:
    (run / "strength.csv").unlink()


def spoil_cross_play(run: Path) -> None:
    (run / "cross_play.json").write_text("{")


def spoil_pointer(run: Path) -> None:
    (run.parents[2] / "latest_run.txt").write_text("runs/nowhere\n")


@pytest.mark.parametrize(
    ("spoil", "words", "says"),
    [
        (spoil_nothing, [], "latest_run.txt"),
        (spoil_nothing, ["--run", "moon"], "no run with a checkpoint (state.pt): moon"),
        (spoil_pointer, [], "no run with a checkpoint (state.pt): "),
        (spoil_stages, [], "no stage is finished yet"),
        (spoil_policy, [], "seeker_00003.npz is not an Estragon policy, or it is damaged"),
        (spoil_state, [], "state.pt is not a checkpoint of a run, or it is damaged"),
        (spoil_strength, [], "cannot read"),
        (spoil_cross_play, [], "cross_play.json is not valid JSON"),
        (None, ["--quality", "best"], "best"),
        (None, ["--renderer", "blender"], "blender"),
        (None, ["--output", "trainer"], "trainer already exists"),
        (None, ["--output", "/dev/null/film.mp4"], "cannot write /dev/null/film.mp4"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    spoil: object, words: list[str], says: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if callable(spoil):
        spoil(the_run(here))
    assert main(["film", "--renderer", "top-down", *words]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("estragon: "), captured.err
    assert captured.err.count("\n") == 1
    assert says in captured.err
    assert not list(here.glob("*.mp4"))


def test_films_are_named_after_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("estragon.show.frames.time.strftime", lambda _: "20300102-030405")
    assert film_name(Path("x")) == Path("x/learn_progress-20300102-030405.mp4")


@POSIX
@pytest.mark.slow
def test_a_full_disk_is_one_line(here: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, 3_000))"
    process = begin(here, "--output", "film.mp4", before=limit)
    code, _, err = finish(process)
    assert code == 2, err
    assert err.splitlines()[-1].startswith("estragon: cannot write ")
    assert "Traceback" not in err
    assert not (here / "film.mp4").exists()
