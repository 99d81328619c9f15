"""Real Godot and real servers: lockstep, lost servers, settings, and servers of old."""

import contextlib
import itertools
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from estragon.cli import main
from estragon.godot.process import GodotProcess
from estragon.godot.project import import_project
from estragon.live.batcher import Actors
from estragon.live.protocol import Decision
from estragon.live.server import LiveServer
from estragon.support import paths
from estragon.tag.rules import TERMS
from tests.godot.staging import until
from tests.live.old_server import OldServer
from tests.live.planted import SCENE, PlantedBrain
from tests.live.staging import ESTRAGON, Command, SpyBrain, serving

PATIENCE_SEC = 60.0
MAIN = "res://scenes/Main.tscn"
AT_WALL = 0.94  # of the way from the middle to the wall
IS_SEEKER = 8
INFO = {
    "agent",
    "role",
    "distance_to_other",
    "progress",
    "time_elapsed",
    "steps_in_episode",
    "episode",
}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals"),
]


@contextlib.contextmanager
def playing(
    port: int, folder: Path, *options: str, scene: str = MAIN, **variables: str
) -> Iterator[GodotProcess]:
    """A headless game that plays live, with AI_* variables by their lower-case names."""
    project = import_project(paths.godot_project())
    env = {name: value for name, value in os.environ.items() if not name.startswith("AI_")}
    settings = {"training_mode": "1", "data_root": str(folder / "data")} | variables
    env |= {f"AI_{name.upper()}": value for name, value in settings.items()}
    words: list[str | Path] = ["--headless", "--path", project, "--fixed-fps", "60", scene, "--"]
    server = f"--server=ws://127.0.0.1:{port}"
    with GodotProcess([*words, server, *options], folder=folder, env=env) as game:
        yield game


@contextlib.contextmanager
def started_as_by_the_editor(
    port: int, folder: Path, *words: str, **variables: str
) -> Iterator[GodotProcess]:
    """The main scene without an option; the environment only says where a server would be."""
    project = import_project(paths.godot_project())
    ours = ("AI_", "ESTRAGON_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    env |= {"ESTRAGON_SERVER": f"ws://127.0.0.1:{port}"} | variables
    start = ["--headless", "--path", str(project), "--fixed-fps", "60", MAIN]
    with GodotProcess([*start, *words], folder=folder, env=env) as game:
        yield game


def cpu_sec(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def decided(actor: SpyBrain) -> list[Decision]:
    return [decision for asked in list(actor.decided) for _, decision in asked]


def wait_for_decisions(actor: SpyBrain, count: int) -> list[Decision]:
    until(lambda: len(actor.decided) >= count, PATIENCE_SEC, f"{count} decisions")
    return decided(actor)


class RunningSpy(SpyBrain):
    """Runs east with the first agent on the wire, south with the other."""

    def decide(self, asked: Sequence[tuple[int, Decision]]) -> list[np.ndarray]:
        super().decide(asked)
        actions = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], dtype=np.float32)
        return [np.tile(actions, (len(decision.seekers), 1, 1)) for _, decision in asked]


def always(actor: SpyBrain) -> Callable[[int], SpyBrain]:
    return lambda _: actor


def test_every_outcome_belongs_to_its_observation_and_action(tmp_path: Path) -> None:
    actor = PlantedBrain()
    with (
        serving(lambda _: actor) as server,
        playing(server.port, tmp_path, "--arenas=8", scene=SCENE, time_limit_sec="1"),
    ):
        until(lambda: actor.outcomes >= 5000 or actor.mistakes, 3 * PATIENCE_SEC, "5,000 outcomes")
    assert not actor.mistakes
    assert actor.sessions == 1
    assert actor.ends >= 100


def test_a_server_that_comes_back_goes_on_where_it_was(tmp_path: Path) -> None:
    first, second = PlantedBrain(), PlantedBrain(seed=1)
    with serving(lambda _: first) as server:
        port = server.port
        with playing(port, tmp_path, "--arenas=3", scene=SCENE) as game:
            until(lambda: first.outcomes >= 60, PATIENCE_SEC, "decisions")
            server.stop()
            game.wait_for_line("the loss", lambda line: "trying again in" in line, PATIENCE_SEC)
            with LiveServer(Actors(lambda _: second), port=port):
                until(lambda: second.outcomes >= 60, PATIENCE_SEC, "decisions")
    assert not first.mistakes + second.mistakes
    assert first.looks is not None
    assert min(second.seen) >= 64 * int(first.looks.min()), "arenas began anew"
    assert len(first.seen & second.seen) <= 3 * 2, "more than the question that was not answered"


