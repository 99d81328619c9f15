"""A trained policy from a file, in Python: what `GodotRLModel` of the addon is in a game."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from gymnasium import spaces

from estragon.godot.user_data import resolve
from estragon.support.errors import UserError

KEY = "obs"


class GodotRLModel:
    """Predicts actions, deterministically; a policy with a memory remembers until `reset`."""

    def __init__(self, act: Any) -> None:
        """Use `load`."""
        self._act = act
        self._begins = True

    @classmethod
    def load(cls, path: str | Path, action_space: spaces.Space[Any] | None = None) -> Self:
        """Load a `.zip` of `estragon train`, or an `.onnx` file; the path may begin with user://.

        Args:
            path: the file.
            action_space: of the game, for an `.onnx` file with discrete actions.
        """
        file = resolve(path)
        if not file.is_file():
            raise UserError(f"{file} does not exist")
        if file.suffix == ".onnx":
            return cls(_onnx(file, action_space))
        if file.suffix == ".zip":
            return cls(_zip(file))
        raise UserError(f"{file}: expected a .zip or .onnx file")

    def predict(self, observation: Any) -> np.ndarray:
        """The action for one observation: a dict of arrays, or the array of the key `obs`."""
        given = observation if isinstance(observation, Mapping) else {KEY: observation}
        batch = {key: np.asarray(part, np.float32)[None] for key, part in given.items()}
        action: np.ndarray = self._act(batch, np.array([self._begins]))[0]
        self._begins = False
        return action

    def reset(self) -> None:
        """An episode begins: forget what was seen."""
        self._begins = True


def _onnx(file: Path, action_space: spaces.Space[Any] | None) -> Any:
    from estragon.trainers.players import OnnxPolicy

    policy = OnnxPolicy(file)
    return lambda observed, begins: policy(observed, action_space, begins)


def _zip(file: Path) -> Any:
    from estragon.trainers.sb3.model_file import ModelFile

    source = ModelFile(file)
    model: Any = source.load_for_export()
    scales = source.normalization or {}
    state: Any = None

    def act(observed: dict[str, np.ndarray], begins: np.ndarray) -> np.ndarray:
        nonlocal state
        seen = {key: _normalized(key, part, scales) for key, part in observed.items()}
        actions, state = model.predict(seen, state, begins, deterministic=True)
        found: np.ndarray = actions
        return found

    return act


def _normalized(key: str, part: np.ndarray, scales: Mapping[str, np.ndarray]) -> np.ndarray:
    if f"obs/{key}/mean" not in scales:
        return part
    deviation = np.sqrt(scales[f"obs/{key}/var"] + scales["epsilon"])
    scaled: np.ndarray = (part - scales[f"obs/{key}/mean"]) / deviation
    scaled = np.clip(scaled, -scales["clip"], scales["clip"])
    return scaled.astype(np.float32)
