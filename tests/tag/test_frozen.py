"""Policy files: whole, plain, and refused with one clear line when they do not fit."""

import pickle
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest

from estragon.errors import UserError
from estragon.tag.arenas import Arenas
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.players import load_player
from estragon.tag.rules import load_rules

RULES = load_rules()


@pytest.fixture
def policy() -> FrozenPolicy:
    return FrozenPolicy.untrained(RULES, "seeker", seed=1)


def test_a_saved_policy_plays_the_same(policy: FrozenPolicy, tmp_path: Path) -> None:
    seen = Arenas(64).reset()[:, 0]
    path = tmp_path / "policy.npz"
    policy.save(path)
    actions = load_player(str(path), RULES, "seeker").act(seen)
    assert np.array_equal(actions, policy.act(seen))
    assert actions.shape == (64, 3)
    assert np.abs(actions).max() <= 1.0
    assert np.ptp(actions, axis=0).min() > 0.1, "it reacts to what it sees"


def test_it_sees_and_acts_in_its_heading_frame(policy: FrozenPolicy) -> None:
    """Turn the whole scene, but not the facing it is told: the action turns with the vectors."""
    seen = Arenas(1).reset()[:, 0].copy()
    forward = RULES.field("forward")
    policy.weights[0][0][forward] = 0.0
    policy.weights[-1][0][...] *= 0.1  # far from the limits, which are world-aligned
    turned = seen.copy()
    turned[:, forward] = np.stack([-seen[:, forward.stop - 1], seen[:, forward.start]], axis=1)
    for name in ("position", "velocity", "last_seen_relative"):
        start = RULES.field(name).start
        turned[:, start] = -seen[:, start + 2]
        turned[:, start + 2] = seen[:, start]
    one, other = policy.act(seen)[0], policy.act(turned)[0]
    assert other == pytest.approx([-one[1], one[0], one[2]], abs=1e-6)


def test_a_policy_of_the_other_role_is_refused(policy: FrozenPolicy, tmp_path: Path) -> None:
    path = tmp_path / "policy.npz"
    policy.save(path)
    with pytest.raises(UserError, match="trained as seeker, not as hider"):
        load_player(str(path), RULES, "hider")


def test_a_policy_with_other_eyes_is_refused(policy: FrozenPolicy, tmp_path: Path) -> None:
    path = tmp_path / "policy.npz"
    policy.header = msgspec.structs.replace(policy.header, observation_version=2)
    policy.save(path)
    with pytest.raises(UserError, match=r"observation version 2 of size 126.*train it again"):
        FrozenPolicy.load(path, RULES)


def test_a_damaged_policy_is_refused_at_every_length(policy: FrozenPolicy, tmp_path: Path) -> None:
    path = tmp_path / "policy.npz"
    policy.save(path)
    whole = path.read_bytes()
    for length in {0, 1, 4, 100, *range(0, len(whole) - 1, 4001)}:
        path.write_bytes(whole[:length])
        with pytest.raises(UserError, match="not an Estragon policy"):
            FrozenPolicy.load(path, RULES)
    random = np.random.default_rng(0)
    for _ in range(60):
        damaged = bytearray(whole)
        for place in random.integers(0, len(whole), 30):
            damaged[place] = random.integers(256)
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=re.escape(str(path))):
            FrozenPolicy.load(path, RULES)


def test_a_foreign_or_pickled_file_is_never_opened(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (tmp_path / "sprung",))  # type: ignore[return-value]

    pickled = tmp_path / "evil.npz"
    pickled.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(UserError, match="not an Estragon policy"):
        FrozenPolicy.load(pickled, RULES)
    np.savez(tmp_path / "objects.npz", header=np.array(["x"], dtype=object))
    with pytest.raises(UserError, match="not an Estragon policy"):
        FrozenPolicy.load(tmp_path / "objects.npz", RULES)
    np.savez(tmp_path / "foreign.npz", weights=np.zeros(3))
    with pytest.raises(UserError, match="not an Estragon policy"):
        FrozenPolicy.load(tmp_path / "foreign.npz", RULES)
    np.save(tmp_path / "plain.npy", np.zeros(3))
    with pytest.raises(UserError, match="not an Estragon policy"):
        FrozenPolicy.load(tmp_path / "plain.npy", RULES)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("change", ["missing", "extra", "shape", "type", "nan", "scale"])
def test_weights_that_do_not_fit_are_refused(
    policy: FrozenPolicy, tmp_path: Path, change: str
) -> None:
    path = tmp_path / "policy.npz"
    if change == "missing":
        policy.weights = policy.weights[:-1]
    elif change == "extra":
        policy.weights.append(policy.weights[-1])
    elif change == "shape":
        policy.weights[1] = (policy.weights[1][0][:-1], policy.weights[1][1])
    elif change == "type":
        policy.mean = policy.mean.astype(np.float64)
    elif change == "nan":
        policy.weights[0][0][3, 3] = np.nan
    else:
        policy.scale[5] = 0.0
    policy.save(path)
    with pytest.raises(UserError, match=re.escape(str(path))):
        FrozenPolicy.load(path, RULES)


def test_a_missing_file_says_what_a_player_can_be() -> None:
    with pytest.raises(UserError, match="give a policy file or bot:random"):
        load_player("nobody.npz", RULES, "seeker")
