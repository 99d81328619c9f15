"""Models that plain Stable-Baselines3 saved, read without unpickling anything.

SB3 writes every attribute as JSON if it can, else pickled with a description beside it: the text of
a space, the name of a class. The descriptions are enough to build the usual networks again; their
tensors are loaded with `weights_only`. Networks of one's own code are not among them.
"""

import io
import json
import pickle
import re
import zipfile
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.torch_layers import CombinedExtractor, FlattenExtractor, NatureCNN

from estragon.support.errors import UserError
from estragon.trainers.sb3.algorithms import FlatExtractor, Sb3Algorithm, set_up

WEIGHTS = "policy.pth"
LARGEST_WEIGHTS = 2**31
MOST_LAYERS = 32
MOST_NUMBERS = 2**24
CLASSES: dict[str, Any] = {
    f"<class '{each.__module__}.{each.__qualname__}'>": each
    for each in (
        *(torch.nn.ReLU, torch.nn.Tanh, torch.nn.ELU, torch.nn.LeakyReLU, torch.nn.SiLU),
        *(torch.nn.GELU, torch.nn.Sigmoid, torch.nn.Identity),
        *(CombinedExtractor, FlattenExtractor, NatureCNN, FlatExtractor),
    )
}
"""What a description may name."""
OF_LEARNING = ("optimizer_class", "optimizer_kwargs")
SIZES = ("net_arch", "lstm_hidden_size", "features_dim", "cnn_output_dim", "n_lstm_layers")
NUMBER = re.compile(r"-?(?:inf|\d+\.?\d*(?:e[+-]?\d+)?)")
PART = re.compile(
    r"""\(?(['"])(?P<key>[^'"\\]+)\1[:,]\ (?:
    Box\((?P<low>[^()]+?),\ (?P<high>[^()]+?),\ \((?P<shape>[\d,\ ]*)\),\ (?P<dtype>\w+)\)
    |Discrete\((?P<count>\d+)\)
    )\)?(?:,\ |$)""",
    re.VERBOSE,
)


class PickledError(ValueError):
    """Its description is not enough to build it."""


def load_foreign(data: bytes, attributes: Any, algorithm: Sb3Algorithm) -> BaseAlgorithm:
    """A model that can act; PickledError, or UserError if its tensors do not fit.

    Args:
        data: the .zip.
        attributes: its `data`, as JSON has it.
        algorithm: which algorithm made it.
    """
    try:
        policy = _policy_name(attributes["policy_class"], algorithm)
        observations = _space(attributes["observation_space"])
        actions = _space(attributes["action_space"])
        arguments: dict[str, Any] = {"policy_kwargs": _policy_kwargs(attributes["policy_kwargs"])}
        steps = int(attributes.get("num_timesteps", 0))
        if attributes.get("use_sde") is True:
            arguments["use_sde"] = True
    except (KeyError, TypeError, AttributeError) as error:
        raise PickledError(f"no description of {error}") from error
    state = _weights(data)
    _check_sizes(arguments["policy_kwargs"], state)
    try:
        model = set_up(algorithm, {"policy": policy, **arguments}, observations, actions)
        model.policy.load_state_dict(state)
    except (RuntimeError, ValueError, AssertionError, TypeError, KeyError) as error:
        raise UserError(f"its tensors do not fit its description: {error}") from error
    model.num_timesteps = steps
    return model


def attributes_of(data: bytes) -> Any:
    """The attributes that SB3 wrote as JSON."""
    found = json.loads(data)
    if isinstance(found, dict):
        return found
    raise ValueError("not saved by Stable-Baselines3")


def _policy_name(described: Any, algorithm: Sb3Algorithm) -> str:
    """The name by which the algorithm knows the policy's class."""
    found = re.match(r"<function (\w+)\.__init__ at", described.get("__init__", ""))
    for name, kind in algorithm.cls.policy_aliases.items():
        if found and (kind.__module__, kind.__name__) == (described["__module__"], found[1]):
            return name
    raise PickledError(f"its policy is a class of {described['__module__']}")


def _policy_kwargs(described: Any) -> dict[str, Any]:
    found = {}
    for key, value in described.items():
        if key.startswith(":") or key in OF_LEARNING:
            continue
        if isinstance(value, str) and value not in CLASSES:
            raise PickledError(f"its {key} is {value[:80]}")
        found[key] = CLASSES[value] if isinstance(value, str) else value
    return found


