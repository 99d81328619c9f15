"""F3 shows what an agent sees and does, whoever plays it; Tab goes to the next."""

import contextlib
import sys

import pytest

from estragon.godot.display import display
from tests.godot.addon import models
from tests.godot.addon.cast import KICK, MOVE, ONNX, SEES, Stage, actor, told
from tests.godot.addon.peer import playing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is a display")


def test_it_is_shown_for_every_agent_and_hidden_again(stage: Stage) -> None:
    rival = {"control_mode": ONNX, "onnx_model_path": str(stage / "rival.onnx")}
    models.linear(stage / "rival.onnx", [[0.01] * 3] * 2, value=0.5)
    actors = [
        actor("Pupil", SEES, KICK),
        actor("Rival", {"obs": [0.5, "count"]}, KICK, set=rival, is_3d=True),
        actor("Person", {"obs": [-0.5], "sky": ["nan", 1000]}, MOVE, set={"control_mode": 1}),
    ]
    keys = {6: "F3", 10: "Tab", 14: "Tab", 18: "Tab", 22: "F3"}
    names = ["before", "rival", "pupil", "person", "rival_again", "after"]
    pictures = {name: stage / f"{name}.png" for name in names}
    events: dict[str, list[dict[str, str]]] = {
        str(tick): [{"do": "press", "key": key}] for tick, key in keys.items()
    }
    for number, picture in enumerate(pictures.values()):
        events[str(5 + 4 * number)] = [{"do": "picture", "to": str(picture)}]
    play = stage.file(actors, 30, events, {"control_mode": 1})
    with (
        display(640, 360) as env,
        playing(stage.project, stage.folder, play, "--resolution", "640x360", window=env) as peer,
    ):
        peer.greet("binary1")
        peer.reset()
        with contextlib.suppress(EOFError):
            while True:
                peer.step(1)
        found = told(peer.process.lines())
    assert not [line for line in found.errors if "V-Sync" not in line]
    assert found.acts["Rival"]
    seen = [picture.read_bytes() for picture in pictures.values()]
    assert seen[0] == seen[-1]
    assert len(set(seen)) == len(seen) - 1
