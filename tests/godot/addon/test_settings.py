"""Where Sync may be, and who may set it."""

import shutil
import socket
import time
from pathlib import Path

from estragon.godot.process import GodotProcess
from tests.godot.addon.peer import Peer, playing

IDLE = (0.0, 0.0, 0.0)


def test_what_another_node_sets_in_its_ready_counts(counter: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30.0)
        words = ["--headless", "--path", str(counter), "--fixed-fps", "60", "--repeat=3"]
        words.append(f"--wire={server.getsockname()[1]}")
        with GodotProcess(words, folder=tmp_path) as process, server.accept()[0] as connection:
            peer = Peer(connection, process)
            peer.greet("binary1")
            peer.reset()
            assert [row.reward for row in peer.step(*IDLE)] == [3]


def test_sync_may_be_an_autoload(counter: Path, tmp_path: Path) -> None:
    project = tmp_path / "autoload"
    shutil.copytree(counter, project)
    scene = project / "counter.tscn"
    scene.write_text(scene.read_text().split('[node name="Sync"')[0])
    with (project / "project.godot").open("a") as settings:
        settings.write(
            '\n[autoload]\n\nGodotRLAgentsSync="*res://addons/godot_rl_agents/sync.gd"\n'
        )
    with playing(project, tmp_path, "--agents=2") as peer:
        assert len(peer.greet("binary1")["agent_ids"]) == 2
        peer.reset()
        assert [row.reward for row in peer.step(*IDLE, *IDLE)] == [8, 8]
        # A scene that is loaded anew brings new agents.
        peer.say(type="call", method="reload")
        peer.hear()
        rows = peer.step(*IDLE, *IDLE)
        assert [(row.id, bool(row.state & 8)) for row in rows] == [
            (0, True),
            (1, True),
            (2, False),
            (3, False),
        ]
        assert [row.reward for row in peer.step(*IDLE, *IDLE)] == [8, 8]


def test_without_a_model_people_control_the_agents(counter: Path, tmp_path: Path) -> None:
    words = ["--headless", "--path", str(counter), "--fixed-fps", "60", "--agents=2"]
    words += ["--mode=2", "--report=5", "--quit=6"]
    with GodotProcess(words, folder=tmp_path) as process:
        assert process.wait("its end", 30.0) == 0
        lines = process.lines()
    assert len([line for line in lines if "there is no onnx_model_path" in line]) == 1
    assert any("heuristic human" in line for line in lines)


def test_speed_up_in_real_time_and_never_under_fixed_fps(counter: Path, tmp_path: Path) -> None:
    with playing(counter, tmp_path, "--speedup=8", fixed=False) as peer:
        peer.greet("binary1")
        peer.reset()
        for _ in range(10):
            peer.step(*IDLE)
        peer.say(type="call", method="tell_pace")
        assert peer.hear()["returns"] == [[8.0, 480]]
        for _ in range(10):  # a busy machine may be slow, and never too quick
            start = time.monotonic()
            for _ in range(60):
                peer.step(*IDLE)
            seconds = time.monotonic() - start
            assert seconds > 0.3  # 240 ticks at 480 a second
            if seconds < 3.0:
                break
        assert seconds < 3.0
    with playing(counter, tmp_path, "--speedup=8") as peer:
        peer.greet("binary1")
        peer.reset()
        for _ in range(10):
            peer.step(*IDLE)
        peer.say(type="call", method="tell_pace")
        assert peer.hear()["returns"] == [[1.0, 60]]


def test_the_addon_says_once_that_it_is_loaded_and_that_sync_has_started(
    counter: Path, tmp_path: Path
) -> None:
    with playing(counter, tmp_path, "--agents=2") as peer:
        peer.greet("binary1")
        peer.reset()
        peer.step(*IDLE, *IDLE)
        port = peer.connection.getsockname()[1]
    said = _announced(peer.process.log_file)
    assert said == [f"Sync node initialized: training mode, port {port}"]
    words = ["--headless", "--path", str(counter), "--fixed-fps", "60", "--mode=0", "--quit=6"]
    with GodotProcess(words, folder=tmp_path / "played") as process:
        assert process.wait("its end", 30.0) == 0
        assert _announced(process.log_file) == ["Sync node initialized: human mode, port 11008"]
    assert _announced(counter / ".godot" / "import.log") == ["Plugin loaded"]


def _announced(log: Path) -> list[str]:
    mark = "[Godot RL Agents] "
    assert log.is_file()
    lines = log.read_text().splitlines()
    return [line.removeprefix(mark) for line in lines if line.startswith(mark)]
