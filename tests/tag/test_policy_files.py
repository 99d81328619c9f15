"""Policy files: whole, plain, and refused with one clear line when they do not fit."""

import contextlib
import io
import pickle
import re
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from estragon.support.errors import UserError
from estragon.tag import policy_files
from estragon.tag.arenas import Arenas
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.matches import load_player
from estragon.tag.policy_files import LARGEST_FILE, load_policies, load_policy, save_policies
from estragon.tag.rules import ROLES, Role, load_rules

RULES = load_rules()
SUFFIXES = (".npz", ".pt")
each_suffix = pytest.mark.parametrize("suffix", SUFFIXES)


@pytest.fixture
def policy() -> FrozenPolicy:
    return FrozenPolicy.untrained(RULES, "seeker", seed=1, hidden=16)


def saved(policy: FrozenPolicy, path: Path) -> Path:
    save_policies(path, {policy.role: policy}, RULES)
    return path


def refused(path: Path, complaint: str = "") -> None:
    """The file is refused, by name and in one line."""
    with pytest.raises(UserError, match=re.escape(str(path))) as refusal:
        load_policies(path, RULES)
    assert complaint in str(refusal.value)
    assert "\n" not in str(refusal.value)


def seen_by(agent: int, count: int = 64) -> np.ndarray:
    return Arenas(count).reset()[:, agent].copy()


@each_suffix
def test_a_saved_policy_plays_the_same(policy: FrozenPolicy, tmp_path: Path, suffix: str) -> None:
    path = saved(policy, tmp_path / f"policy{suffix}")
    seen = seen_by(0)
    loaded = load_player(str(path), RULES, "seeker")
    assert np.array_equal(loaded.act(seen), policy.act(seen))
    assert loaded.name == str(path)
    assert isinstance(loaded, FrozenPolicy)
    assert np.array_equal(loaded.scores(seen), policy.scores(seen))


def test_both_formats_of_a_policy_act_identically(policy: FrozenPolicy, tmp_path: Path) -> None:
    policy.trained_steps = 123_456
    policy.mean += 0.25
    policy.scale *= 0.5
    seen = seen_by(0)
    one, other = (
        load_policy(saved(policy, tmp_path / f"policy{suffix}"), RULES, "seeker")
        for suffix in SUFFIXES
    )
    assert np.array_equal(one.scores(seen), other.scores(seen))
    assert np.array_equal(one.act(seen), other.act(seen))
    assert one.trained_steps == other.trained_steps == 123_456


