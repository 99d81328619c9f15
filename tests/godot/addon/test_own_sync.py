"""A game's own Sync and controllers may override whatever the original lets them."""

import itertools
import re
from pathlib import Path

import pytest

from tests.godot.addon import models
from tests.godot.addon.cast import KICK, SEES, Stage, actor
from tests.godot.addon.peer import copy_game, playing
from tests.godot.staging import kept_project

# Every method of the original's Sync, its arguments, and what it returns to a caller.
METHODS = {
    "_ready": ("", ""),
    "_initialize": ("", ""),
    "_initialize_training_agents": ("", ""),
    "_initialize_inference_agents": ("", ""),
    "_initialize_demo_recording": ("", ""),
    "_physics_process": ("delta: float", "delta"),
    "_training_process": ("", ""),
    "_inference_process": ("", ""),
    "_demo_record_process": ("", ""),
    "_heuristic_process": ("", ""),
    "_extract_action_dict": (
        "action_array: Array, action_space: Dictionary, action_means_only: bool",
        "action_array, action_space, action_means_only",
    ),
    "_set_agent_mode": ("agent: Node", "agent"),
    "_get_agents": ("", ""),
    "_set_heuristic": ("heuristic: String, nodes: Array", "heuristic, nodes"),
    "_handshake": ("", ""),
    "_get_dict_json_message": ("", ""),
    "_send_dict_as_json_message": ("dict: Dictionary", "dict"),
    "_send_env_info": ("", ""),
    "connect_to_server": ("", ""),
    "_get_args": ("", ""),
    "_get_speedup": ("", ""),
    "_get_port": ("", ""),
    "_set_seed": ("", ""),
    "_set_action_repeat": ("", ""),
    "disconnect_from_server": ("", ""),
    "handle_message": ("", ""),
    "_call_method_on_agents": ("method: String", "method"),
    "_reset_agents_if_done": ("nodes: Array = all_agents", "nodes"),
    "_reset_agents": ("nodes: Array = all_agents", "nodes"),
    "_get_obs_from_agents": ("nodes: Array = all_agents", "nodes"),
    "_get_reward_from_agents": ("nodes: Array = agents_training", "nodes"),
    "_get_info_from_agents": ("nodes: Array = all_agents", "nodes"),
    "_get_done_from_agents": ("nodes: Array = agents_training", "nodes"),
    "_set_agent_actions": ("actions: Array, nodes: Array = all_agents", "actions, nodes"),
    "clamp_array": ("arr: Array, low: float, high: float", "arr, low, high"),
    "_notification": ("what: int", "what"),
}
RETURNS = {
    **dict.fromkeys(("connect_to_server", "handle_message"), "bool"),
    **dict.fromkeys(("_get_port",), "int"),
    **dict.fromkeys(("_get_speedup",), "float"),
    **dict.fromkeys(("_get_args", "_extract_action_dict"), "Dictionary"),
    **dict.fromkeys(
        (
            *("_call_method_on_agents", "clamp_array", "_get_obs_from_agents"),
            *("_get_reward_from_agents", "_get_info_from_agents", "_get_done_from_agents"),
        ),
        "Array",
    ),
    "_get_dict_json_message": "Variant",
}
MEMBERS = re.findall(
    r"\w+",
    """
    control_mode action_repeat speed_up onnx_model_path deterministic_inference
    onnx_models start_time stream connected message_center should_connect all_agents
    agents agents_training agents_training_policy_names agents_inference agents_heuristic
    agent_demo_record expert_demo_save_path demo_trajectories current_demo_trajectory
    need_to_send_obs args initialized just_reset onnx_model n_action_steps
    _action_space_training _action_space_inference _obs_space_training MAJOR_VERSION
    MINOR_VERSION DEFAULT_PORT DEFAULT_SEED
    """,
)
NOT_CALLED_WHILE_TRAINING = {
    *("_inference_process", "_extract_action_dict", "disconnect_from_server", "clamp_array"),
}


def own_sync(*, is_typed: bool) -> str:
    """A Sync that overrides every method, notes who was called, and calls the original."""
    lines = ['extends "res://addons/godot_rl_agents/sync.gd"', "", "var calls: Dictionary = {}", ""]
    # What a game declares itself must not clash with anything of ours.
    lines += ["var trainer: int = 1", "var crew: int = 2", "var pace: int = 3", ""]
    for name, (typed_parameters, arguments) in METHODS.items():
        returned = RETURNS.get(name, "")
        kind = f" -> {returned or 'void'}" if is_typed else ""
        parameters = typed_parameters if is_typed else re.sub(r": \w+", "", typed_parameters)
        if name == "handle_message":
            kind = " -> bool"
        lines += [f"func {name}({parameters}){kind}:", f'\tcalls["{name}"] = true']
        if name == "_notification":
            pass
        elif returned:
            lines.append(f"\treturn super.{name}({arguments})")
        else:
            lines.append(f"\tsuper.{name}({arguments})")
        lines += ["", ""]
    reads = ", ".join(f'"{name}": {name}' for name in MEMBERS)
    lines += ["func tell_members() -> Dictionary:", f"\treturn {{{reads}}}", ""]
    return "\n".join(lines)


