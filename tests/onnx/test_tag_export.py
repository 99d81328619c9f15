"""A tag policy as a graph acts as the policy does; one that does not is noticed."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from estragon.onnx.compare import Engine, GodotRuntime, OnnxRuntime
from estragon.onnx.metadata import read_metadata as metadata
from estragon.onnx.tag_export import OPSET, check_model, sample_observations, tag_model
from estragon.onnx.tag_export import load_exported as policy_in
from estragon.support.errors import UserError
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.layout import load_layouts
from estragon.tag.rules import ROLES, Role, load_rules

RULES = load_rules()
LAYOUTS = load_layouts("colonnade,random:3", RULES)


def lively(role: Role, seed: int) -> FrozenPolicy:
    """A policy with opinions, and with observations that are cut off."""
    policy = FrozenPolicy.untrained(RULES, role, seed, hidden=32)
    random = np.random.default_rng(seed)
    size = RULES.observation.size
    policy.mean = random.normal(0.0, 0.3, size).astype(np.float32)
    policy.scale = random.uniform(0.02, 1.0, size).astype(np.float32)
    weight, bias = policy.weights[-1]
    policy.weights[-1] = (
        random.normal(0.0, 1.0, weight.shape).astype(np.float32),
        random.normal(0.0, 1.0, bias.shape).astype(np.float32),
    )
    return policy


def written(policy: FrozenPolicy, folder: Path, **about: str) -> Path:
    path = folder / "policy.onnx"
    path.write_bytes(tag_model(policy, RULES, about).SerializeToString())
    return path


@pytest.mark.parametrize("role", ROLES)
def test_it_acts_as_the_policy_in_both_engines(
    role: Role, godot_runtime: GodotRuntime, onnx_runtime: OnnxRuntime, tmp_path: Path
) -> None:
    policy = lively(role, seed=4)
    path = written(policy, tmp_path)
    observations = sample_observations(policy, RULES, LAYOUTS)
    is_role = observations[: len(observations) // 2, RULES.field(f"is_{role}").start]
    assert (is_role == 1.0).all()
    actions = policy.act(observations)
    assert len(np.unique(actions[:, 2])) == 2, "it jumps now and then"
    assert len(np.unique(actions[:, 0].round(4))) > 100
    engines: tuple[Engine, ...] = (onnx_runtime, godot_runtime)
    for engine in engines:
        engine.load(path)
        assert check_model("it", engine, policy, observations) < 1e-4


def test_another_policy_is_noticed(onnx_runtime: OnnxRuntime, tmp_path: Path) -> None:
    onnx_runtime.load(written(lively("seeker", seed=4), tmp_path))
    other = lively("seeker", seed=5)
    observations = sample_observations(other, RULES, LAYOUTS)
    with pytest.raises(UserError, match=r"it: actions differ from .*; not written"):
        check_model("it", onnx_runtime, other, observations)


def test_another_judgement_is_noticed(onnx_runtime: OnnxRuntime, tmp_path: Path) -> None:
    policy = lively("hider", seed=4)
    onnx_runtime.load(written(policy, tmp_path))
    policy.weights[-1][1][-1] += 0.01
    observations = sample_observations(policy, RULES, LAYOUTS)
    with pytest.raises(UserError, match=r"it: values differ from .* by 0\.01; not"):
        check_model("it", onnx_runtime, policy, observations)


def test_ports_opset_and_metadata(tmp_path: Path) -> None:
    path = written(lively("hider", seed=1), tmp_path, role="hider", run="a run")
    model = onnx.load(path)
    assert [port.name for port in model.graph.input] == ["obs", "state_ins"]
    assert [port.name for port in model.graph.output] == ["output", "state_outs", "value"]
    assert model.opset_import[0].version == OPSET
    assert metadata(path) == {"role": "hider", "run": "a run"}


def test_no_number_is_lost_on_the_way(tmp_path: Path) -> None:
    policy = lively("hider", seed=2)
    found = policy_in(written(policy, tmp_path, role="hider", agent_steps="7"), RULES)
    assert (found.role, found.trained_steps) == ("hider", 7)
    pairs = [(found.mean, policy.mean), (found.scale, policy.scale), (found.moves, policy.moves)]
    for ours, right in zip(found.weights, policy.weights, strict=True):
        pairs += zip(ours, right, strict=True)
    for ours_numbers, right_numbers in pairs:
        assert np.array_equal(ours_numbers, right_numbers)
