"""Frames made wrong at random: the game carries on or ends with one line, and never hangs."""

import contextlib
import random
import struct
from pathlib import Path

import pytest

from tests.godot.addon.peer import playing

FRAMES = [
    b'{"type":"handshake","major_version":"0","minor_version":"7","encodings":["binary1"]}',
    b'{"type":"env_info"}',
    b'{"type":"reset","seed":7}',
    b'{"type":"reset","parameters":[{"speed":2.5,"map":"large"}]}',
    b'{"type":"parameters","agents":{"0":{"speed":2.5,"map":"large"}}}',
    b'{"type":"call","method":"tell_age"}',
    b'{"type":"action","action":[{"push":[0.5,0.25],"choice":1}]}',
    struct.pack("<BxxxI3f", 0x41, 1, 0.5, 0.25, 1.0),
]


def spoilt(chance: random.Random) -> bytes:
    """A frame with a few wrong bytes, too short, too long, or in pieces."""
    frame = bytearray(chance.choice(FRAMES))
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(frame) + 1)
        match chance.randrange(4):
            case 0:
                frame[at : at + 1] = chance.randbytes(1)
            case 1:
                frame[at:at] = chance.randbytes(chance.randint(1, 8))
            case 2:
                del frame[at:]
            case 3:
                frame[at:at] = chance.choice(FRAMES)[: chance.randint(1, 40)]
    return bytes(frame)


def fuzz(counter: Path, folder: Path, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    with playing(counter, folder) as peer:
        if chance.random() < 0.8:
            peer.greet(*(["binary1"] if chance.random() < 0.7 else []))
        with contextlib.suppress(OSError):
            for _ in range(8):
                peer.send(spoilt(chance))
            peer.say(type="close")
        status = peer.process.wait("its end", 20.0)
        said = [line for line in peer.process.lines() if line.startswith("Godot RL Agents: ")]
        assert (status, len(said)) in {(0, 0), (1, 1)}, said


@pytest.mark.parametrize("seed", range(6))
def test_it_ends_in_good_order(counter: Path, tmp_path: Path, seed: int) -> None:
    fuzz(counter, tmp_path, seed)


@pytest.mark.prove
def test_it_ends_in_good_order_again_and_again(counter: Path, tmp_path: Path) -> None:
    for seed in range(6, 300):
        fuzz(counter, tmp_path, seed)
