"""Every endpoint of the HTTP API, in a real game; docs/openapi.yaml says what they return."""

import contextlib
import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from estragon.envs.gymnasium_env import GodotEnv
from estragon.godot.process import usable_user_folders
from estragon.godot.project import import_project
from estragon.support import paths
from tests.spacetime.http_game import (
    LOCOMOTION,
    TOKEN,
    TRACKING,
    Answer,
    Client,
    Game,
    free_port,
    serving,
)

ROOT = Path(__file__).resolve().parents[2]
OPENAPI = yaml.safe_load((ROOT / "docs/openapi.yaml").read_text())
FORWARD = {"type": "continuous", "move_horizontal": 0.0, "move_vertical": 1.0, "rotate": 0.0}
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
OBSERVATION = {
    "camera_position": 3,
    "camera_rotation": 4,
    "camera_velocity": 3,
    "camera_angular_velocity": 3,
    "ray_sensors": 16,
    "left_controller_position": 3,
    "left_controller_velocity": 3,
    "right_controller_position": 3,
    "right_controller_velocity": 3,
    "goal_position": 3,
    "goal_distance": 1,
    "goal_direction": 3,
}


@pytest.fixture(scope="module")
def project(godot: Path) -> Path:
    return import_project(paths.godot_project(), godot=godot)


@pytest.fixture(scope="module")
def game(godot: Path, project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Game]:
    log = tmp_path_factory.mktemp("http") / "game.log"
    with serving(godot, project, log) as game:
        yield game
        assert "ERROR" not in log.read_text()
        assert TOKEN not in log.read_text()


@pytest.fixture
def client(game: Game) -> Iterator[Client]:
    with game.client() as client:
        if client.get("/scene")["scene_path"] != LOCOMOTION:
            client.post("/scene", {"scene_path": LOCOMOTION})
        client.post("/rl/reset", {"seed": 1})
        yield client


def conforms(answer: Answer, method: str, path: str) -> Any:
    """The answer's body, which must be as the OpenAPI file says."""
    responses = OPENAPI["paths"][path][method.lower()]["responses"]
    said = responses.get(str(answer.status), {"$ref": "#/components/responses/Error"})
    if said.get("$ref"):
        said = OPENAPI["components"]["responses"]["Error"]
    check(answer.json, said["content"]["application/json"]["schema"])
    assert answer.headers["content-type"] == "application/json"
    return answer.json


def check(value: Any, schema: dict[str, Any], where: str = "") -> None:
    """The value is what a schema of the OpenAPI file says, as far as that file uses schemas."""
    if reference := schema.get("$ref"):
        schema = OPENAPI["components"]["schemas"][reference.rpartition("/")[2]]
    if value is None and schema.get("nullable"):
        return
    if "anyOf" in schema:
        assert any(_fits(value, each) for each in schema["anyOf"]), (where, value)
        return
    assert type(value) in TYPES[schema["type"]], (where, value, schema)
    assert value in schema.get("enum", [value]), (where, value)
    if isinstance(value, list):
        for index, each in enumerate(value):
            check(each, schema["items"], f"{where}[{index}]")
    if isinstance(value, dict):
        assert set(schema.get("required", [])) <= set(value), (where, value)
        others = schema.get("additionalProperties", True)
        for key, each in value.items():
            inner = schema.get("properties", {}).get(key, others)
            assert inner is not False, f"{where}.{key}"
            if inner is not True:
                check(each, inner, f"{where}.{key}")


def _fits(value: Any, schema: dict[str, Any]) -> bool:
    try:
        check(value, schema)
    except AssertionError:
        return False
    return True


def test_the_openapi_file_lists_every_route() -> None:
    source = (ROOT / "godot/spacetime/http/http_api.gd").read_text()
    routes = re.findall(r'^\t\t"(/[a-z/]+)": \{(.*)\},?$', source, re.MULTILINE)
    served = {path: set(re.findall(r'"([A-Z]+)"', methods)) for path, methods in routes}
    described = {path: {each.upper() for each in item} for path, item in OPENAPI["paths"].items()}
    assert served == described
    page = (ROOT / "docs/http_api.md").read_text()
    assert not [path for path in served if path not in page]


