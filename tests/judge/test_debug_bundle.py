"""Debug bundles: complete, bounded, without secrets, and never stopped by a missing file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from estragon import __version__
from estragon.cli import main
from estragon.judge.debug_bundle import (
    ALL_VIDEOS,
    HIDDEN,
    LARGEST_LOG,
    LARGEST_POLICY,
    LARGEST_VIDEO,
    NEWEST_TRAJECTORIES,
    Redactor,
)
from estragon.support import paths

SECRET = "s3cr3t-Value.42"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, and no user folders but its own."""
    for name in ("AI_DATA_ROOT", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "ESTRAGON_HOME", "APPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("GODOT_BIN", str(tmp_path / "no-godot"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def written(path: str | Path, text: str = "x\n", *, age_sec: float = 0.0) -> Path:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (1e9 - age_sec, 1e9 - age_sec))
    return path


def trained() -> None:
    """What a run leaves."""
    run = Path("trainer", "logs", "runs", "ppo", "one")
    for name in ("metrics.csv", "metadata.json", "strength.csv", "cross_play.json", "summary.json"):
        written(run / name, f"{name} of one\n")
    written("trainer/logs/latest_run.txt", "runs/ppo/one\n")
    written("trainer/logs/metrics.csv", "of somebody else\n")
    for name in ("policy", "policy_seeker", "policy_hider"):
        for suffix in (".npz", ".pt"):
            written(f"trainer/{name}{suffix}", name)


def files_in(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_everything_is_taken_along(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained()
    written("trainer/logs/server.log", "served\n")
    written("debug/20250101-000000/godot_round1.log", "round 1\n")
    for number in range(NEWEST_TRAJECTORIES + 2):
        written(f"data/trajectories/ep_{number}.jsonl", age_sec=number)
    for name in ("reward.png", "policy_loss.png"):
        written(f"charts/{name}", name)
    written("learn_progress-20250101-000000.mp4", "film")
    written("data/match.mp4", "frames")
    written("data/trajectories/ep_0.mp4", "episode")
    written("holiday.mp4", "private")
    assert main(["collect-debug"]) == 0
    (folder,) = [path for path in Path("debug").iterdir() if path.name != "20250101-000000"]
    assert files_in(folder) == [
        "charts/policy_loss.png",
        "charts/reward.png",
        "encodes/ep_0.mp4",
        "encodes/match.mp4",
        "films/learn_progress-20250101-000000.mp4",
        "logs/godot_round1.log",
        "logs/server.log",
        "metadata.txt",
        *(f"policies/{n}{s}" for n in ("policy",) for s in (".npz", ".pt")),
        *(f"policies/policy_{n}{s}" for n in ("hider", "seeker") for s in (".npz", ".pt")),
        "run/cross_play.json",
        "run/metadata.json",
        "run/metrics.csv",
        "run/strength.csv",
        "run/summary.json",
        *(f"trajectories/ep_{number}.jsonl" for number in range(NEWEST_TRAJECTORIES)),
    ]
    assert (folder / "run" / "metrics.csv").read_text() == "metrics.csv of one\n"
    assert (folder / "policies" / "policy_seeker.npz").read_text() == "policy_seeker"
    said = capsys.readouterr().out
    assert said.startswith(f"collected {len(files_in(folder))} files, 0.0 MB, in {folder}")
    assert "not found" not in said


def test_metadata_says_what_it_runs_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AI_RECORD_FPS", "30")
    monkeypatch.setenv("ESTRAGON_API_TOKEN", SECRET)
    monkeypatch.setenv("UNRELATED", "stays at home")
    assert main(["collect-debug", "bundle"]) == 0
    text = Path("bundle", "metadata.txt").read_text()
    assert f"estragon: {__version__} in {paths.PACKAGE}\n" in text
    assert f"python: {sys.version.split()[0]} " in text
    assert f"cores: {os.cpu_count()}\n" in text
    assert "numpy 2." in text
    assert f"godot: GODOT_BIN={os.environ['GODOT_BIN']} cannot be used" in text
    assert "  AI_RECORD_FPS=30\n" in text
    assert "  ESTRAGON_API_TOKEN=[redacted]\n" in text
    assert "UNRELATED" not in text
    assert SECRET not in text
    assert "git: " in text


def test_what_is_missing_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collect-debug", "bundle", "--server-log", "gone.log"]) == 0
    assert files_in(Path("bundle")) == ["metadata.txt"]
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("collected 1 files, ")
    for what in (
        "trainer/logs/metrics.csv",
        "trainer/policy_hider.pt",
        "gone.log",
        "any logs",
        "any trajectories",
        "any charts",
        "any films",
        "any encodes",
    ):
        assert f"not found: {what}" in said
    assert Path("bundle", "metadata.txt").read_text().splitlines()[-len(said) + 1 :] == said[1:]


def test_no_secret_gets_out(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", SECRET)
    trained()
    written("trainer/logs/runs/ppo/one/metadata.json", f'{{"api_key": "{SECRET}1", "seed": 3}}')
    written("data/trajectories/ep_1.jsonl", f'{{"note": "{SECRET}"}}\n')
    server = written("server.txt", f"listening\nAuthorization: Bearer {SECRET}\nready\n")
    godot = written("godot.txt", f"API token: {SECRET}\nready\n")
    words = ["--server-log", str(server), "--godot-log", str(godot)]
    assert main(["collect-debug", "bundle", *words]) == 0
    for name in files_in(Path("bundle")):
        assert SECRET.encode() not in Path("bundle", name).read_bytes(), name
    assert Path("bundle", "logs", "server.log").read_text().splitlines()[::2] == [
        "listening",
        "ready",
    ]
    assert '"seed": 3' in Path("bundle", "run", "metadata.json").read_text()


def test_long_logs_are_cut_and_large_policies_left_out(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained()
    with Path("trainer", "policy.pt").open("wb") as stream:
        stream.truncate(LARGEST_POLICY + 1)
    lines = [f"line {number}" for number in range(100_000)]
    log = written("long.txt", "\n".join(lines) + "\n")
    assert main(["collect-debug", "bundle", "--godot-log", str(log)]) == 0
    kept = Path("bundle", "logs", "godot.log").read_text().splitlines()
    assert sum(len(line) + 1 for line in kept) <= LARGEST_LOG
    assert kept[0] == lines[0]
    assert kept[1:] == lines[-len(kept) + 1 :]
    said = capsys.readouterr().out
    assert f"cut: {log}: " in said
    assert "left out: trainer/policy.pt: 16.0 MB, at most 16 MB fit" in said
    assert not Path("bundle", "policies", "policy.pt").exists()


def test_films_are_bounded_one_by_one_and_together(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = [LARGEST_VIDEO // 2, LARGEST_VIDEO + 1, LARGEST_VIDEO, LARGEST_VIDEO, 7]
    for age, size in enumerate(sizes):
        film = written(f"learn_progress-{age}.mp4", "", age_sec=age)
        with film.open("wb") as stream:
            stream.truncate(size)
        os.utime(film, (1e9 - age, 1e9 - age))
    assert main(["collect-debug", "bundle"]) == 0
    kept = [Path("bundle", "films", f"learn_progress-{number}.mp4") for number in (0, 2, 4)]
    assert sorted(Path("bundle", "films").iterdir()) == kept
    assert sum(film.stat().st_size for film in kept) <= ALL_VIDEOS
    left_out = [
        "left out: learn_progress-1.mp4: 32.0 MB, at most 32 MB fit",
        "left out: learn_progress-3.mp4: 32.0 MB, at most 16 MB fit",
    ]
    metadata = Path("bundle", "metadata.txt").read_text().splitlines()
    assert [line for line in metadata if line.startswith("left out")] == left_out
    assert set(left_out) <= set(capsys.readouterr().out.splitlines())


def test_what_lies_there_already_stays(here: Path) -> None:
    trained()
    written("bundle/metadata.txt", "mine\n")
    written("bundle/godot.log", "streamed here\n")
    assert main(["collect-debug", "bundle", "--godot-log", "bundle/godot.log"]) == 0
    assert Path("bundle", "metadata.txt").read_text() == "mine\n"
    assert "estragon: " in Path("bundle", "metadata-2.txt").read_text()
    assert not list(Path("bundle").glob("logs/*"))
    before = files_in(Path("bundle"))
    assert main(["collect-debug", "bundle"]) == 0
    assert set(before) < set(files_in(Path("bundle")))


def test_what_cannot_be_read_does_not_stop_the_rest(here: Path) -> None:
    trained()
    Path("trainer", "policy.npz").unlink()
    Path("trainer", "policy.npz").mkdir()
    written("trainer/logs/runs/ppo/one/summary.json").write_bytes(b"\xff\xfe not UTF-8")
    written("trainer/logs/latest_run.txt", "runs/ppo/one\n")
    assert main(["collect-debug", "bundle"]) == 0
    assert Path("bundle", "run", "summary.json").read_text().endswith(" not UTF-8")
    assert Path("bundle", "policies", "policy.pt").is_file()


def test_a_place_that_cannot_be_written_is_one_line(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written("taken")
    assert main(["collect-debug", "taken/bundle"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_needs_nothing_heavy(here: Path) -> None:
    script = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"numba", "torch", "gymnasium", "matplotlib", "PIL"}:
            raise ImportError(name)
sys.meta_path.insert(0, Absent())
from estragon.cli import main
sys.exit(main(["collect-debug", "bundle"]) or main(["migrate-user-data"]))
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert files_in(Path("bundle")) == ["metadata.txt"]


@pytest.mark.skipif(sys.platform == "win32", reason="bash")
def test_the_script_of_this_name(here: Path) -> None:
    trained()
    script = Path(__file__).parents[2] / "scripts" / "collect_debug_artifacts.sh"
    log = written("my server.txt", "served\n")
    done = subprocess.run(
        ["bash", str(script), "my bundle", "--server-log", str(log)],
        env=os.environ | {"AI_DATA_ROOT": str(here / "data")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert (here / "my bundle" / "logs" / "server.log").read_text() == "served\n"
    assert (here / "my bundle" / "run" / "metrics.csv").is_file()


@pytest.mark.parametrize(
    "text",
    [
        f"API_TOKEN={SECRET}",
        f"export my.api-key='{SECRET}'",
        f'{{"password": "{SECRET}", "speed": 8}}',
        f"Authorization: Bearer {SECRET}",
        f"sent with bearer {SECRET} to the game",
        f"the token is {SECRET}",
        f"token: {SECRET}",
        f"SECRET = {SECRET}",
        f"client_secret={SECRET}&user=me",
        f"git clone https://me:{SECRET}@example.org/x.git",
        f"credentials: {SECRET}",
    ],
)
def test_what_looks_like_a_secret_is_taken_out(text: str) -> None:
    cleaned = Redactor({}).clean(f"before\n{text}\nafter")
    assert SECRET not in cleaned
    assert HIDDEN in cleaned
    assert cleaned.startswith("before\n")
    assert cleaned.endswith("\nafter")


@pytest.mark.parametrize(
    "text",
    [
        "tick 12: Agent1 tags Agent2",
        "episode,reward_mean\n1,0.5\n",
        "http://127.0.0.1:8080/health",
        "A" * 300_000 + " " * 300_000 + "token" * 60_000 + " and " + "://" * 100_000,
        "ws://127.0.0.1:8765 opening handshake failed",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redactor({"API_TOKEN": SECRET}).clean(text) == text


def test_the_secrets_of_the_environment_are_found_anywhere() -> None:
    redactor = Redactor({"API_TOKEN": SECRET, "MY_KEY": SECRET + "-longer", "HOME": "/home/me"})
    cleaned = redactor.clean(f"/home/me says {SECRET} and {SECRET}-longer")
    assert cleaned == f"/home/me says {HIDDEN} and {HIDDEN}"


def test_short_values_are_not_looked_for() -> None:
    assert Redactor({"API_KEY": "1"}).clean("episode 1 of 11") == "episode 1 of 11"


def test_variables() -> None:
    redactor = Redactor({})
    assert redactor.variable("AI_RECORD", "1") == "AI_RECORD=1"
    assert redactor.variable("ESTRAGON_API_KEY", "x") == f"ESTRAGON_API_KEY={HIDDEN}"
    assert SECRET not in redactor.variable("AI_URL", f"https://me:{SECRET}@host")
