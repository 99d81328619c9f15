"""A game with a window goes on drawing while its trainer thinks, and nothing moves meanwhile."""

import sys
import time
from pathlib import Path

import pytest

from estragon.godot.display import display
from tests.godot.addon.peer import Peer, playing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is a display")
IDLE = (0.0, 0.0, 0.0)


def tell(peer: Peer, method: str) -> int:
    peer.say(type="call", method=method)
    told: int = peer.hear()["returns"][0]
    return told


def test_it_draws_on_while_it_waits(counter: Path, tmp_path: Path) -> None:
    with display(640, 480) as env, playing(counter, tmp_path, window=env) as peer:
        peer.greet("binary1")
        peer.reset()
        assert [row.reward for row in peer.step(*IDLE)] == [4]
        frames, age = tell(peer, "tell_frames"), tell(peer, "tell_age")
        for asked in range(30):
            time.sleep(1.0)
            drawn = tell(peer, "tell_frames") - frames
            if drawn >= 3 + asked:  # should the question itself be what draws
                break
        assert drawn >= 3 + asked
        assert tell(peer, "tell_age") == age
        assert [row.reward for row in peer.step(*IDLE)] == [4]
        peer.connection.close()
        assert peer.process.wait("its end", 10.0) == 1