def test_the_examples_of_the_page() -> None:
    page = (ROOT / "docs/http_api.md").read_text()
    blocks = re.findall(r"^```json\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    schemas = ("Info", "ResetResult", "StepResult", "StepResults", None, "State")
    for text, name in zip(blocks, schemas, strict=True):
        example = json.loads(text)
        if name is None:
            sizes = {key: np.size(value) for key, value in example.items()}
            assert sizes == OBSERVATION | {"collision": 1, "fell": 1}
        else:
            check(example, {"$ref": f"#/components/schemas/{name}"})


def test_only_health_needs_no_token(game: Game, client: Client) -> None:
    before = client.get("/rl/state")
    for token in (None, "", "wrong", TOKEN + "x", TOKEN[:-1]):
        with game.client(token) as stranger:
            assert conforms(stranger.request("GET", "/health"), "GET", "/health")
            for path, item in OPENAPI["paths"].items():
                for method in item:
                    if path != "/health":
                        answer = stranger.request(method.upper(), path, {"action": FORWARD})
                        assert answer.status == 401, (method, path)
                        assert conforms(answer, method, path)["error"] == "unauthorized"
                        assert TOKEN not in str(answer)
            assert stranger.request("GET", "/nowhere").status == 401
    assert client.get("/rl/state") == before


@pytest.mark.parametrize(
    "path", ["/health", "/status", "/scene", "/scenes", "/performance", "/performance/metrics"]
)
def test_what_is_asked(client: Client, path: str) -> None:
    answer = client.request("GET", path)
    assert answer.status == 200
    conforms(answer, "GET", path)
    assert TOKEN not in str(answer)


def test_unknown_paths_and_methods(client: Client) -> None:
    for path in ("/", "/rl", "/rl/", "/scene/", "/../scene", "/rl/step/x"):
        answer = client.request("GET", path)
        assert (answer.status, answer.json["error"]) == (404, "not_found")
    answer = client.request("DELETE", "/scene")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, POST, PUT")
    assert client.request("POST", "/health").status == 405
    assert client.request("GET", "/rl/step").headers["allow"] == "POST"


def test_scenes(client: Client) -> None:
    assert client.get("/scene") == {
        "scene_name": "VRLocomotionTest",
        "scene_path": LOCOMOTION,
        "status": "loaded",
    }
    listed = client.get("/scenes?dir=res://scenes/features")
    assert {LOCOMOTION, TRACKING} <= {scene["path"] for scene in listed["scenes"]}
    assert client.get("/scenes?dir=res://tag")["scenes"] == []
    for wrong in ("..", "res://../", "/etc", "res://a/../..", "user://"):
        assert client.request("GET", f"/scenes?dir={wrong}").status == 400, wrong
    answer = client.request("PUT", "/scene", {"scene_path": LOCOMOTION})
    told = conforms(answer, "PUT", "/scene")
    assert told["valid"]
    assert told["scene_info"]["root_name"] == "VRLocomotionTest"
    missing = client.request("PUT", "/scene", {"scene_path": "res://scenes/features/none.tscn"})
    assert not conforms(missing, "PUT", "/scene")["valid"]


def test_changing_scenes(client: Client) -> None:
    answer = client.request("POST", "/scene", {"scene_path": TRACKING})
    assert conforms(answer, "POST", "/scene")["status"] == "loading"
    info = client.get("/rl/info")  # waits until the scene is there
    assert info["scene"] == TRACKING
    assert info["observation_space"] == [{"obs": {"size": [21], "space": "box"}}]
    step = client.post("/rl/step", {"action": {"left": [1, 0, 0], "right": [0, 1, 0]}})
    assert step["observation"]["left_controller_velocity"][0] == pytest.approx(1.5, abs=0.01)
    assert client.post("/scene/reload")["status"] == "reloading"
    assert client.post("/rl/step", {"action": [0, 0, 0, 0, 0, 0]})["done"] is False
    client.post("/scene", {"scene_path": LOCOMOTION})
    assert client.get("/rl/info")["scene"] == LOCOMOTION


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("res://scenes/Main.tscn", 403),
        ("res://tag/game/tag_game.tscn", 403),
        ("res://scenes/features/none.tscn", 404),
        ("res://scenes/features/../Main.tscn", 400),
        ("res://scenes/features/..%2fMain.tscn", 400),
        ("res://scenes\\features\\a.tscn", 400),
        ("user://a.tscn", 400),
        ("/etc/passwd", 400),
        ("res://scenes/features/vr_locomotion_test.tscn\x00", 400),
        ("", 400),
        (None, 400),
        (7, 400),
        (["res://scenes/Main.tscn"], 400),
    ],
)
def test_forbidden_scenes(client: Client, path: Any, status: int) -> None:
    answer = client.request("POST", "/scene", {"scene_path": path})
    assert answer.status == status
    conforms(answer, "POST", "/scene")
    assert client.get("/scene")["scene_path"] == LOCOMOTION


