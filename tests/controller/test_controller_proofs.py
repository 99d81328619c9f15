"""What the controller promises: a whole day's work in a browser, and what a page costs."""

import contextlib
import json
import os
import signal
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from estragon.controller.project import Project
from estragon.controller.sessions import Sessions
from estragon.trainers.metrics import Counters, Episodes, iteration_metric, without_nan
from tests.controller.staging import serving
from tests.controller.visiting import Visit, visiting
from tests.prove import DONE, Recorder

pytestmark = pytest.mark.prove
ROWS = 100_000
TRIES = 5
BLOCK_SEC, BLOCKS = 5.0, 50
FIRST_PAGE_SEC, OPEN_SEC, MOST_COST = 3.0, 1.0, 0.03


def rewards(project: Project) -> list[float]:
    """The rewards of the latest run that has any."""
    for path in sorted((project.folder / "runs").glob("*.metrics.jsonl"), reverse=True):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        found = [row["episode_reward_mean"] for row in rows]
        if any(each is not None for each in found):
            return [each for each in found if each is not None]
    return []


def cpu_sec_of(pid: int) -> float:
    """Processor time of a process so far, all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def shoot(visit: Visit, name: str) -> None:
    """A picture, light and dark, to look at."""
    folder = DONE / "controller"
    folder.mkdir(parents=True, exist_ok=True)
    for theme in ("light", "dark"):
        is_dark = visit.page.evaluate("document.body.classList.contains('body--dark')")
        if is_dark != (theme == "dark"):
            visit.click("light or dark")
            visit.page.wait_for_timeout(800)
        visit.page.evaluate("window.scrollTo(0, 0)")
        visit.page.screenshot(path=folder / f"{name}_{theme}.png")


def test_from_an_example_to_a_match(
    tmp_path: Path, browser: Browser, record_result: Recorder
) -> None:
    with serving(tmp_path) as server, visiting(browser, server) as visit:
        page = visit.page
        page.set_default_timeout(300_000)
        page.get_by_label("Name").fill("Marble")
        visit.click("Create")
        visit.sees("· Marble")
        visit.click("Probe")
        visit.sees("agent-steps/s")
        shoot(visit, "home")
        visit.tab("Train")
        page.get_by_label("timesteps").fill("20000")
        page.get_by_text("Hyperparameters").click()
        page.get_by_label("n_steps", exact=True).fill("64")
        visit.click("Start")
        visit.sees_status("running")
        project = Project(server.root / "marble")
        while len(rewards(project)) < 4:
            page.wait_for_timeout(500)
        visit.tab("Metrics")
        visit.sees("points drawn")
        visit.tab("Train")
        visit.click("Stop")
        visit.sees_status("stopped")
        stopped = rewards(project)
        visit.click("Resume")
        visit.sees_status("running")
        visit.sees_status("finished", 2)  # and the probe
        shoot(visit, "train")
        resumed = rewards(project)
        runs = [json.loads(path.read_text()) for path in (project.folder / "runs").glob("*_*.json")]
        steps = max(run["timesteps"] for run in runs)
        assert [run["status"] for run in runs].count("finished") == 1
        visit.tab("Metrics")
        page.get_by_text("points drawn").wait_for()
        page.wait_for_timeout(2000)
        shoot(visit, "metrics")
        visit.tab("Export")
        visit.click("Export")
        visit.sees("export: finished")
        (model,) = project.path.glob("policies/*.onnx")
        visit.sees("acts like the model")
        page.get_by_text("quantize to int8, too").click()
        visit.click("Export")
        visit.sees(".int8.onnx ·")
        visit.click("Distill")
        visit.sees("-32x32.onnx ·")
        visit.sees("distill: finished")
        (quantized,), (distilled,) = (
            project.path.glob(f"policies/*{ending}.onnx") for ending in (".int8", "-32x32")
        )
        visit.tab("Matches")
        visit.click("Play the latest policies")
        visit.sees("ended by")
        page.wait_for_timeout(1500)
        first = page.locator("canvas").first.screenshot()
        page.wait_for_timeout(1000)
        assert page.locator("canvas").first.screenshot() != first
        shoot(visit, "matches")
    grew = statistics.mean(resumed[-3:]) - stopped[0]
    record_result(
        "Controller: a project from an example, in Chromium",
        f"probed; PPO stopped, resumed and finished at {steps:,} steps; reward {stopped[0]:.2f} to "
        f"{statistics.mean(resumed[-3:]):.2f}; ONNX of {model.stat().st_size / 1e3:.0f} kB acts "
        f"like the model, {quantized.stat().st_size / 1e3:.0f} kB in int8, "
        f"{distilled.stat().st_size / 1e3:.0f} kB distilled; a match seen in 3D; no request to "
        "another host",
        held=grew > 0.5 and steps >= 20_000,
    )
    assert grew > 0.5


def test_how_long_it_takes_to_open(
    tmp_path: Path, browser: Browser, record_result: Recorder
) -> None:
    project = Project.create(tmp_path / "game", "Long", "orchard")
    runs = project.folder / "runs"
    runs.mkdir()
    with (runs / "20260101-000000_long.metrics.jsonl").open("w") as stream:
        for row in range(ROWS):
            episodes = {name: Episodes([row % 97 / 97, 1.0], [10, 20]) for name in ("a", "b")}
            stats = {name: {"policy_loss": 0.1, "entropy": 1.0} for name in episodes}
            counters = Counters(row, row * 100, row * 100, row * 4)
            metric = iteration_metric(
                counters, episodes, stats, env_steps=100, seconds=0.1, total_seconds=row * 0.1
            )
            stream.write(json.dumps(without_nan(metric)) + "\n")
    about = {"name": "long", "status": "finished", "backend": "sb3", "folder": "logs"}
    (runs / "20260101-000000_long.json").write_text(json.dumps(about))
    first, opened, first_cpu, opened_cpu = [], [], [], []
    for _ in range(TRIES):
        with serving(tmp_path, str(project.path)) as server:
            begun = time.monotonic()
            with visiting(browser, server) as visit:
                first.append(server.seconds + time.monotonic() - begun)
                first_cpu.append(cpu_sec_of(server.process.pid))
                visit.page.wait_for_timeout(1500)
                begun, before = time.monotonic(), cpu_sec_of(server.process.pid)
                visit.tab("Metrics")
                visit.sees("1,000 points drawn")
                opened.append(time.monotonic() - begun)
                opened_cpu.append(cpu_sec_of(server.process.pid) - before)
                visit.tab("Home")
    held = statistics.median(first) < FIRST_PAGE_SEC and statistics.median(opened) < OPEN_SEC
    record_result(
        "Controller: time to open",
        f"first page after {statistics.median(first):.2f} s from the start of the process (best "
        f"{min(first):.2f}; processor time {statistics.median(first_cpu):.2f}); a run of {ROWS:,} "
        f"rows in {statistics.median(opened):.2f} s (best {min(opened):.2f}; processor time "
        f"{statistics.median(opened_cpu):.2f}); medians of {TRIES}",
        held=held,
    )


@contextlib.contextmanager
def paused(pids: list[int]) -> Iterator[None]:
    """Processes that stand still meanwhile."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def browser_pids() -> list[int]:
    """The processes of the test's browser."""
    told = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,args="], check=True, capture_output=True, text=True
    )
    rows = [line.split(maxsplit=2) for line in told.stdout.splitlines()]
    found = {os.getpid()}
    for pid, parent, _ in rows:  # in the order of their start
        if int(parent) in found:
            found.add(int(pid))
    return [int(pid) for pid, _, words in rows if int(pid) in found and "chrom" in words]