CONTROLLER = """\
extends "res://actor_2d.gd"


func init(player: Node2D) -> void:
	super.init(player)


func _ready() -> void:
	super._ready()


func _physics_process(delta: float) -> void:
	super._physics_process(delta)


func get_obs() -> Dictionary:
	return super.get_obs()


func get_obs_space() -> Dictionary:
	return super.get_obs_space()


func get_reward() -> float:
	return super.get_reward()


func get_action_space() -> Dictionary:
	return super.get_action_space()


func set_action(action: Dictionary) -> void:
	super.set_action(action)


func get_action() -> Array:
	return super.get_action()


func get_info() -> Dictionary:
	return {"calls": $"../Sync".calls.keys(), "members": $"../Sync".tell_members().size()}


func reset() -> void:
	super.reset()


func reset_if_done() -> void:
	super.reset_if_done()


func set_heuristic(h: String) -> void:
	super.set_heuristic(h)


func get_done() -> bool:
	return super.get_done()


func set_done_false() -> void:
	super.set_done_false()


func get_truncated() -> bool:
	return super.get_truncated()


func set_truncated_false() -> void:
	super.set_truncated_false()


func get_obs_done() -> Dictionary:
	return super.get_obs_done()


func zero_reward() -> void:
	super.zero_reward()
"""


def own_sync_without_super() -> str:
    """A Sync that does everything itself, in the words of an older addon."""
    text = (Path(__file__).parent / "old_addon" / "sync.gd").read_text()
    own = text[text.index("\nfunc ") :]
    for older, name in (
        ("owes_step", "need_to_send_obs"),
        ("owes_reset", "just_reset"),
        ("ticks", "n_action_steps"),
    ):
        own = re.sub(rf"\b{older}\b", name, own)
    return 'extends "res://addons/godot_rl_agents/sync.gd"\n' + own


MODEL_SYNC = """\
extends Sync

var outputs = []


func _get_obs_from_agents(nodes: Array = all_agents):
	var seen = super(nodes)
	for one in seen:
		one["obs"][0] += 5.0
	return seen


func _extract_action_dict(action_array, action_space, action_means_only):
	outputs.append([action_array, action_means_only])
	return {"kick": int(action_array[0]) % 3}


func _set_heuristic(heuristic, nodes):
	# As a game has it in which a person may keep an agent.
	super(heuristic, nodes.filter(func(node): return node.name != "Bob"))
"""


SETUP_SYNC = """\
extends "res://addons/godot_rl_agents/sync.gd"
class_name RLSync


func _ready() -> void:
	await get_tree().create_timer(0.1).timeout
	assert(setup())


func setup() -> bool:
	return _initialize()


func _initialize() -> bool:
	_get_agents()
	args = _get_args()
	_set_heuristic("human", all_agents)
	_initialize_training_agents()
	if not connected:
		return false
	_set_seed()
	_set_action_repeat()
	initialized = true
	return connected


func connect_to_server():
	stream = StreamPeerTCP.new()
	stream.connect_to_host("127.0.0.1", _get_port())
	stream.poll()
	while stream.get_status() < 2:
		stream.poll()
	return stream.get_status() == 2


func _reset_agents(nodes = all_agents) -> void:
	for node in nodes:
		node.needs_reset = true
"""


EXCHANGE_SYNC = """\
extends "res://addons/godot_rl_agents/sync.gd"


func _training_process():
	get_tree().paused = true
	if just_reset or need_to_send_obs:
		var reply = {"type": "reset" if just_reset else "step"}
		reply["obs"] = _get_obs_from_agents(agents_training)
		reply["info"] = [{"mine": true}]
		if need_to_send_obs:
			reply["reward"] = _get_reward_from_agents()
			reply["done"] = _get_done_from_agents()
		just_reset = false
		need_to_send_obs = false
		_send_dict_as_json_message(reply)
	handle_message()


func handle_message() -> bool:
	var message = _get_dict_json_message()
	match message["type"]:
		"close":
			get_tree().quit()
		"reset":
			_reset_agents()
			just_reset = true
		"action":
			_set_agent_actions(message["action"], agents_training)
			need_to_send_obs = true
	get_tree().paused = false
	return true
"""


SYNCS = {
    "untyped": own_sync(is_typed=False),
    "typed": own_sync(is_typed=True),
    "model": MODEL_SYNC,
    "setup": SETUP_SYNC,
    "without_super": own_sync_without_super(),
    "exchange": EXCHANGE_SYNC,
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, godot: Path) -> Path:
    """The cast game with a scene for every own Sync, imported once."""
    folder = tmp_path_factory.mktemp("own sync") / "game"
    copy_game("cast", folder)
    scene, script = (folder / "stage.tscn").read_text(), (folder / "stage.gd").read_text()
    (folder / "own_controller.gd").write_text(CONTROLLER)
    (folder / "stage_typed.gd").write_text(
        script.replace("res://actor_2d.gd", "res://own_controller.gd")
    )
    scene = re.sub(r' uid="[^"]*"', "", scene)
    for name, sync in SYNCS.items():
        (folder / f"sync_{name}.gd").write_text(sync)
        own = scene.replace("res://addons/godot_rl_agents/sync.gd", f"res://sync_{name}.gd")
        if name == "typed":
            own = own.replace("res://stage.gd", "res://stage_typed.gd")
        (folder / f"{name}.tscn").write_text(own)
    return kept_project("own sync", folder)


