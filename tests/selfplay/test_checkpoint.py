"""A run on disk: plain data, whole, and refused in one line when it is anything else."""

import io
import pickle
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from estragon.selfplay.checkpoint import FORMAT, VERSION, load_checkpoint, save_checkpoint
from estragon.support.errors import UserError
from tests.selfplay.staging import differences

CONTENTS: dict[str, Any] = {
    "weights": torch.arange(6000, dtype=torch.float32),
    "steps": 12,
    "names": ["0%", "100%"],
    "nested": [{"a": torch.zeros(3, dtype=torch.uint8)}, [1.5, "x"]],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "state.pt"
    save_checkpoint(path, CONTENTS)
    return path


def refused(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(UserError, match=re.escape(str(path))) as refusal:
        load_checkpoint(path)
    assert "\n" not in str(refusal.value)
    assert path.read_bytes() == before


def test_what_is_saved_comes_back(path: Path) -> None:
    loaded = load_checkpoint(path)
    assert not differences(loaded, {"format": FORMAT, "version": VERSION, **CONTENTS})
    assert torch.load(path, weights_only=True)["steps"] == 12


def test_it_is_refused_at_every_length(path: Path) -> None:
    whole = path.read_bytes()
    for length in {0, 1, 4, len(whole) - 1, *range(0, len(whole), 499)}:
        path.write_bytes(whole[:length])
        refused(path)


def test_a_flipped_bit_is_noticed(path: Path) -> None:
    """Else the run would go on, to other bits."""
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    for place in random.integers(0, len(whole), 60):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << random.integers(8)
        path.write_bytes(damaged)
        try:
            loaded = load_checkpoint(path)
        except UserError:
            continue
        assert not differences(loaded, {"format": FORMAT, "version": VERSION, **CONTENTS}), place


def test_any_first_byte_but_its_own_is_refused_as_ours(path: Path) -> None:
    whole = path.read_bytes()
    for value in range(256):
        if value != whole[0]:
            path.write_bytes(bytes([value]) + whole[1:])
            refused(path)


class Trap:
    """Leaves a file behind where it is unpickled."""

    def __init__(self, sprung: Path) -> None:
        self.sprung = sprung

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Path]]:
        return (Path.touch, (self.sprung,))


def saved_by_torch(contents: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(contents, stream, **options)
    return stream.getvalue()


def a_zip() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("data.pkl", "x")
    return stream.getvalue()


@pytest.mark.parametrize(
    "make",
    [
        pickle.dumps,
        lambda trap: saved_by_torch({"format": FORMAT, "version": VERSION, "x": trap}),
        lambda trap: saved_by_torch(trap, _use_new_zipfile_serialization=False),
        lambda _: saved_by_torch({"weights": torch.zeros(3)}),
        lambda _: saved_by_torch(torch.zeros(3)),
        lambda _: saved_by_torch([1, 2]),
        lambda _: saved_by_torch({"format": "somebody else's"}),
        lambda _: saved_by_torch({"format": torch.zeros(3)}),
        lambda _: saved_by_torch({"format": FORMAT}),
        lambda _: saved_by_torch({"format": FORMAT, "version": 99}),
        lambda _: a_zip(),
        lambda _: b"agent_steps,a\n1,2\n",
    ],
)
def test_anything_else_is_refused_and_never_runs(
    make: Callable[[Trap], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "state.pt"
    path.write_bytes(make(Trap(tmp_path / "sprung")))
    refused(path)
    assert not (tmp_path / "sprung").exists()


def test_a_missing_one_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read checkpoint .*state\.pt: No such file"):
        load_checkpoint(tmp_path / "state.pt")