@each_suffix
def test_a_file_with_both_roles_serves_both(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"policy{suffix}"
    policies: dict[Role, FrozenPolicy] = {
        role: FrozenPolicy.untrained(RULES, role, seed=number, hidden=16)
        for number, role in enumerate(ROLES)
    }
    policies["hider"].trained_steps = 7
    save_policies(path, policies, RULES)
    loaded = load_policies(path, RULES)
    assert list(loaded) == list(ROLES)
    assert [loaded[role].trained_steps for role in ROLES] == [0, 7]
    for agent, role in enumerate(ROLES):
        seen = seen_by(agent)
        player = load_player(str(path), RULES, role)
        assert np.array_equal(player.act(seen), policies[role].act(seen))
    assert not np.array_equal(loaded["seeker"].act(seen), loaded["hider"].act(seen))


def test_the_torch_file_holds_tensors_and_plain_data_alone(
    policy: FrozenPolicy, tmp_path: Path
) -> None:
    path = saved(policy, tmp_path / "policy.pt")
    contents = torch.load(path, weights_only=True)
    assert isinstance(contents.pop("header"), str)
    assert contents
    assert all(isinstance(value, torch.Tensor) for value in contents.values())
    assert all(value.dtype == torch.float32 for value in contents.values())


@each_suffix
def test_a_policy_of_the_other_role_is_refused(
    policy: FrozenPolicy, tmp_path: Path, suffix: str
) -> None:
    path = saved(policy, tmp_path / f"policy{suffix}")
    with pytest.raises(UserError, match="trained as seeker, not as hider"):
        load_player(str(path), RULES, "hider")


@each_suffix
def test_a_policy_with_other_eyes_is_refused(
    policy: FrozenPolicy, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"policy{suffix}"
    version, size = RULES.observation.version + 1, RULES.observation.size
    eyes = msgspec.structs.replace(RULES.observation, version=version)
    other = msgspec.structs.replace(RULES, observation=eyes)
    save_policies(path, {"seeker": policy}, other)
    refused(path, f"observation version {version} of size {size}")
    with pytest.raises(UserError, match="train it again"):
        load_policies(path, RULES)


@each_suffix
def test_a_policy_cut_short_is_refused_at_every_length(
    policy: FrozenPolicy, tmp_path: Path, suffix: str
) -> None:
    path = saved(policy, tmp_path / f"policy{suffix}")
    whole = path.read_bytes()
    for length in {0, 1, 4, 100, len(whole) - 1, *range(0, len(whole) - 1, 211)}:
        path.write_bytes(whole[:length])
        refused(path, "is not an Estragon policy")


@each_suffix
def test_a_policy_with_a_damaged_byte_is_refused(
    policy: FrozenPolicy, tmp_path: Path, suffix: str
) -> None:
    """Wherever it is: zip headers, array headers, pickles, and the weights themselves."""
    path = saved(policy, tmp_path / f"policy{suffix}")
    whole = path.read_bytes()
    for place in middles(path):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        refused(path)


def middles(path: Path) -> list[int]:
    """The middle byte of everything that is stored in an archive."""
    whole = path.read_bytes()
    found = []
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            start = member.header_offset
            name, extra = struct.unpack("<HH", whole[start + 26 : start + 30])
            found.append(start + 30 + name + extra + member.file_size // 2)
    return found


@each_suffix
def test_random_damage_is_refused(policy: FrozenPolicy, tmp_path: Path, suffix: str) -> None:
    path = saved(policy, tmp_path / f"policy{suffix}")
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    for _ in range(150):
        damaged = bytearray(whole)
        for place in random.integers(0, len(whole), 30):
            damaged[place] ^= random.integers(1, 256)
        path.write_bytes(damaged)
        refused(path)


@each_suffix
def test_damage_to_the_first_bytes_is_refused(
    policy: FrozenPolicy, tmp_path: Path, suffix: str
) -> None:
    """By them torch tells its new format from the old one, whose reader has complaints of its own.

    A file that is read nevertheless has to be the policy it was.
    """
    path = saved(policy, tmp_path / f"policy{suffix}")
    whole = path.read_bytes()
    seen = seen_by(0, 4)
    for place in range(4):
        for value in range(0, 256, 3):
            damaged = bytearray(whole)
            damaged[place] = value
            path.write_bytes(damaged)
            with contextlib.suppress(UserError):
                read = load_policy(path, RULES, "seeker")
                assert np.array_equal(read.scores(seen), policy.scores(seen))


def test_damage_to_an_arrays_description_is_refused(policy: FrozenPolicy, tmp_path: Path) -> None:
    """Numpy reads it as a piece of Python before anything else is checked."""
    path = saved(policy, tmp_path / "policy.npz")
    whole = path.read_bytes()
    start = whole.index(b"{'descr'", whole.index(b"seeker.weight_0.npy"))
    for place in range(start, whole.index(b"}", start)):
        for character in b"('\\\n":
            damaged = bytearray(whole)
            damaged[place] = character
            path.write_bytes(damaged)
            if damaged != whole:
                refused(path)


class Trap:
    """Leaves a file behind where it is unpickled."""

    def __init__(self, sprung: Path) -> None:
        self.sprung = sprung

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Path]]:
        return (Path.touch, (self.sprung,))


def raw_pickle(trap: Trap) -> bytes:
    return pickle.dumps(trap)


def torch_with_a_trap(trap: Trap) -> bytes:
    stream = io.BytesIO()
    torch.save({"header": "{}", "seeker.mean": trap}, stream)
    return stream.getvalue()


def old_torch_with_a_trap(trap: Trap) -> bytes:
    stream = io.BytesIO()
    torch.save(trap, stream, _use_new_zipfile_serialization=False)
    return stream.getvalue()


def old_torch_that_looks_like_a_zip(trap: Trap) -> bytes:
    """A pickle with an archive behind it: zipfile reads the end, an unpickler the beginning."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("header", "{}")
    return old_torch_with_a_trap(trap) + stream.getvalue()


def objects_of_numpy(trap: Trap) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, header=np.array([trap], dtype=object))
    return stream.getvalue()


def arrays_of_somebody_else(_: Trap) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, weights=np.zeros(3))
    return stream.getvalue()


def one_plain_array(_: Trap) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.zeros(3))
    return stream.getvalue()


def tensors_of_somebody_else(_: Trap) -> bytes:
    stream = io.BytesIO()
    torch.save({"weights": torch.zeros(3)}, stream)
    return stream.getvalue()


def a_lone_tensor(_: Trap) -> bytes:
    stream = io.BytesIO()
    torch.save(torch.zeros(3), stream)
    return stream.getvalue()


def plain_data_instead_of_tensors(_: Trap) -> bytes:
    stream = io.BytesIO()
    torch.save({"header": "{}", "seeker.mean": [1.0, 2.0]}, stream)
    return stream.getvalue()


@each_suffix
@pytest.mark.parametrize(
    "make",
    [
        raw_pickle,
        torch_with_a_trap,
        old_torch_with_a_trap,
        old_torch_that_looks_like_a_zip,
        objects_of_numpy,
        arrays_of_somebody_else,
        one_plain_array,
        tensors_of_somebody_else,
        a_lone_tensor,
        plain_data_instead_of_tensors,
    ],
)
def test_a_foreign_file_is_refused_and_never_runs(
    make: Callable[[Trap], bytes], tmp_path: Path, suffix: str
) -> None:
    sprung = tmp_path / "sprung"
    path = tmp_path / f"policy{suffix}"
    path.write_bytes(make(Trap(sprung)))
    refused(path, "is not an Estragon policy")
    assert not sprung.exists()


def test_the_trap_is_one(tmp_path: Path) -> None:
    pickle.loads(raw_pickle(Trap(tmp_path / "sprung")))  # noqa: S301
    assert (tmp_path / "sprung").exists()


@pytest.mark.parametrize(("written", "named"), [SUFFIXES, SUFFIXES[::-1]])
def test_a_file_under_the_other_formats_name_is_refused(
    policy: FrozenPolicy, tmp_path: Path, written: str, named: str
) -> None:
    path = tmp_path / f"policy{named}"
    path.write_bytes(saved(policy, tmp_path / f"other{written}").read_bytes())
    refused(path, "is not an Estragon policy")


@each_suffix
@pytest.mark.parametrize(
    "change",
    ["missing", "extra", "shape", "type", "nan", "infinite", "scale", "moves", "no moves", "mean"],
)
def test_weights_that_do_not_fit_are_refused(
    policy: FrozenPolicy, tmp_path: Path, change: str, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if change == "missing":
        parts = policy_files._parts
        monkeypatch.setattr(
            policy_files,
            "_parts",
            lambda own: {name: part for name, part in parts(own).items() if name != "bias_1"},
        )
    elif change == "extra":
        policy.weights.append(policy.weights[-1])
    elif change == "shape":
        policy.weights[1] = (policy.weights[1][0][:-1], policy.weights[1][1])
    elif change == "type":
        policy.mean = policy.mean.astype(np.float64)
    elif change == "nan":
        policy.weights[0][0][3, 3] = np.nan
    elif change == "infinite":
        policy.weights[-1][1][0] = np.inf
    elif change == "scale":
        policy.scale[5] = 0.0
    elif change == "moves":
        policy.moves = policy.moves[:-1]
    elif change == "no moves":
        policy.moves = np.zeros((0, 2), dtype=np.float32)
    else:
        policy.mean = policy.mean[:-1]
    refused(saved(policy, tmp_path / f"policy{suffix}"))


HEADERS: list[dict[str, Any]] = [
    {"format": "somebody-else's"},
    {"version": 99},
    {"layers": 0},
    {"layers": 2},
    {"activation": "tanh"},
    {"trained_steps": {}},
    {"trained_steps": {"referee": 3}},
    {"trained_steps": {"hider": 3}},
    {"wings": 2},
]


@each_suffix
@pytest.mark.parametrize("change", HEADERS, ids=str)
def test_a_header_that_says_something_else_is_refused(
    policy: FrozenPolicy,
    tmp_path: Path,
    suffix: str,
    change: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = msgspec.to_builtins
    monkeypatch.setattr(msgspec, "to_builtins", lambda header: plain(header) | change)
    refused(saved(policy, tmp_path / f"policy{suffix}"))


@each_suffix
def test_a_file_too_large_is_not_even_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"policy{suffix}"
    with path.open("wb") as stream:
        stream.truncate(LARGEST_FILE + 1)
    refused(path, "64 MB")


@each_suffix
def test_a_small_file_that_unpacks_to_a_large_one_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"policy{suffix}"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("header.npy", bytes(LARGEST_FILE + 1))
    assert path.stat().st_size < LARGEST_FILE // 100
    refused(path, "is not an Estragon policy")


def test_without_torch_a_torch_file_is_refused_and_the_other_is_read(
    policy: FrozenPolicy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [saved(policy, tmp_path / f"policy{suffix}") for suffix in SUFFIXES]
    monkeypatch.setitem(sys.modules, "torch", None)
    load_policies(paths[0], RULES)
    with pytest.raises(UserError, match=r"needs torch; the \.npz beside it does not"):
        load_policies(paths[1], RULES)


def test_a_missing_file_says_what_a_player_can_be() -> None:
    with pytest.raises(UserError, match=r"nobody\.npz.*policy file, bot:random"):
        load_player("nobody.npz", RULES, "seeker")
    with pytest.raises(UserError, match=r"cannot read policy nobody\.npz"):
        load_policies(Path("nobody.npz"), RULES)