@pytest.fixture
def stage(project: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Stage:
    """The game with the Sync that the test names."""
    return Stage(project, tmp_path, f"res://{request.param}.tscn")


@pytest.mark.parametrize("stage", ["untyped", "typed"], indirect=True)
def test_every_method_is_overridden_and_called(stage: Stage) -> None:
    is_typed = "/typed" in stage.scene
    play = stage.file(
        [
            actor("Ann", SEES, KICK, lifetime=6),
            actor("Bob", SEES, KICK, set={"control_mode": 1}, lifetime=3),
        ],
        10000,
        {},
        {"control_mode": 1},
    )
    with playing(stage.project, stage / "training", play, scene=stage.scene) as peer:
        info = peer.greet("binary1")
        assert "encoding" not in info
        assert info["n_agents"] == 1
        assert peer.old_reset()["obs"] == [{"obs": [0, 0]}]
        answers = [peer.old_step([{"kick": 2}]) for _ in range(3)]
        assert [answer["obs"][0]["obs"][1] for answer in answers] == [4, 2, 0]
        assert [answer["done"][0] for answer in answers] == [False, True, True]
        peer.say(type="call", method="get_path")
        assert peer.hear() == {"type": "call", "returns": ["/root/Stage/Ann"]}
        if is_typed:
            (info,) = peer.old_step([{"kick": 0}])["info"]
            assert info["members"] == len(MEMBERS)
            assert set(METHODS) - set(info["calls"]) == NOT_CALLED_WHILE_TRAINING
        assert not [line for line in peer.process.lines() if "ERROR" in line]


@pytest.mark.parametrize("stage", ["model"], indirect=True)
def test_a_model_plays_through_the_overridden_methods(stage: Stage) -> None:
    # Its first output is the first number that is seen.
    model = models.linear(stage / "model.onnx", [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    found = stage.play(
        actor("Ann", SEES, KICK, number=2),
        actor("Bob", SEES, KICK, number=3),
        onnx_model_path=model,
        ticks=5,
    )
    assert found.errors == []
    assert found.of("Ann", "kick") == [(2 + 5) % 3] * 2
    assert found.heuristics == {"Ann": "model", "Bob": "human"}


@pytest.mark.parametrize("stage", ["setup"], indirect=True)
def test_a_sync_that_is_set_up_by_the_game(stage: Stage) -> None:
    play = stage.file([actor("Ann", SEES, KICK)], 10000, {}, {"control_mode": 1})
    with playing(stage.project, stage / "training", play, scene=stage.scene) as peer:
        assert peer.greet("binary1")["encoding"] == "binary1"
        assert peer.reset()[0].obs == {"obs": [0.0, 0.0]}
        assert peer.step(1)[0].obs == {"obs": [0.0, 4.0]}
        assert not [line for line in peer.process.lines() if "ERROR" in line]


@pytest.mark.parametrize("stage", ["without_super"], indirect=True)
def test_every_method_without_super(stage: Stage) -> None:
    """A Sync that does everything itself, in the words of an older addon."""
    play = stage.file([actor("Ann", SEES, KICK)], 10000, {}, {"control_mode": 1})
    with playing(stage.project, stage / "training", play, scene=stage.scene) as peer:
        assert peer.greet("binary1")["n_agents"] == 1
        peer.old_reset()
        ages = [peer.old_step([{"kick": 1}])["obs"][0]["obs"][1] for _ in range(3)]
        assert [later - first for first, later in itertools.pairwise(ages)] == [4, 4]
        assert not [line for line in peer.process.lines() if "ERROR" in line]


@pytest.mark.parametrize("stage", ["exchange"], indirect=True)
def test_the_exchange_with_the_trainer_without_super(stage: Stage) -> None:
    play = stage.file([actor("Ann", SEES, KICK)], 10000, {}, {"control_mode": 1})
    with playing(stage.project, stage / "training", play, scene=stage.scene) as peer:
        peer.greet("binary1")
        assert peer.old_reset()["obs"] == [{"obs": [0, 0]}]
        answers = [peer.old_step([{"kick": 1}]) for _ in range(3)]
        assert [answer["obs"][0]["obs"][1] for answer in answers] == [4, 8, 12]
        assert answers[0]["info"] == [{"mine": True}]
        peer.say(type="close")
        assert peer.process.wait("its end", 10.0) == 0
        assert not [line for line in peer.process.lines() if "ERROR" in line]