def test_what_the_agent_observes(client: Client) -> None:
    named = client.post("/rl/reset", {"seed": 5})["observation"]
    assert named == client.get("/rl/observation")
    sizes = {key: np.size(value) for key, value in named.items()}
    assert sizes == OBSERVATION | {"collision": 1, "fell": 1}
    flat = client.post("/rl/reset", {"seed": 5, "compact": True})["observation"]
    assert flat == pytest.approx([n for key in OBSERVATION for n in np.ravel(named[key])])
    assert 10.0 <= named["goal_distance"] <= 30.0
    assert np.linalg.norm(named["goal_direction"]) == pytest.approx(1.0)


def test_a_step_is_six_ticks(client: Client) -> None:
    info = client.get("/rl/info")
    assert (info["action_repeat"], info["ticks_per_second"]) == (6, 90)
    turn = FORWARD | {"move_vertical": 0.0, "rotate": 1.0}
    for _ in range(15):
        answer = client.request("POST", "/rl/step", {"action": turn})
        told = conforms(answer, "POST", "/rl/step")
    rotation = told["observation"]["camera_rotation"]
    start = client.post("/rl/reset", {"seed": 1})["observation"]["camera_rotation"]
    turned = 2.0 * np.degrees(np.arccos(abs(np.dot(rotation, start))))
    assert turned == pytest.approx(90.0, abs=0.1)


def test_all_ways_to_say_an_action(client: Client) -> None:
    said: list[Any] = [
        FORWARD,
        {"move": [0.0, 1.0, 0.0]},
        [0.0, 1.0, 0.0],
        FORWARD | {"max_movement_speed": 2.0, "max_rotation_speed": 90, "teleport": 0.0},
    ]
    results = []
    for action in said:
        client.post("/rl/reset", {"seed": 3})
        one = client.post("/rl/step", {"action": action})
        client.post("/rl/reset", {"seed": 3})
        many = conforms(
            client.request("POST", "/rl/step", {"actions": [action]}), "POST", "/rl/step"
        )
        assert many["observations"] == [one["observation"]]
        assert many["rewards"] == [one["reward"]]
        assert many["terminal_observations"] == [None]
        client.post("/rl/reset", {"seed": 3})
        client.post("/rl/action", action)
        assert client.get("/rl/observation") == one["observation"]
        results.append(one)
    assert all(result == results[0] for result in results)
    assert results[0]["observation"]["camera_velocity"] != [0.0, 0.0, 0.0]


def test_discrete_actions(client: Client) -> None:
    before = client.get("/rl/observation")
    after = client.post("/rl/step", {"action": {"type": "discrete", "action_index": 0}})
    moved = np.subtract(after["observation"]["camera_position"], before["camera_position"])
    assert np.linalg.norm(moved[[0, 2]]) == pytest.approx(1.0, abs=0.02)
    action = {"type": "discrete", "action_index": 5, "turn_angle": 90}
    turned = client.post("/rl/step", {"action": action})["observation"]["goal_direction"]
    x, _, z = after["observation"]["goal_direction"]
    assert (turned[0], turned[2]) == pytest.approx((z, -x), abs=0.02)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"action": None},
        {"action": "forward"},
        {"action": {"type": "hop"}},
        {"action": FORWARD | {"rotate": 1.5}},
        {"action": FORWARD | {"rotate": "left"}},
        {"action": FORWARD | {"max_movement_speed": 20.0}},
        {"action": {"type": "discrete"}},
        {"action": {"type": "discrete", "action_index": 7}},
        {"action": {"type": "discrete", "action_index": 0.5}},
        {"action": {"move": [0.0, 1.0]}},
        {"action": [0.0, 1.0, 0.0, 0.0]},
        {"actions": []},
        {"actions": [FORWARD, FORWARD]},
        {"actions": {"0": FORWARD}},
        b"[1, 2]",
        b"{",
        b"\xff\xfe",
        b'{"action": [1e999, 0, 0]}',
        b'{"action": [0, 0, 0], "x": "\xff"}',
        {"action": FORWARD, "compact": 1},
        {"action": {"move": "\x01\x1b"}},
        b"[" * 5000,
    ],
)
def test_a_wrong_action_changes_nothing(client: Client, body: Any) -> None:
    before = client.get("/rl/state"), client.get("/rl/observation")
    answer = client.request("POST", "/rl/step", body)
    assert answer.status == 400
    conforms(answer, "POST", "/rl/step")
    assert (client.get("/rl/state"), client.get("/rl/observation")) == before