def _space(described: Any) -> Any:
    kind = re.fullmatch(r"<class 'gym(?:nasium)?\.spaces\.\w+\.(\w+)'>", described[":type:"])
    match kind[1] if kind else None:
        case "Box":
            return _box(
                described["low"], described["high"], described["_shape"], described["dtype"]
            )
        case "Discrete" if str(described.get("start", 0)) == "0":
            return spaces.Discrete(_count(described["n"]))
        case "MultiDiscrete" if not set(_numbers(described.get("start", ""))) - {0.0}:
            return spaces.MultiDiscrete([_count(size) for size in _numbers(described["nvec"])])
        case "Dict":
            return _dict(described["spaces"])
    raise PickledError(f"a space like {described[':type:'][:80]}")


def _dict(text: str) -> spaces.Dict:
    inner = re.fullmatch(r"(?:OrderedDict\(\[(.*)\]\)|Dict\((.*)\)|\{(.*)\})", text, re.DOTALL)
    rest = next((each for each in inner.groups() if each is not None), "") if inner else ""
    parts: list[tuple[str, Any]] = []
    place = 0
    while found := PART.match(rest, place):
        place = found.end()
        if found["count"]:
            parts.append((found["key"], spaces.Discrete(_count(found["count"]))))
        else:
            shape = [int(size) for size in re.findall(r"\d+", found["shape"])]
            box = _box(found["low"], found["high"], shape, found["dtype"])
            parts.append((found["key"], box))
    if not parts or place != len(rest):
        raise PickledError(f"observations like {text[:80]}")
    return spaces.Dict(parts)


def _box(low: str, high: str, shape: list[int], dtype: str) -> spaces.Box:
    """Bounds that differ from number to number do not matter to networks, except for actions."""
    if int(np.prod(shape, dtype=object)) > MOST_NUMBERS or dtype not in ("float32", "uint8"):
        raise PickledError(f"numbers of {shape}, {dtype}")
    bounds = [set(_numbers(text)) for text in (low, high)]
    if dtype == "uint8":
        if bounds != [{0.0}, {255.0}]:
            raise PickledError("whole numbers other than 0 to 255")
        return spaces.Box(0, 255, tuple(shape), np.uint8)
    least, most = (next(iter(each)) if len(each) == 1 else None for each in bounds)
    if least is None or most is None or not least < most:
        least, most = -np.inf, np.inf
    return spaces.Box(least, most, tuple(shape), np.float32)


def _numbers(text: Any) -> list[float]:
    return [float(each) for each in NUMBER.findall(str(text))]


def _count(size: Any) -> int:
    count = int(size)
    if not 1 <= count <= MOST_NUMBERS:
        raise PickledError(f"{size} choices")
    return count


def _weights(data: bytes) -> dict[str, torch.Tensor]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if WEIGHTS not in archive.namelist():
            raise UserError(f"it has no {WEIGHTS}")
        if archive.getinfo(WEIGHTS).file_size > LARGEST_WEIGHTS:
            raise UserError(f"its {WEIGHTS} is larger than {LARGEST_WEIGHTS >> 30} GB")
        content = archive.read(WEIGHTS)
    try:
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        reason = str(error).splitlines()[0][:200]
        raise UserError(
            f"its {WEIGHTS} holds more than tensors, or is damaged: {reason}"
        ) from error
    if not isinstance(state, dict) or not all(
        isinstance(key, str) and isinstance(each, torch.Tensor) for key, each in state.items()
    ):
        raise UserError(f"its {WEIGHTS} holds more than tensors")
    return state


def _check_sizes(policy_kwargs: dict[str, Any], state: dict[str, torch.Tensor]) -> None:
    """A description may ask for any memory: networks must be as large as the tensors."""
    known = {size for tensor in state.values() for size in tensor.shape}
    known |= {factor * size for factor in (1, 2) for size in known} | set(range(MOST_LAYERS))
    extractor = policy_kwargs.get("features_extractor_kwargs") or {}
    declared = [policy_kwargs.get(key) for key in SIZES] + [extractor.get(key) for key in SIZES]
    widths = [size for each in declared for size in _integers(each)]
    if len(widths) > MOST_LAYERS or not set(widths) <= known:
        raise UserError(f"its tensors do not fit layers of {widths[:MOST_LAYERS]}")


def _integers(value: Any) -> list[int]:
    if isinstance(value, dict):
        return [size for each in value.values() for size in _integers(each)]
    if isinstance(value, list):
        return [size for each in value for size in _integers(each)]
    return [value] if isinstance(value, int) and not isinstance(value, bool) else []
