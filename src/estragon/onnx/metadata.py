"""What a policy file says about itself, and whether it fits a game.

An ONNX file has room for text by key. Every export fills in the same keys, which `estragon onnx
run`, `estragon godot probe` and the addon show; files of other exporters may lack all of them.
"""

import importlib.metadata
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from estragon import __version__
from estragon.support.errors import UserError

LARGEST_FILE = 2**31
Ports = dict[str, dict[str, Any]]
"""Observations by key, as games announce them: `space` is box or discrete, `size` a list."""
Layout = Sequence[Mapping[str, Any]]
"""Actions in the game's order: `action_type`, `size`, and `key` where it is known."""


def about_policy(
    *,
    algorithm: str,
    trainer: str,
    observations: Ports,
    actions: Layout,
    normalization: str,
    memory: int,
    training_steps: int | None,
    packages: Sequence[str] = (),
) -> dict[str, str]:
    """The metadata of an exported policy; `packages` are those whose version matters."""
    versions = {"estragon": __version__}
    versions |= {name: importlib.metadata.version(name) for name in packages}
    found = {
        "algorithm": algorithm,
        "trainer": trainer,
        "observation_space": json.dumps(observations),
        "action_space": json.dumps([dict(each) for each in actions]),
        "normalization": normalization,
        "memory": str(memory),
        "versions": json.dumps(versions),
    }
    if training_steps is not None:
        found["training_steps"] = str(training_steps)
    return found


def with_metadata(data: bytes, about: Mapping[str, str]) -> bytes:
    """The content of an ONNX file with these entries added or replaced."""
    import onnx

    model = onnx.load_from_string(data)
    kept = {each.key: each.value for each in model.metadata_props} | dict(about)
    onnx.helper.set_model_props(model, kept)
    changed: bytes = model.SerializeToString(deterministic=True)
    return changed


def read_model(path: Path) -> Any:
    """The file as onnx's ModelProto, without what lies in other files; UserError if it is none."""
    import onnx

    try:
        size = path.stat().st_size
        data = b"" if size > LARGEST_FILE else path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    if size > LARGEST_FILE:
        raise UserError(f"{path} is larger than an ONNX file may be ({LARGEST_FILE >> 30} GB)")
    try:
        model = onnx.load_from_string(data)
    except Exception as error:  # protobuf's DecodeError, which has no types
        raise UserError(f"{path} is not an ONNX file: {error}") from error
    if not model.graph.output:
        raise UserError(f"{path} is not an ONNX file: it has no output")
    return model


def read_metadata(path: Path) -> dict[str, str]:
    """What a file says about itself; empty if it says nothing."""
    return {entry.key: entry.value for entry in read_model(path).metadata_props}


def describe(metadata: Mapping[str, Any]) -> str:
    """In one line, for people: the algorithm, its steps, and what it sees and does."""
    if "algorithm" not in metadata:
        return "no metadata"
    steps = metadata.get("training_steps", "")
    parts = [
        metadata["algorithm"],
        f"{int(steps):,} steps" if steps.isdecimal() else "",
        f"sees {describe_observations(_loaded(metadata, 'observation_space', dict))}",
        f"does {describe_actions(_loaded(metadata, 'action_space', list))}",
        metadata.get("quantization", ""),
    ]
    return ", ".join(part for part in parts if part)


def describe_observations(observations: Mapping[str, Any]) -> str:
    """For example obs: 5 numbers, near: one of 4."""
    return "; ".join(
        f"{key}: one of {_size(each)}"
        if each.get("space") == "discrete"
        else f"{key}: {'×'.join(map(str, each.get('size', [])))} numbers"
        for key, each in observations.items()
        if isinstance(each, Mapping)
    )


def describe_actions(actions: Sequence[Any]) -> str:
    """For example move: 2 continuous; jump: 2 discrete."""
    return "; ".join(
        (f"{each['key']}: " if each.get("key") else "")
        + f"{each.get('size')} {each.get('action_type')}"
        for each in actions
        if isinstance(each, Mapping)
    )


