"""The page in a real Chromium, served by the real program."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from estragon.controller.project import Project
from estragon.controller.sessions import Sessions
from estragon.show.frames import mp4_writer
from estragon.trainers.metrics import line_of
from tests.controller.staging import Server, environment, serving
from tests.controller.visiting import visiting

pytestmark = pytest.mark.slow
EVIL = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>"
TABS = ("Home", "Train", "Metrics", "Matches", "Export")
QUICK = (
    ["Train", "Metrics", "Home"],
    ["Export", "Matches", "Metrics", "Train"],
    ["Matches", "Export", "Home", "Train", "Metrics", "Home"],
)
CLICK = """names => {
    const tabs = [...document.querySelectorAll("[role=tab]")];
    for (const name of names) tabs.find(tab => tab.innerText.includes(name)).click();
}"""
SHOWN = """names => {
    const tabs = [...document.querySelectorAll("[role=tab][aria-selected=true]")];
    const panels = [...document.querySelectorAll("[data-tab]")].filter(each => each.offsetParent);
    return tabs.length == 1 && tabs[0].innerText.includes(names[0])
        && panels.map(each => each.dataset.tab).join() == names[0];
}"""


def test_a_demo_is_watched_and_found_again_after_a_kill(tmp_path: Path, browser: Browser) -> None:
    with serving(tmp_path) as server, visiting(browser, server) as visit:
        for name in TABS:
            visit.tab(name)  # empty states, none fails
        visit.tab("Home")
        visit.page.get_by_label("Name").fill("Rolling")
        visit.click("Create")
        visit.sees("· Rolling")
        visit.page.keyboard.press("2")
        visit.sees("Nothing was started yet")
        visit.page.keyboard.press("d")
        visit.sees_status("running")
        visit.sees("Episode 20: reward=")
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
        assert Sessions(Project(server.root / "rolling")).running()
    # The run goes on; another controller shows it.
    with serving(tmp_path) as server, visiting(browser, server) as visit:
        visit.sees_status("finished")
        visit.tab("Metrics")
        visit.sees("20 points drawn")
        rows = visit.page.locator("tbody tr")
        assert rows.first.inner_text().split()[:2] == ["20", "20,000"]
        folder = server.root / "rolling"
        assert json.loads((folder / ".rlcontroller" / "project.json").read_text())["name"]
        second = subprocess.run(
            [sys.executable, "-m", "estragon", "ui", "--no-browser"],
            env=environment() | {"ESTRAGON_HOME": str(server.home)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert second.stderr == f"the controller is open already: {server.url}\n"
        assert second.returncode == 0


def test_the_last_of_several_quick_clicks_counts(server: Server, browser: Browser) -> None:
    server.workspace.use(Project.create(server.root / "quick", "Quick", "orchard"))
    with visiting(browser, server) as visit:
        visit.page.get_by_text("· Quick").wait_for()
        for names in QUICK:
            visit.page.evaluate(CLICK, names)  # faster than the page answers
            for _ in range(2):  # and it stays
                visit.page.wait_for_function(SHOWN, arg=[names[-1]])
                visit.page.wait_for_timeout(300)


def test_the_token_can_be_pasted(server: Server, browser: Browser) -> None:
    context = browser.new_context()
    with contextlib.closing(context):
        page = context.new_page()
        page.goto(server.url)
        for token in ("wrong", server.token):
            page.locator("input[name=token]").fill(token)
            page.get_by_role("button", name="Open").click()
            page.get_by_text("not the token" if token == "wrong" else "Projects").wait_for()
        (cookie,) = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")


def test_a_film_is_played(server: Server, browser: Browser) -> None:
    project = Project.create(server.root / "film", "Film", "orchard")
    with mp4_writer(project.path / "learn_progress-1.mp4", (64, 64), 30) as write:
        for frame in range(90):
            write(bytes([frame * 2]) * (64 * 64 * 3))
    server.workspace.use(project)
    with visiting(browser, server) as visit:
        visit.tab("Matches")
        visit.sees("learn_progress-1.mp4")
        visit.page.evaluate("document.querySelector('video').play()")
        visit.page.wait_for_function("document.querySelector('video').currentTime > 0.5")
        found = visit.page.evaluate(
            "(() => { const v = document.querySelector('video');"
            " return [v.readyState >= 3, v.duration, v.videoWidth, v.error] })()"
        )
        assert found == [True, 3.0, 64, None]


def test_nothing_of_a_run_is_markup(server: Server, browser: Browser) -> None:
    project = Project.create(server.root / "evil", EVIL, "orchard")
    runs = project.folder / "runs"
    runs.mkdir()
    stem = "20260101-000000_evil"
    about = {"name": EVIL, "status": EVIL, "backend": "sb3", "folder": EVIL, "pid": 0}
    (runs / f"{stem}.json").write_text(json.dumps(about))
    metric = {"timesteps_total": 1, "episode_reward_mean": 1.0, "lesson_name": EVIL}
    metric["policies"] = {EVIL.replace("/", ""): {"reward_mean": 1.0}}
    lines = json.dumps(metric) + "\n" + json.dumps(metric | {"timesteps_total": 2}) + "\n"
    (runs / f"{stem}.metrics.jsonl").write_text(lines)
    probe = {"warnings": [EVIL], "error": EVIL, "agents": EVIL, "spaces": [{"policy": EVIL}]}
    (project.folder / "probe.json").write_text(json.dumps(probe))
    session = project.folder / "sessions" / "20260101-000000_x"
    session.mkdir(parents=True)
    (session / "lock").touch()
    (session / "exit.json").write_text('{"code": 1}')
    (session / "log.txt").write_text(f"{EVIL}\n{line_of(metric)}\n")
    words = {"id": session.name, "name": EVIL, "words": ["demo", EVIL], "created": EVIL}
    (project.folder / "sessions.json").write_text(json.dumps([words]))
    for suffix in (".onnx", ".mp4"):
        (project.path / f"{EVIL.replace('/', '')}{suffix}").touch()
    (project.path / "link.mp4").symlink_to("/etc/passwd")
    (project.path / "link.onnx").symlink_to("/etc/passwd")
    server.workspace.use(project)
    with visiting(browser, server) as visit:
        for name in TABS:
            visit.tab(name)
            panel = visit.page.locator(f"[data-tab={name}]")
            panel.get_by_text("onerror").first.wait_for()
            assert panel.get_by_text("link.").count() == 0
            if name == "Metrics":
                visit.page.locator("canvas").first.hover()
                visit.page.wait_for_timeout(1500)
            if name == "Matches":
                source = str(visit.page.locator("video").get_attribute("src"))
                assert (server.ask(source), server.ask(source, server.cookie)) == (401, 200)
        assert visit.page.evaluate("window.hacked") is None
        assert visit.page.locator("img[src=x]").count() == 0


def test_problems_are_told_and_the_phone_works(
    server: Server, browser: Browser, tmp_path: Path
) -> None:
    gone, bad, _ = (
        server.workspace.use(Project.create(server.root / name, name, "orchard"))
        for name in ("gone", "bad", "good")
    )
    settings = server.workspace.folder / "settings.json"
    server.workspace.remember(tab="Home")
    (bad.folder / "project.json").write_text("{")
    gone.path.rename(tmp_path / "elsewhere")
    with visiting(browser, server, 390, 800) as visit:
        visit.sees("project.json is not valid JSON")
        visit.sees("is missing; restore it, or forget the project")
        for name in TABS:
            visit.tab(name)
            visit.page.wait_for_timeout(300)
            wide = visit.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 390, f"{name} is {wide} pixels wide"
        visit.tab("Home")
        folder = visit.page.get_by_label("Folder").first
        for text in ("../x", "/etc", "good"):
            folder.fill(text)
            visit.click("Create")
        visit.sees("'..' is not allowed")
        visit.sees("'/etc' is outside")
        visit.sees("exists already")
        before = visit.page.evaluate("document.body.classList.contains('body--dark')")
        visit.click("light or dark")
        visit.page.wait_for_function(
            "was => document.body.classList.contains('body--dark') !== was", arg=before
        )
        assert json.loads(settings.read_text())["dark"] is not before
        visit.page.reload()
        visit.page.get_by_role("tab", name="Home").wait_for()
        visit.page.wait_for_function(
            "was => document.body.classList.contains('body--dark') !== was", arg=before
        )
