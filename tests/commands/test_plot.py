"""The verb: which runs it takes, what it says, and what it says of files it cannot use."""

import subprocess
import sys
from pathlib import Path

import pytest

from estragon.cli import main
from estragon.show.trajectory import write_trajectory
from tests.show.charts.live_metrics import write_live_metrics
from tests.show.charts.run_folder import read_rows, write_rows
from tests.show.staging import played, short_rules


def tiny_run(folder: Path) -> Path:
    """A run of two updates that has lengths of episodes and nothing else."""
    folder.mkdir(parents=True)
    rows = [{"agent_steps": 1000 * n, "duration_sec": 9.0 - n} for n in (1, 2)]
    write_rows(folder / "metrics.csv", rows)
    return folder


def plot(*words: str | Path) -> int:
    return main(["plot", *map(str, words)])


def test_lists_what_it_wrote_and_what_it_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, charts = tiny_run(tmp_path / "run"), tmp_path / "charts"
    assert plot("--run", run, "--output", charts) == 0
    said = capsys.readouterr()
    assert said.out == f"wrote {charts / 'length.png'}\n"
    assert "left out reward.png, win_rates.png, elo.png" in said.err
    assert f"left out places.png: no policies in {run / 'checkpoints'} yet" in said.err
    (charts / "mine.txt").write_text("mine")
    (charts / "elo.png").write_text("of another time")
    first = (charts / "length.png").read_bytes()
    assert plot("--run", run, "--output", charts) == 0
    said = capsys.readouterr()
    assert said.out == f"replaced {charts / 'length.png'}\n"
    assert "elo.png (the existing one is kept)" in said.err
    assert (charts / "length.png").read_bytes() == first
    assert (charts / "mine.txt").read_text() == "mine"
    assert (charts / "elo.png").read_text() == "of another time"


def test_takes_the_newest_run_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert plot() == 2
    assert "latest_run.txt" in capsys.readouterr().err
    tiny_run(Path("trainer", "logs", "run_7"))
    Path("trainer", "logs", "latest_run.txt").write_text("run_7\n")
    assert plot() == 0
    assert [path.name for path in Path("charts").iterdir()] == ["length.png"]
    monkeypatch.chdir("/")
    assert plot("--run", tmp_path, "--output", tmp_path / "again") == 0
    assert [path.name for path in (tmp_path / "again").iterdir()] == ["length.png"]


def test_takes_the_newest_metrics_where_no_run_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_live_metrics(Path("trainer", "logs", "metrics.csv"), episodes=5)
    assert plot() == 0
    assert Path("charts", "win_rates.png").is_file()


def test_several_runs_either_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two, three = (tiny_run(tmp_path / name) for name in ("one", "two", "three"))
    charts = tmp_path / "charts"
    assert plot("--run", one, two, "--run", three, "--output", charts) == 0
    together = (charts / "length.png").read_bytes()
    assert plot("--run", one, "--run", two, "--output", charts) == 0
    assert (charts / "length.png").read_bytes() != together
    metrics = [run / "metrics.csv" for run in (one, two, three)]
    assert plot("--metrics", *metrics, "--output", charts) == 0
    assert (charts / "length.png").read_bytes() == together
    capsys.readouterr()
    assert plot("--run", one, one) == 2
    assert "is given twice" in capsys.readouterr().err


def test_logged_matches_alone_need_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_trajectory(played(short_rules()), tmp_path / "logged")
    charts = tmp_path / "charts"
    assert plot("--trajectories", tmp_path / "logged", "--output", charts) == 0
    said = capsys.readouterr()
    assert said.out == f"wrote {charts / 'places.png'}\n"
    assert said.err == ""
    assert plot("--trajectories", tmp_path, "--output", charts) == 2
    assert "no logged matches" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="bash")
def test_the_script_takes_files_or_options(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "scripts" / "plot_metrics.sh"
    run = tiny_run(tmp_path / "my run")
    for words in ([run / "metrics.csv"], ["--run", run, "--output", "charts"]):
        done = subprocess.run(
            ["bash", script, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout == "replaced charts/length.png\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "metrics.csv is empty"),
        ("episode,reward_mean\n", "metrics.csv has no rows yet"),
        ("episode,reward_mean\n1,0.5\n2\n", "metrics.csv: line 3 has 1 cells, expected 2"),
        ("episode,reward_mean\n1,nan\n2,nan\n", "line 2, reward_mean: nan, and 1 more like it"),
        ("episode,reward_mean\n1,\n2,\n", "no numbers to draw in its columns episode, reward_mean"),
        ("episode,reward_mean\n1,high\n", "line 2, reward_mean: expected a number, got 'high'"),
        ("episode,weather\n1,3\n", "no numbers to draw in its columns episode, weather"),
        ("day,weather\n1,3\n", "line 1: expected a header with a column 'agent_steps' or"),
        ("<html>\n<body>\n", "line 1: expected a header"),
    ],
)
def test_a_file_that_cannot_be_drawn_is_one_line(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text(text)
    assert plot("--metrics", path, "--output", tmp_path / "charts") == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("estragon: ")
    assert says in said
    assert str(path) in said
    assert not (tmp_path / "charts").exists()


def test_a_cut_line_and_a_nan_are_noted_and_the_rest_is_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_live_metrics(tmp_path / "live.csv", episodes=30)
    rows = read_rows(path)
    rows[20]["value_loss"] = "nan"
    write_rows(path, rows)
    path.write_bytes(path.read_bytes()[:-40])
    assert plot("--metrics", path, "--output", tmp_path / "charts") == 0
    said = capsys.readouterr().err
    assert f"note: {path}: line 31 is not finished and left out\n" in said
    assert f"note: {path}: line 22, value_loss: nan left out\n" in said
    assert (tmp_path / "charts" / "value_loss.png").is_file()
