"""`estragon onnx …`: run a model in either engine, and compare the two."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro

from estragon.onnx.engines import Godot, Port, Runtime
from estragon.onnx.samples import random_inputs
from estragon.support.errors import UserError


@dataclasses.dataclass(frozen=True)
class RunModel:
    """Run a model once and print its outputs as JSON."""

    model: Annotated[Path, tyro.conf.Positional]
    """The `.onnx` file."""
    inputs: Path
    """A JSON file: an object with a nested list for every input, by its name."""
    engine: Literal["godot", "onnxruntime"] = "godot"
    """Which engine runs it."""

    def run(self) -> None:
        """Run, print."""
        _check_file(self.model)
        given = _read_inputs(self.inputs)
        if self.engine == "onnxruntime":
            runtime = Runtime()
            runtime.load(self.model)
            outputs = runtime.run(_arrays(given, runtime.inputs))
        else:
            with Godot() as godot:
                godot.load(self.model)
                outputs = godot.run(_arrays(given, godot.inputs))
        print(json.dumps({name: _plain(array) for name, array in outputs.items()}))


@dataclasses.dataclass(frozen=True)
class CompareModel:
    """Run a model in Godot and in onnxruntime on the same random inputs; do they agree?"""

    model: Annotated[Path, tyro.conf.Positional]
    """The `.onnx` file."""
    samples: int = 32
    """How many random inputs; batches of 1, 2 and 5."""
    seed: int = 0
    """Of the inputs."""
    absolute: float = 1e-5
    """Difference that is always allowed."""
    relative: float = 1e-4
    """Difference that is allowed besides, as a part of the number itself."""

    def run(self) -> int:
        """Compare, print one JSON object; 0 if all numbers agree, else 1."""
        _check_file(self.model)
        if not 1 <= self.samples <= 1_000_000:
            raise UserError(f"--samples: expected 1 to 1,000,000, got {self.samples}")
        runtime = Runtime()
        runtime.load(self.model)
        with Godot() as godot:
            godot.load(self.model)
            found = compare(
                godot,
                runtime,
                self.samples,
                np.random.default_rng(self.seed),
                self.absolute,
                self.relative,
            )
        agrees = found.pop("agrees")
        print(json.dumps(found))
        return 0 if agrees else 1


def compare(
    godot: Godot,
    runtime: Runtime,
    samples: int,
    random: np.random.Generator,
    absolute: float = 1e-5,
    relative: float = 1e-4,
) -> dict[str, Any]:
    """Both engines, with the same model loaded, on the same random inputs."""
    worst, worst_relative, agrees = 0.0, 0.0, True
    for _ in range(samples):
        inputs = random_inputs(runtime.inputs, random)
        expected, found = runtime.run(inputs), godot.run(inputs)
        for name, right in expected.items():
            ours = found[name]
            if ours.shape != right.shape or ours.dtype != right.dtype:
                raise UserError(
                    f"'{name}' is {ours.dtype} {ours.shape} in Godot, "
                    f"{right.dtype} {right.shape} in onnxruntime"
                )
            error = _error(ours, right)
            size = np.abs(np.where(np.isfinite(right), right, 0.0).astype(np.float64))
            agrees = agrees and bool((error <= absolute + relative * size).all())
            if error.size:
                worst = max(worst, float(error.max()))
                worst_relative = max(worst_relative, float((error / (size + 1e-12)).max()))
    return {
        "max_abs_error": worst,
        "max_rel_error": worst_relative,
        "samples": samples,
        "operators": godot.operators,
        "agrees": agrees,
    }


def _error(ours: np.ndarray, right: np.ndarray) -> np.ndarray:
    """How far apart, number by number; the same infinity or NaN is no error."""
    a, b = ours.astype(np.float64), right.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        error: np.ndarray = np.where(same, 0.0, np.abs(a - b))
    error[np.isnan(error)] = np.inf
    return error


def _check_file(model: Path) -> None:
    if not model.is_file():
        raise UserError(f"no file {model}")


def _read_inputs(path: Path) -> dict[str, Any]:
    try:
        given = json.loads(path.read_text())
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise UserError(f"{path} should hold an object, a nested list for every input by its name")
    return given


def _arrays(given: dict[str, Any], ports: list[Port]) -> dict[str, np.ndarray]:
    names = [port.name for port in ports]
    if unknown := [name for name in given if name not in names]:
        raise UserError(f"the model has no input '{unknown[0]}'; it has {', '.join(names)}")
    for port in ports:
        if port.name not in given:
            raise UserError(f"the inputs lack '{port.name}', {port.dtype} {_shape(port)}")
    arrays = {}
    for port in ports:
        try:
            array = np.asarray(given[port.name]).astype(port.dtype)
        except (TypeError, ValueError) as error:
            raise UserError(f"'{port.name}' is not an array of {port.dtype}: {error}") from error
        fits = array.ndim == len(port.shape) and all(
            not isinstance(size, int) or size == actual
            for size, actual in zip(port.shape, array.shape, strict=False)
        )
        if port.shape and not fits:
            raise UserError(f"'{port.name}' should be {_shape(port)}, not {list(array.shape)}")
        arrays[port.name] = array
    return arrays


def _shape(port: Port) -> str:
    return f"[{', '.join(str(size or '?') for size in port.shape)}]"


def _plain(array: np.ndarray) -> Any:
    """Nested lists; what JSON cannot say is null."""
    if array.dtype.kind != "f":
        return array.tolist()
    plain = array.astype(object)
    plain[~np.isfinite(array)] = None
    return plain.tolist()