def misfit(metadata: Mapping[str, str], observations: Ports, actions: Layout) -> str:
    """Why a file cannot play a game with these spaces, naming both; empty if it can.

    A file without metadata fits as far as it can be told.
    """
    seen = _loaded(metadata, "observation_space", dict)
    if seen and not _sees_alike(seen, observations):
        return (
            f"the model sees {describe_observations(seen)}, "
            f"the game has {describe_observations(observations)}"
        )
    done = _loaded(metadata, "action_space", list)
    if done and not _does_alike(done, actions):
        return (
            f"the model does {describe_actions(done)}, the game takes {describe_actions(actions)}"
        )
    return ""


def check_models(
    models: Sequence[Path], spaces: Sequence[Mapping[str, Any]]
) -> list[dict[str, str]]:
    """What files are, and which policies of a game they fit; for the report of a probe.

    Args:
        models: the files.
        spaces: `policy`, `observation_space` and `action_space` of each, as `probe` reports them.
    """
    found = []
    for path in models:
        model = read_model(path)
        metadata = {entry.key: entry.value for entry in model.metadata_props}
        if "observation_space" not in metadata:
            metadata["observation_space"] = json.dumps(_ports_of(model))
        problems = {
            each["policy"]: misfit(
                metadata,
                {
                    seen["key"]: {
                        "space": "discrete" if seen["space"] == "discrete" else "box",
                        "size": seen["size"] if isinstance(seen["size"], list) else [seen["size"]],
                    }
                    for seen in each["observation_space"]
                },
                each["action_space"],
            )
            for each in spaces
        }
        fits = [policy for policy, problem in problems.items() if not problem]
        found.append(
            {
                "file": str(path),
                "about": describe(metadata),
                "fits": ", ".join(fits),
                "problem": "" if fits else next(iter(problems.values()), "no policy to compare"),
            }
        )
    return found


def _ports_of(model: Any) -> Ports:
    """What a file without metadata sees, as far as its inputs tell."""
    constants = {each.name for each in model.graph.initializer}
    found: Ports = {}
    for port in model.graph.input:
        if port.name in constants or port.name == "seq_lens" or port.name.startswith("state_in"):
            continue
        sizes = [size.dim_value for size in port.type.tensor_type.shape.dim[1:]]
        if not all(sizes):
            return {}
        found[port.name] = {"space": "box", "size": sizes}
    return found


def _sees_alike(model: Mapping[str, Any], game: Ports) -> bool:
    """One input takes all observations of a game, one after another."""
    if len(model) == 1:
        (only,) = model.values()
        if len(game) != 1 or set(model) == set(game):
            return _count(only) == sum(map(_count, game.values()))
    return set(model) == set(game) and all(_count(model[key]) == _count(game[key]) for key in game)


def _does_alike(model: Layout, game: Layout) -> bool:
    """Trainers that have one continuous action are given all parts of mixed ones by it."""
    if [_kind(each) for each in model] == [_kind(each) for each in game]:
        named = all(each.get("key") for each in model)
        return not named or [each["key"] for each in model] == [each["key"] for each in game]
    only = model[0] if len(model) == 1 else {}
    mixed = any(each["action_type"] == "continuous" for each in game)
    total = sum(int(each["size"]) for each in game)
    return mixed and _kind(only) == ("continuous", total)


def _kind(action: Mapping[str, Any]) -> tuple[Any, Any]:
    return action.get("action_type"), action.get("size")


def _size(port: Mapping[str, Any]) -> Any:
    size = port.get("size")
    return size[0] if isinstance(size, list) and size else size


def _count(port: Any) -> int:
    """How many numbers a game sends for it."""
    if not isinstance(port, Mapping) or port.get("space") == "discrete":
        return 1
    count = 1
    for size in port.get("size", []):
        count *= int(size)
    return count


def _loaded(metadata: Mapping[str, Any], key: str, kind: type[Any]) -> Any:
    """An entry that is JSON, or was; empty where it is missing or damaged."""
    found = metadata.get(key, "")
    try:
        found = json.loads(found) if isinstance(found, str) else found
    except ValueError:
        return kind()
    return found if isinstance(found, kind) else kind()
