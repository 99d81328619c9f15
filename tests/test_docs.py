"""Every command and example in README and docs runs, and every link leads somewhere."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from estragon.cli import VERBS, main
from estragon.envs.connection import ENV_INFO
from estragon.envs.wire import read_agents
from estragon.godot.process import GodotProcess
from estragon.godot.project import import_project
from estragon.live.protocol import Hello, read_message
from estragon.selfplay import session
from estragon.selfplay.evaluation import StageEvaluator
from estragon.show.charts.occupancy import occupancy_of_run
from estragon.spacetime.config import RLConfig
from estragon.support import paths
from estragon.tag.layout import load_layout
from estragon.tag.rules import load_rules
from tests.selfplay.staging import few_charts

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "REWARD_NOTES.md"]
PAGES += sorted((ROOT / "docs").glob("*.md"))
RUN_ELSEWHERE = {
    "make test": "this very run",
    "make check": "runs beside this in CI",
    "make bench": "tests/judge/test_bench.py",
    "make prove": "the long runs",
    "estragon play": "tests/commands/test_play.py",
    "estragon ui": "tests/controller/test_page.py",
    "AI_TRAIN_DURATION=60 bash scripts/train.sh self-play": "tests/live/test_live.py",
}
LONG_PAGES = ("rllib.md", "scenes.md", "training.md", "vr_navigation.md")
"""Whose commands take minutes; what they do is tested elsewhere, too."""
OF_THE_CHECKOUT = (
    "make",
    "python scripts/",
    "estragon godot import godot",
    "estragon godot probe godot",
    "estragon train sb3",
    "estragon train rllib",
    "estragon eval game",
    "estragon export tag godot",
    "estragon onnx bench godot",
    "estragon distill godot",
    "estragon judge",
)
BIN = Path(sys.executable).parent
A_SHORT_RUN = "--steps 20000 --arenas 512 --horizon 16 --no-film --probe-steps 0"
"""As in shipping.md: it is trained once for both."""
SHORT = {"--seconds": "0.5", "--episodes": "8", "--minutes": "0.1"}
"""Values that only say how long something takes."""


def words_of(command: str, folder: Path) -> list[str]:
    """The command as a shell would read it; it is short and stays out of the checkout."""
    words = [
        str(folder / word) if word in ("probe.json", "runs") or word.startswith("runs/") else word
        for word in shlex.split(command)
    ]
    for index, option in enumerate(words[:-1]):
        if option in SHORT and float(words[index + 1]) > float(SHORT[option]):
            words[index + 1] = SHORT[option]
    if words[:2] == ["make", "train"]:
        arguments = words[2].removeprefix("ARGS=") if words[2:] else A_SHORT_RUN
        words = [*behind_make([*words[:2], f"ARGS={arguments}"]), "--output", str(folder)]
    return words


def blocks(language: str) -> list[tuple[str, str]]:
    """All fenced blocks of a language: page and text."""
    found = []
    for page in PAGES:
        text = page.read_text()
        matches = re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        found += [(page.name, block) for block in matches]
    return found


def commands() -> list[ParameterSet]:
    """The shell commands of each page, in order."""
    pages: dict[str, list[str]] = {}
    for name, block in blocks("sh"):
        lines = block.replace("\\\n", " ").splitlines()
        pages.setdefault(name, []).extend(line.strip() for line in lines if line.strip())
    return [
        pytest.param(*page, marks=[pytest.mark.prove] if page[0] in LONG_PAGES else [])
        for page in pages.items()
    ]


@pytest.fixture(scope="module")
def trained() -> dict[str, Path]:
    """The folders of the runs so far, by command."""
    return {}


@pytest.mark.parametrize(("page", "lines"), commands(), ids=lambda value: str(value)[:20])
def test_every_command_runs(
    page: str,
    lines: list[str],
    trained: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(session, "StageEvaluator", partial(StageEvaluator, matches=16))
    monkeypatch.setattr(session, "STAGES", (0.0, 1.0))
    monkeypatch.setattr("estragon.show.charts.draw.all_charts", few_charts)
    monkeypatch.setattr(
        "estragon.show.charts.draw.occupancy_of_run", partial(occupancy_of_run, matches=16)
    )
    for line in lines:
        command = line.split("#")[0].strip().replace(".venv/bin/", "")
        if command in RUN_ELSEWHERE:
            continue
        known = ("estragon ", "make ", "python ")
        assert command.startswith(known) or command == "make", f"{page}: who tests '{command}'?"
        monkeypatch.chdir(ROOT if command.startswith(OF_THE_CHECKOUT) else tmp_path)
        if command.startswith("make") and shutil.which("make") is None:
            pytest.skip("no make here")
        words = words_of(command, tmp_path)
        key = " ".join(words[:-1]) if words[1:3] == ["train", "tag"] else ""
        if key in trained:
            shutil.copytree(trained[key], tmp_path, dirs_exist_ok=True)
            continue
        status = run(words)
        said = "".join(capfd.readouterr())
        assert status == 0, f"{page}: '{command}'\n{said}"
        if key:
            trained[key] = tmp_path


def run(words: list[str]) -> int:
    """Carry out a command; ours in this very process, which has loaded everything already."""
    if words[0] == "estragon":
        return main(words[1:])
    return subprocess.run(words, check=False, timeout=300).returncode


def behind_make(words: list[str]) -> list[str]:
    """What a make target does when everything is set up."""
    dry = [words[0], "-n", "--no-print-directory", *words[1:]]
    shown = subprocess.run(dry, cwd=ROOT, check=True, capture_output=True, text=True)
    program, *rest = shlex.split(shown.stdout.splitlines()[-1])
    assert program == ".venv/bin/estragon"
    return ["estragon", *rest]


@pytest.mark.parametrize(("page", "code"), blocks("python"), ids=lambda value: value[:20])
def test_every_example_runs(
    page: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, which has loaded the libraries already; warnings are errors here, too."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    exec(compile(code, page, "exec"), names)  # noqa: S102 - the code is ours
    assert len(names) > 2, f"{page}: an example that defines nothing"


@pytest.mark.parametrize(("page", "code"), blocks("gdscript"), ids=lambda value: value[:20])
def test_every_script_is_understood_by_godot(page: str, code: str, tmp_path: Path) -> None:
    script = tmp_path / "example.gd"
    script.write_text(code if code.startswith("extends") else f"extends Node\n{code}")
    project = str(import_project(paths.godot_project()))
    words = ["--headless", "--path", project, "--check-only"]
    with GodotProcess([*words, "--script", str(script)], folder=tmp_path) as process:
        assert process.wait("the check", 60.0) == 0, f"{page}\n{process.lines()}"


def test_every_example_in_json_is_what_the_page_says(tmp_path: Path) -> None:
    layouts = messages = 0
    for page, text in blocks("json"):
        if page == "http_api.md":
            continue  # tests/spacetime/test_http_api.py compares them with the OpenAPI file
        if "boxes" in json.loads(text):
            path = tmp_path / f"{page}.json"
            path.write_text(text)
            load_layout(str(path), load_rules())
            layouts += 1
        elif "protocol" in json.loads(text):
            messages += 1
            assert isinstance(read_message(text), Hello)
        elif "encoding" in json.loads(text):
            space = {"move": {"size": 5, "action_type": "discrete"}}
            info = {"type": "env_info", "observation_space": [{}, {}], "action_space": [space, {}]}
            said = json.dumps(info | json.loads(text)).encode()
            assert len(read_agents(ENV_INFO.decode(said))) == 2
        elif "training" in json.loads(text):
            RLConfig.from_dict(json.loads(text))
        elif page == "http_api.md":
            pass  # tests/spacetime asks a real game
        else:
            pytest.fail(f"{page}: what is this? {text}")
    assert layouts
    assert messages == 2


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        file, _, heading = target.partition("#")
        linked = page.parent / file if file else page
        assert linked.exists(), target
        if heading:
            headings = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", text).lower().replace(" ", "-") for text in headings}
            assert heading in slugs, target


def test_every_place_named_in_the_architecture_exists() -> None:
    """`path` or `path: name`, where the name is defined in that file."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = re.findall(r"`((?:src|godot|tests|docs)/[\w./]+)(?:: (\w+))?`", text)
    assert len(named) > 50
    for path, name in named:
        place = ROOT / path
        assert place.exists(), path
        if name:
            defined = re.search(
                rf"\b(?:def|class|func|var) {name}\b|^{name}\b", place.read_text(), re.MULTILINE
            )
            assert defined, f"{path}: {name}"


def named_commands() -> dict[tuple[str, ...], list[tuple[str, str]]]:
    """Commands within sentences and tables: the verb, then pages and the options they give it."""
    found: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for command in re.findall(r"`estragon ([a-z][^`]*)`", text):
            words = command.split()
            verb = next((tuple(words[:n]) for n in (2, 1) if tuple(words[:n]) in VERBS), None)
            if verb is None:
                assert any(known[0] == words[0] for known in VERBS), f"{page.name}: {command}"
                continue
            options = re.findall(r"(?<!\S)(--?[a-z][\w-]*)", command)
            found.setdefault(verb, []).extend((page.name, option) for option in options)
    return found


@pytest.mark.parametrize("verb", named_commands(), ids=" ".join)
def test_every_option_named_in_the_text_exists(
    verb: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*verb, "--help"]) == 0
    known = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", capsys.readouterr().out)) | {"--debug"}
    unknown = [(page, option) for page, option in named_commands()[verb] if option not in known]
    assert unknown == []


def test_the_readme_shows_the_two_commands() -> None:
    assert "make train\nmake test\n" in (ROOT / "README.md").read_text()