def test_an_episode_ends(client: Client) -> None:
    client.post("/rl/reset", {"seed": 2, "parameters": {"max_steps": 5}})
    results = [client.post("/rl/step", {"action": FORWARD}) for _ in range(6)]
    assert [result["truncated"] for result in results] == [False] * 4 + [True, False]
    end = results[4]
    assert end["done"]
    assert not end["terminated"]
    assert end["info"]["timeout"]
    assert end["info"]["seed"] > 0
    assert end["reward"] < -1.5
    assert end["terminal_observation"]["camera_position"] != end["observation"]["camera_position"]
    assert not results[5]["info"]["timeout"]


def test_the_four_request_form(client: Client) -> None:
    client.post("/rl/reset", {"seed": 2, "parameters": {"max_steps": 3}})
    for step in (1, 2, 3):
        answer = client.request("POST", "/rl/action", FORWARD)
        applied = conforms(answer, "POST", "/rl/action")
        assert applied == {"status": "applied", "episode": 0, "step": step}
        observation = client.get("/rl/observation")
        state = conforms(client.request("GET", "/rl/state"), "GET", "/rl/state")
    assert state["done"]
    assert state["info"]["timeout"]
    assert set(state["info"]) >= {"collision", "goal_reached", "fell", "comfort_score", "success"}
    fresh = client.post("/rl/reset")["observation"]
    assert observation["goal_distance"] != fresh["goal_distance"], "the last one, not the next"
    state = client.get("/rl/state")
    assert (state["episode"], state["step"], state["done"]) == (1, 0, False)


def test_walking_to_the_goal_succeeds(client: Client) -> None:
    values = {"goal_min_m": 3, "goal_max_m": 4, "obstacle_count": 0}
    told = client.post("/rl/reset", {"seed": 4, "parameters": values})
    for _ in range(200):
        x, _, z = told["observation"]["goal_direction"]
        action = {"type": "continuous", "move_horizontal": x, "move_vertical": -z}
        told = client.post("/rl/step", {"action": action})
        if told["done"]:
            break
    assert told["terminated"]
    assert told["info"]["goal_reached"]
    assert told["info"]["success"]
    assert told["reward"] > 9.0
    assert told["terminal_observation"]["goal_distance"] < 1.01


def test_a_reset_may_choose_the_task(client: Client) -> None:
    rays = []
    for task in ("maze", "goals"):
        told = client.post("/rl/reset", {"seed": 1, "parameters": {"task": task}})
        rays.append(min(told["observation"]["ray_sensors"]))
        assert told["info"]["seed"] > 0
    assert rays[0] < 1.5 < rays[1]
    wrong_values: list[Any] = ["x", [{}, {}], {"task": [1]}, {"a" * 100: 1}]
    for wrong in wrong_values:
        assert client.request("POST", "/rl/reset", {"parameters": wrong}).status == 400
    wrong_seeds: list[Any] = ["one", [None], {}, 0.5, 1e300, 2**53, True]
    for wrong in wrong_seeds:
        assert client.request("POST", "/rl/reset", {"seed": wrong}).status == 400
    assert client.request("POST", "/rl/reset", {"all": {}}).status == 400


def test_many_agents(godot: Path, project: Path, tmp_path: Path) -> None:
    with serving(godot, project, tmp_path / "log", "--parameter.rigs=3") as game:
        with game.client() as client:
            assert client.get("/rl/info")["n_agents"] == 3
            told = conforms(client.request("POST", "/rl/reset", {"seed": 1}), "POST", "/rl/reset")
            assert len(told["observations"]) == len(told["infos"]) == 3
            assert client.request("POST", "/rl/step", {"action": FORWARD}).status == 400
            actions = [[0.0, 1.0, 0.0], FORWARD, {"type": "discrete", "action_index": 6}]
            told = client.post("/rl/step", {"actions": actions, "compact": True})
            assert np.shape(told["observations"]) == (3, 48)
            speeds = np.linalg.norm(np.array(told["observations"])[:, 7:10], axis=1)
            assert speeds[0] == pytest.approx(speeds[1])
            assert speeds[2] == pytest.approx(0.0, abs=1e-3)
            assert client.post("/rl/step", {"actions": actions, "compact": True})["infos"] is None
            assert client.request("POST", "/rl/wire", {"type": "close"}).status == 204
        assert game.process.wait(30) == 0