def test_a_server_that_is_killed_is_found_again(tmp_path: Path) -> None:
    serve = [*ESTRAGON, "serve", "--random", "--output", str(tmp_path)]
    with Command([*serve, "--port", "0"], tmp_path) as server:
        port = server.port()
        with playing(port, tmp_path, "--arenas=2") as game:
            server.wait_for("client 1 is")
            server.process.kill()
            said = game.wait_for_line("the loss", lambda line: "trying" in line, PATIENCE_SEC)
            assert said.startswith("estragon: connection lost: the game waits; trying again in")
            game.wait_for_line("another try", lambda line: "no server" in line, PATIENCE_SEC)
            with Command([*serve, "--port", str(port)], tmp_path) as again:
                again.wait_for("client 1 is")
                game.wait_for_line("the server", lambda line: "connected: " in line, PATIENCE_SEC)
                again.wait_for(r"decisions/s: [1-9]")


@pytest.mark.prove
def test_a_server_that_stands_still_is_waited_for(tmp_path: Path) -> None:
    serve = [*ESTRAGON, "serve", "--random", "--port", "0", "--output", str(tmp_path)]
    with Command(serve, tmp_path) as server:
        with playing(server.port(), tmp_path, "--arenas=2") as game:
            server.wait_for(r"decisions/s: [1-9]")
            server.process.send_signal(signal.SIGSTOP)
            time.sleep(1.0)
            before = cpu_sec(game.pid)
            time.sleep(3.0)
            spent = cpu_sec(game.pid) - before
            server.process.send_signal(signal.SIGCONT)
            server.wait_for(r"decisions/s: [1-9]")
            server.wait_for(r"decisions/s: [1-9]")
            assert "trying again" not in "\n".join(game.lines())
        assert spent < 1.0, f"waiting took {spent} s of 3"


def test_without_a_server_it_gives_up_in_time(tmp_path: Path) -> None:
    start = time.monotonic()
    with playing(1, tmp_path, "--server-wait=2") as game:
        assert game.wait("its end", PATIENCE_SEC) == 2
        assert time.monotonic() - start < 2 + 30
        said = "\n".join(game.lines())
    assert "estragon: no server: the game waits; trying again in" in said
    assert "estragon: no server at ws://127.0.0.1:1 for 2.0 s; start one with" in said


