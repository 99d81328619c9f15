"""The long runs behind the claims about live training, all with real Godot."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from estragon.selfplay.checkpoint import TagRun
from estragon.tag.matches import wilson_interval
from estragon.tag.rules import load_rules
from tests.live.staging import ESTRAGON, Command
from tests.live.storm import resident_mb, weather
from tests.live.test_live import game_pids, metrics, wait_for
from tests.prove import Recorder, run_folder

SIZE = load_rules().observation.size
MATCHES = 500
MOST_GROWTH_MB = 24.0
SOAK_SEC = 600.0
SETTLED_SEC = 120.0
LIVE_SEC = 900
WARM_SEC = 600


def strength(folder: Path, seeker: str, hider: str) -> tuple[float, int]:
    """How often the seeker wins in Godot, and of how many matches."""
    words = ["eval", "tag", "--seeker", seeker, "--hider", hider, "--engine", "godot"]
    file = folder / "eval.json"
    words += ["--episodes", str(MATCHES), "--seed", "123456", "--json", str(file)]
    subprocess.run([*ESTRAGON, *words], cwd=folder, check=True, capture_output=True)
    found = json.loads(file.read_text())
    return float(found["seeker_win_rate"]), int(found["episodes"])


def strengths(folder: Path, stem: str) -> dict[str, float]:
    """Both roles of a policy against the bots, in Godot."""
    seeker, _ = strength(folder, f"{stem}_seeker.npz", "bot:evader")
    hider, _ = strength(folder, "bot:chaser", f"{stem}_hider.npz")
    return {"seeker tags evader": seeker, "hider survives chaser": 1.0 - hider}


def live(folder: Path, *words: str) -> list[str]:
    return [*ESTRAGON, "live", *words, "--port", "0"]


@pytest.mark.prove
def test_self_play_from_scratch_learns(record_result: Recorder) -> None:
    folder = run_folder("live")
    folder.mkdir(parents=True, exist_ok=True)
    script = Path(__file__).resolve().parents[2] / "scripts" / "train.sh"
    env = os.environ | {"AI_TRAIN_DURATION": str(LIVE_SEC)}
    words = ["bash", str(script), "self-play", "--output", str(folder), "--port", "0"]
    subprocess.run(words, cwd=folder, env=env, check=True)
    run = TagRun.find(folder, "latest")
    (first_seeker,) = (run.path / "checkpoints").glob("seeker_00000.npz")
    (first_hider,) = (run.path / "checkpoints").glob("hider_00000.npz")
    for role, first in (("seeker", first_seeker), ("hider", first_hider)):
        (folder / f"before_{role}.npz").write_bytes(first.read_bytes())
    before, after = strengths(folder, "before"), strengths(folder, "trainer/policy")
    rows = metrics(folder)
    held = all(
        after[name] - before[name] >= 0.20 or after[name] >= 0.80 for name in before
    ) and not game_pids(folder)
    shown = ", ".join(f"{name} {before[name]:.1%} → {after[name]:.1%}" for name in before)
    text = (
        f"{LIVE_SEC} s: {shown} ({MATCHES} matches each, in Godot), {len(rows):,} episodes, "
        f"{int(float(rows[-1]['agent_steps'])):,} agent-steps"
    )
    record_result("live self-play from scratch", text, held=held)
    assert held, text


@pytest.mark.prove
def test_a_warm_start_stays_strong(record_result: Recorder) -> None:
    folder = run_folder("warm")
    embedded = folder / "embedded"
    if not (embedded / "trainer" / "policy.pt").is_file():
        train = ["train", "tag", "--steps", "15000000", "--no-film", "--probe-steps", "0"]
        subprocess.run([*ESTRAGON, *train, "--output", str(embedded)], check=True)
    policy = embedded / "trainer" / "policy"
    words = ["self-play", "--seconds", str(WARM_SEC), "--warm-start", f"{policy}.pt"]
    subprocess.run([*live(folder, *words), "--output", str(folder)], check=True)
    before, after = strengths(folder, str(policy)), strengths(folder, "trainer/policy")
    shown = []
    held = True
    for name, old in before.items():
        low, high = wilson_interval(after[name], MATCHES)
        held = held and high >= old
        shown.append(f"{name} {old:.1%} → {after[name]:.1%} (95% {low:.0%} to {high:.0%})")
    text = f"{WARM_SEC} s: {', '.join(shown)}; {MATCHES} matches each, in Godot"
    record_result("live training from a warm start", text, held=held)
    assert held, text


class GodotThatTrains:
    """The player of a storm: a real game, whose episodes keep coming."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._seen, self._since = folder, 0, time.monotonic()

    def check(self) -> str:
        count = len(metrics(self._folder))
        if count > self._seen:
            self._seen, self._since = count, time.monotonic()
        assert time.monotonic() - self._since < 120.0, "no episodes any more"
        return f"{count:,} episodes of a real game learned from meanwhile"


@pytest.mark.prove
def test_a_storm_on_a_server_that_trains_a_real_game(
    tmp_path: Path, record_result: Recorder
) -> None:
    with Command(live(tmp_path, "seeker", "--arenas", "8", "--seconds", "7200"), tmp_path) as run:
        port = run.port()
        wait_for(lambda: len(metrics(tmp_path)) > 0, "episodes")
        (game,) = game_pids(tmp_path)
        player = GodotThatTrains(tmp_path)
        told, grown = weather(port, run.process.pid, player, frames=20_000, drops=50, size=SIZE)
        assert game_pids(tmp_path) == [game], "the game plays on"
    (log,) = (tmp_path / "debug").glob("*/server.log")
    calm = "Traceback" not in log.read_text()
    held = calm and grown < MOST_GROWTH_MB
    record_result("live: a storm of bad frames while a real game trains", told, held=held)
    assert held, told


@pytest.mark.prove
def test_memory_stays_flat(tmp_path: Path, record_result: Recorder) -> None:
    with Command(live(tmp_path, "seeker", "--arenas", "32", "--seconds", "7200"), tmp_path) as run:
        wait_for(lambda: len(metrics(tmp_path)) > 0, "episodes")
        (game,) = game_pids(tmp_path)
        time.sleep(SETTLED_SEC)
        before = [resident_mb(run.process.pid), resident_mb(game)]
        time.sleep(SOAK_SEC)
        after = [resident_mb(run.process.pid), resident_mb(game)]
        assert game_pids(tmp_path) == [game]
    text = (
        f"32 arenas for {SOAK_SEC:.0f} s: server {before[0]:.0f} → {after[0]:.0f} MB, Godot "
        f"{before[1]:.0f} → {after[1]:.0f} MB, {len(metrics(tmp_path)):,} episodes"
    )
    held = all(new - old < MOST_GROWTH_MB for new, old in zip(after, before, strict=True))
    record_result("live: memory stays flat", text, held=held)
    assert held, text