def test_http_and_socket_play_the_same(project: Path) -> None:
    played = []
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (60, 2, 3)).astype(np.float32)
    for wire in ("tcp", "http"):
        options: dict[str, Any] = {"scene": LOCOMOTION, "wire": wire, "seed": 3}
        arguments = {"parameter.rigs": 2, "parameter.max_steps": 20}
        env = GodotEnv(project, arguments=arguments, **options)
        observed = [env.reset(seed=3)[0]["obs"]]
        for action in actions:
            obs, rewards, terminated, truncated, _ = env.step(action)
            observed.append(np.column_stack([obs["obs"], rewards, terminated, truncated]))
        env.close()
        played.append(observed)
    for socket_row, http_row in zip(*played, strict=True):
        np.testing.assert_array_equal(socket_row, http_row)


@pytest.mark.parametrize("from_editor", [True, False])
def test_a_game_of_the_editor_listens_on_loopback_only(
    godot: Path, project: Path, tmp_path: Path, *, from_editor: bool
) -> None:
    """The editor starts games with a debugger; others must be asked for the API."""
    port, log = free_port(), tmp_path / "log"
    command = [godot, "--headless", "--path", project, "--quit-after", "20"]
    with socket.create_server(("127.0.0.1", 0)) as editor, log.open("wb") as out:
        if from_editor:
            command += ["--remote-debug", f"tcp://127.0.0.1:{editor.getsockname()[1]}"]
        env = usable_user_folders(os.environ) | {"API_TOKEN": TOKEN, "GODOT_HTTP_PORT": str(port)}
        words = [*map(str, command), LOCOMOTION]
        with subprocess.Popen(words, env=env, stdout=out, stderr=out) as process:
            deadline = time.monotonic() + 60.0
            while not (listening := _listens(port)) and process.poll() is None:
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.02)
            process.kill()
    assert listening == ({"127.0.0.1"} if from_editor else set()), log.read_text()
    assert (f"HTTP API on http://127.0.0.1:{port}" in log.read_text()) == from_editor


def _listens(port: int) -> set[str]:
    """The addresses of this machine on which a port is listened on."""
    own = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    found = set()
    for host in own | {"127.0.0.1", "127.0.0.2"}:
        with contextlib.suppress(OSError), socket.create_connection((str(host), port), 1.0):
            found.add(str(host))
    return found


def test_a_token_is_made_and_printed_once(
    godot: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, data = tmp_path / "log", tmp_path / "data"
    monkeypatch.setenv("XDG_DATA_HOME", str(data))
    with serving(godot, project, log, token="") as game:
        found = re.findall(r"API token: ([0-9a-f]{64})$", log.read_text(), re.MULTILINE)
        assert len(found) == 1
        with game.client(found[0]) as client:
            assert client.get("/status")["status"] == "running"
        with game.client("") as client:
            assert client.request("GET", "/status").status == 401
        assert log.read_text().count(found[0]) == 1
    written = [path for path in data.rglob("*") if path.is_file()]
    assert not [path for path in written if found[0].encode() in path.read_bytes()], written


def test_requests_are_limited_but_not_training(godot: Path, project: Path, tmp_path: Path) -> None:
    with serving(godot, project, tmp_path / "log") as game, game.client() as client:
        deadline = time.monotonic() + 60.0
        while (answer := client.request("GET", "/scene")).status == 200:
            assert time.monotonic() < deadline
        assert answer.status == 429
        assert 1 <= int(answer.headers["retry-after"]) <= 10
        assert conforms(answer, "GET", "/scene")["error"] == "too_many_requests"
        assert client.request("GET", "/health").status == 200
        for _ in range(350):
            assert client.request("GET", "/rl/state").status == 200


def test_the_environment_chooses_the_whitelist(godot: Path, project: Path, tmp_path: Path) -> None:
    arguments = godot, project, tmp_path / "log", "--environment=production"
    with serving(*arguments) as game, game.client() as client:
        assert client.get("/status")["environment"] == "production"
        assert client.request("POST", "/scene", {"scene_path": TRACKING}).status == 403