def test_a_program_that_accepts_and_never_speaks_is_no_server(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with playing(port, tmp_path, "--server-wait=3") as game:
            assert game.wait("its end", PATIENCE_SEC) == 2
            said = "\n".join(game.lines())
    assert f"estragon: no server at ws://127.0.0.1:{port} for 3.0 s" in said


def test_it_ends_by_itself_after_the_duration(tmp_path: Path) -> None:
    with serving() as server, playing(server.port, tmp_path, train_duration="2") as game:
        assert game.wait("its end", PATIENCE_SEC) == 0
        until(lambda: server.clients == 0, PATIENCE_SEC, "the goodbye")


def test_a_server_that_refuses_is_told_at_once(tmp_path: Path) -> None:
    with serving() as server:
        rules = json.loads((paths.godot_project() / "tag/rules.json").read_text())
        rules["observation"]["version"] += 1
        file = tmp_path / "rules.json"
        file.write_text(json.dumps(rules))
        with playing(server.port, tmp_path, f"--rules-file={file}") as game:
            assert game.wait("its end", PATIENCE_SEC) == 2
            assert "refuses: hello: observation_version" in "\n".join(game.lines())


@pytest.mark.parametrize(
    ("name", "value"), [("win_bonus", "much"), ("is_it", "maybe"), ("train_duration", "-1")]
)
def test_a_wrong_variable_is_one_line(name: str, value: str, tmp_path: Path) -> None:
    with playing(1, tmp_path, **{name: value}) as game:
        assert game.wait("its end", PATIENCE_SEC) == 2
        said = [line for line in game.lines() if line.startswith("estragon: ")]
    assert len(said) == 1
    assert said[0].startswith(f"estragon: AI_{name.upper()}: expected ")


def test_who_began_as_the_seeker_is_first_on_the_wire(tmp_path: Path) -> None:
    for ai_is_it in ("1", "0"):
        actor = RunningSpy()
        with (
            serving(always(actor)) as server,
            playing(
                server.port, tmp_path, is_it=ai_is_it, time_limit_sec="0.5", log_trajectories="1"
            ) as game,
        ):
            decisions = wait_for_decisions(actor, 25)
            game.stop()
        for decision in decisions:
            assert decision.seekers.tolist() == [0]
            assert decision.observations[0, :, IS_SEEKER].tolist() == [1.0, 0.0]
        log = max((tmp_path / "data/trajectories").glob("ep_*.jsonl"), key=os.path.getmtime)
        records = [json.loads(line) for line in log.read_text().splitlines()]
        assert records[0]["seeker"] == ("Agent1" if ai_is_it == "1" else "Agent2")
        assert records[0]["players"] == {"seeker": "learner", "hider": "learner"}
        assert records[-1]["type"] == "episode_end"
        steps = [record for record in records if record["type"] == "step"]
        moved = {
            name: [s["vel"] for s in steps if s["agent"] == name][2]
            for name in ("Agent1", "Agent2")
        }
        east, south = ("Agent1", "Agent2") if ai_is_it == "1" else ("Agent2", "Agent1")
        assert moved[east][0] > 0.1 > abs(moved[east][2])
        assert moved[south][2] > 0.1 > abs(moved[south][0])


def test_the_other_agent_may_be_a_bot(tmp_path: Path) -> None:
    for ai_is_it, controlled in (("1", (True, False)), ("0", (False, True))):
        actor = RunningSpy()
        with (
            serving(always(actor)) as server,
            playing(server.port, tmp_path, is_it=ai_is_it, control_all_agents="0"),
        ):
            decisions = wait_for_decisions(actor, 30)
        assert next(iter(actor.joined.values())).controlled == controlled
        ours = controlled.index(True)
        # it goes where the actor says: x is position 0, z position 2
        axis = 0 if ours == 0 else 2
        first, later = (decisions[at].observations[0, ours, :3] for at in (0, 5))
        assert later[axis] > first[axis]
        assert abs(later[2 - axis] - first[2 - axis]) < 1e-6
        bots = decisions[20].observations[0, 1 - ours, :3]
        assert abs(bots - decisions[0].observations[0, 1 - ours, :3]).max() > 0.01


def test_variables_reach_the_rules(tmp_path: Path) -> None:
    actor = RunningSpy()
    with (
        serving(lambda _: actor) as server,
        playing(
            server.port,
            tmp_path,
            "--arenas=2",
            "--rewards=default",
            step_tick_interval="5",
            time_limit_sec="1",
            distance_reward_scale="2",
            seeker_time_penalty="-0.25",
            timeout_hider_bonus="3",
            timeout_seeker_penalty="4",
        ),
    ):
        decisions = wait_for_decisions(actor, 40)
    hello = next(iter(actor.joined.values()))
    assert (hello.step_tick_interval, hello.rules, hello.training) == (5, "seek", True)
    assert decisions[0].outcome is None
    timeouts = 0
    for before, decision in itertools.pairwise(decisions[1:]):
        assert before.outcome is not None
        assert decision.outcome is not None
        terms = dict(zip(TERMS, np.moveaxis(decision.outcome.terms, 2, 0), strict=True))
        going = before.outcome.ends == 0
        nearer = before.outcome.distances - decision.outcome.distances
        np.testing.assert_allclose(terms["distance"][going, 0], 2.0 * nearer[going], atol=1e-12)
        assert (terms["time"] == [-0.25, 0.0]).all()
        late = decision.outcome.ends == 2
        assert (terms["timeout"][late] == [-4.0, 3.0]).all()
        assert (decision.outcome.ticks[late] == 60).all()
        assert (decision.outcome.winners[late] == 1).all()
        timeouts += int(late.sum())
    assert timeouts >= 2


def test_without_training_nothing_is_told(tmp_path: Path) -> None:
    actor = RunningSpy()
    with (
        serving(lambda _: actor) as server,
        playing(server.port, tmp_path, "--live=1", training_mode="0", time_limit_sec="0.5"),
    ):
        decisions = wait_for_decisions(actor, 30)
    assert not next(iter(actor.joined.values())).training
    assert all(decision.outcome is None for decision in decisions)


def test_the_main_scene_finds_a_server_by_itself(tmp_path: Path) -> None:
    actor = RunningSpy()
    with (
        serving(always(actor)) as server,
        started_as_by_the_editor(server.port, tmp_path) as game,
    ):
        decisions = wait_for_decisions(actor, 30)
        game.wait_for_line("the server", lambda line: "connected: a spy" in line, PATIENCE_SEC)
    hello = next(iter(actor.joined.values()))
    assert (hello.controlled, hello.training, hello.arenas) == ((True, True), False, 1)
    start, later = decisions[0].observations[0], decisions[4].observations[0]
    # Spawns are random: an agent may stand at the wall that it runs at.
    assert later[0, 0] > min(start[0, 0], AT_WALL), "the first runs east"
    assert later[1, 2] > min(start[1, 2], AT_WALL), "the second runs south"


def test_without_a_server_the_main_scene_plays_and_keeps_looking(tmp_path: Path) -> None:
    """Bots play whole matches; then a policy is served, by the command that the game names."""
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    logs = {"AI_LOG_TRAJECTORIES": "1", "AI_DATA_ROOT": str(tmp_path / "data")}
    serve = [*ESTRAGON, "serve", "--random", "--port", str(port), "--output", str(tmp_path)]
    with started_as_by_the_editor(port, tmp_path, **logs) as game:
        until(
            lambda: len(list(tmp_path.glob("data/trajectories/ep_*.jsonl"))) >= 2,
            PATIENCE_SEC,
            "matches between bots",
        )
        first = min(tmp_path.glob("data/trajectories/ep_*.jsonl"), key=os.path.getmtime)
        players = json.loads(first.read_text().splitlines()[0])["players"]
        assert players == {"seeker": "bot:chaser", "hider": "bot:evader"}
        with Command(serve, tmp_path) as server:
            server.wait_for("client 1 is")
            game.wait_for_line("it", lambda line: "connected: random actions" in line, PATIENCE_SEC)
            server.process.kill()
            game.wait_for_line("its loss", lambda line: "playing without it" in line, PATIENCE_SEC)
        said = [line for line in game.lines() if line.startswith("estragon: ")]
    assert "estragon serve" in said[0]
    assert len(said) == 3, said


@pytest.mark.parametrize(
    "words",
    [
        ["--", "--play=nobody"],
        ["--", "--seeker=bot:random", "--frames-to=frames"],
        ["--", "--matches=2"],
        ["--port=1", "--env_seed=0"],
    ],
    ids=lambda words: words[-1],
)
def test_a_server_that_happens_to_be_there_plays_nothing_else(
    words: list[str], tmp_path: Path
) -> None:
    with (
        serving() as server,
        started_as_by_the_editor(server.port, tmp_path, "--quit-after", "90", *words) as game,
    ):
        assert game.wait("its end", PATIENCE_SEC) == 0
        assert server.counts.connections == 0


def test_python_plays_its_own_games_when_a_server_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as server:
        monkeypatch.setenv("ESTRAGON_SERVER", f"ws://127.0.0.1:{server.port}")
        words = ["eval-episode", "--engine", "godot", "--duration", "0.5"]
        assert main([*words, "--output", str(tmp_path)]) == 0
        assert server.counts.connections == 0


@pytest.mark.parametrize("echoes", [True, False], ids=["echo", "silence"])
def test_a_server_without_hello_is_asked_in_json(echoes: bool, tmp_path: Path) -> None:
    with (
        OldServer(echoes=echoes) as server,
        playing(server.port, tmp_path, "--arenas=2", time_limit_sec="0.5"),
    ):
        until(lambda: len(server.transitions) >= 200, PATIENCE_SEC, "transitions")
    assert server.asked["act"] == server.asked["transition"] == 0
    assert server.asked["hello"] == 1
    check_transitions(server, ["Agent1", "Agent2", "Agent3", "Agent4"])


def test_the_oldest_servers_are_asked_one_by_one(tmp_path: Path) -> None:
    with (
        OldServer(knows_batches=False) as server,
        playing(server.port, tmp_path, time_limit_sec="0.5", legacy_act_fallback="1"),
    ):
        until(lambda: len(server.transitions) >= 100, PATIENCE_SEC, "transitions")
    assert set(server.asked) == {"act", "transition"}
    check_transitions(server, ["Agent1", "Agent2"])


def check_transitions(server: OldServer, agents: list[str]) -> None:
    """Everything told is complete, and each agent's transitions follow one another."""
    given = [action for answer in server.answers for action in answer.values()]
    for number, told in enumerate(server.transitions):
        assert told["info"]["agent"] == agents[number % len(agents)]
        np.testing.assert_allclose(told["action"], given[number], atol=1e-6)
        assert set(told["info"]) >= INFO
    ends = 0
    for agent in agents:
        mine = [told for told in server.transitions if told["info"]["agent"] == agent]
        for told, then in itertools.pairwise(mine):
            assert len(told["obs"]) == len(told["next_obs"]) == 126
            assert told["info"]["role"] == ("seeker" if told["obs"][IS_SEEKER] == 1 else "hider")
            if told["done"]:
                ends += 1
                assert told["info"]["terminal_reason"] in ("tag", "timeout")
                assert told["info"]["winner"] in agents
                assert then["info"]["steps_in_episode"] == 1
                assert then["info"]["episode"] == told["info"]["episode"] + 1
            else:
                assert then["obs"] == told["next_obs"]
                steps = told["info"]["steps_in_episode"]
                assert then["info"]["steps_in_episode"] == steps + 1
    assert ends >= 2 * len(agents)