def test_what_a_page_costs_the_trainer(
    tmp_path: Path, browser: Browser, record_result: Recorder
) -> None:
    """The same page of the same run lives and stands still in turns, so that no drift counts."""
    project = Project.create(tmp_path / "game", "Cost", "marble")
    sessions = Sessions(project)
    words = ["train", "sb3", "--env_path=.", "--n_steps=16", "--timesteps=100000000"]
    session = sessions.add("cost", words)
    path = project.folder / "runs"

    def last_row() -> tuple[float, int]:
        line = next(path.glob("*.metrics.jsonl")).read_bytes().splitlines()[-1]
        row = json.loads(line)
        return row["time_total_s"], row["timesteps_total"]

    def speed() -> float:
        begin = last_row()
        time.sleep(BLOCK_SEC)
        end = last_row()
        return (end[1] - begin[1]) / (end[0] - begin[0])

    try:
        deadline = time.monotonic() + 120.0
        while not list(path.glob("*.metrics.jsonl")):
            assert time.monotonic() < deadline
            time.sleep(0.5)
        with serving(tmp_path, str(project.path)) as server, visiting(browser, server) as visit:
            visit.tab("Metrics")
            visit.sees("points drawn")
            page = [server.process.pid, *browser_pids()]
            speed()  # warm up
            costs, uses = [], []
            for _ in range(BLOCKS):
                before = sum(map(cpu_sec_of, page))
                begin = speed()
                with paused(page):
                    alone = speed() + speed()
                end = speed()
                uses.append((sum(map(cpu_sec_of, page)) - before) / (2 * BLOCK_SEC))
                costs.append(1.0 - (begin + end) / alone)
            points = visit.page.get_by_text("points drawn").inner_text()
    finally:
        sessions.stop(session)
        while sessions.status(session) == "running":
            sessions.tick()
            time.sleep(0.5)
    cost = statistics.mean(costs)
    half = 1.96 * statistics.stdev(costs) / len(costs) ** 0.5
    record_result(
        "Controller: cost of an open page",
        f"{cost:.1%} (±{half:.1%}) of the speed of SB3 PPO on Marble, with a live chart in "
        f"Chromium on the same machine ({points}); mean of {BLOCKS} times {4 * BLOCK_SEC:.0f} s, "
        f"half of them with controller and browser standing still; these use "
        f"{statistics.mean(uses):.1%} of one core",
        held=cost < MOST_COST,
    )
