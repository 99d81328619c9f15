"""Run ONNX models in onnxruntime and in Godot: once on given inputs, or both on random ones."""

import json
import math
import struct
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from estragon.godot.channel import Lockstep
from estragon.godot.process import GodotError
from estragon.onnx.metadata import read_model
from estragon.support import paths
from estragon.support.errors import UserError

SERVER = paths.PACKAGE / "onnx" / "onnx_server.gd"
TYPES: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.float32),
    2: np.dtype(np.uint8),
    3: np.dtype(np.int8),
    4: np.dtype(np.uint16),
    5: np.dtype(np.int16),
    6: np.dtype(np.int32),
    7: np.dtype(np.int64),
    9: np.dtype(np.bool_),
    11: np.dtype(np.float64),
    12: np.dtype(np.uint32),
}
"""Element types by ONNX's numbers for them."""
LENGTH = struct.Struct("<I")
BATCHES = (1, 2, 5)
REPEATS = 10


class Port(NamedTuple):
    """An input or output; a free dimension is its name, or None where it has none."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | str | None, ...]


class OnnxRuntime:
    """The model in onnxruntime."""

    def __init__(self) -> None:
        import onnxruntime

        self._onnxruntime = onnxruntime
        self.inputs: list[Port] = []
        self.outputs: list[Port] = []

    def load(self, model: Path) -> None:
        """Open a model; UserError if it cannot run."""
        self._session = self._open(model, self._options())
        self._model = model
        self.inputs = [_runtime_port(port) for port in self._session.get_inputs()]
        self.outputs = [_runtime_port(port) for port in self._session.get_outputs()]

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs by name for inputs by name."""
        try:
            made = self._session.run(None, dict(inputs))
        except Exception as error:
            raise UserError(f"onnxruntime: {error}") from error
        names = (port.name for port in self.outputs)
        return {name: np.asarray(array) for name, array in zip(names, made, strict=True)}

    def time(self, inputs: Mapping[str, np.ndarray], seconds: float) -> float:
        """The fewest microseconds of a run."""
        least, stop = math.inf, time.perf_counter() + seconds
        self.run(inputs)
        while time.perf_counter() < stop:
            start = time.perf_counter()
            for _ in range(REPEATS):
                self._session.run(None, dict(inputs))
            least = min(least, (time.perf_counter() - start) / REPEATS)
        return 1e6 * least

    def profile(self, inputs: Mapping[str, np.ndarray], seconds: float) -> list[tuple[str, float]]:
        """Every node of a run and its fewest microseconds, the slowest first."""
        options = self._options()
        options.enable_profiling = True
        with tempfile.TemporaryDirectory(prefix="estragon-") as folder:
            options.profile_file_prefix = str(Path(folder) / "profile")
            session = self._open(self._model, options)
            stop = time.perf_counter() + seconds
            while time.perf_counter() < stop:
                session.run(None, dict(inputs))
            events = json.loads(Path(session.end_profiling()).read_text())
        least: dict[str, float] = {}
        for event in events:
            name = event["name"].removesuffix("_kernel_time")
            if event.get("cat") == "Node" and name != event["name"]:
                step = f"{event['args']['op_name']} '{name}'"
                least[step] = min(least.get(step, math.inf), float(event["dur"]))
        return sorted(least.items(), key=lambda step: -step[1])

    def _options(self) -> Any:
        options = self._onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        return options

    def _open(self, model: Path, options: Any) -> Any:
        try:
            return self._onnxruntime.InferenceSession(
                str(model), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            raise UserError(f"onnxruntime cannot run {model}: {error}") from error


class GodotRuntime(Lockstep):
    """The model in the addon's runtime; one Godot process runs any number of models."""

    def __init__(self) -> None:
        super().__init__(paths.godot_project(), [], engine=["-s", str(SERVER)])
        self.inputs: list[Port] = []
        self.outputs: list[Port] = []
        self.operators: list[str] = []

    def load(self, model: Path) -> None:
        """Open a model; UserError if it cannot run."""
        said, _ = self.ask({"do": "load", "path": str(model.resolve())})
        if said["error"]:
            raise UserError(f"Godot cannot run {model}: {said['error']}")
        self.inputs = [_godot_port(entry) for entry in said["inputs"]]
        self.outputs = [_godot_port(entry) for entry in said["outputs"]]
        self.operators = said["operators"]

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs by name for inputs by name."""
        said, arrays = self.ask({"do": "run"}, [inputs[port.name] for port in self.inputs])
        if said["error"]:
            raise UserError(f"Godot: {said['error']}")
        return {port.name: array for port, array in zip(self.outputs, arrays, strict=True)}

    def time(self, inputs: Mapping[str, np.ndarray], seconds: float) -> float:
        """The fewest microseconds of a run, without the way to Godot."""
        return float(self._measure("time", inputs, seconds)["usec"])

    def profile(self, inputs: Mapping[str, np.ndarray], seconds: float) -> list[tuple[str, float]]:
        """Every step of a run and its fewest microseconds, the slowest first."""
        said = self._measure("profile", inputs, seconds)
        steps = zip(said["steps"], map(float, said["usec"]), strict=True)
        return sorted(steps, key=lambda step: -step[1])

    def _measure(
        self, what: str, inputs: Mapping[str, np.ndarray], seconds: float
    ) -> dict[str, Any]:
        request = {"do": what, "seconds": seconds}
        said, _ = self.ask(request, [inputs[port.name] for port in self.inputs])
        if said["error"]:
            raise UserError(f"Godot: {said['error']}")
        return said

    def ask(
        self, request: dict[str, Any], arrays: Sequence[np.ndarray] = ()
    ) -> tuple[dict[str, Any], list[np.ndarray]]:
        """Send a request with tensors to the server; its answer with tensors."""
        numbers = {dtype: number for number, dtype in TYPES.items()}
        request["tensors"] = [
            {"type": numbers[array.dtype], "dims": list(array.shape)} for array in arrays
        ]
        text = json.dumps(request).encode()
        frame = LENGTH.pack(len(text)) + text
        frame += b"".join(array.astype(_wire_type(array.dtype)).tobytes() for array in arrays)
        answer = self.exchange(frame, f"the answer to {request['do']}")
        place = 4 + LENGTH.unpack(answer[:4])[0]
        # Godot does not escape every control character that a damaged file may hold.
        said: dict[str, Any] = json.loads(
            bytes(answer[4:place]).decode(errors="replace"), strict=False
        )
        if said.get("complaints"):
            raise GodotError(f"the ONNX runtime failed: {' | '.join(said['complaints'][:4])}")
        made = []
        for entry in said["tensors"]:
            dtype = TYPES[int(entry["type"])]
            shape = [int(size) for size in entry["dims"]]
            count = int(np.prod(shape, dtype=np.int64))
            array = np.frombuffer(answer, dtype=_wire_type(dtype), count=count, offset=place)
            place += array.nbytes
            made.append(array.reshape(shape).astype(dtype))
        return said, made


Engine = OnnxRuntime | GodotRuntime


def _wire_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype("<f4") if dtype.kind == "f" else np.dtype("<i8")


def _runtime_port(port: Any) -> Port:
    """For example, its type is `tensor(int64)` or `tensor(float)`."""
    name = port.type.removeprefix("tensor(").removesuffix(")")
    by_name = {dtype.name: dtype for dtype in TYPES.values()}
    dtype = by_name.get({"float": "float32", "double": "float64"}.get(name, name))
    if dtype is None:
        raise UserError(f"'{port.name}' has an unsupported type: {port.type}")
    return Port(port.name, dtype, tuple(port.shape))


def _godot_port(entry: dict[str, Any]) -> Port:
    shape = [
        int(size) if size >= 0 else (free or None)
        for size, free in zip(entry["dims"] or [], entry["free"], strict=True)
    ]
    dtype = TYPES.get(int(entry["type"]), TYPES[1])  # an output need not state its type
    return Port(entry["name"], dtype, tuple(shape))


def about_file(model: Path) -> dict[str, Any]:
    """What a file is: inputs, outputs, operators, opset, size, and its metadata."""
    _check_file(model)
    found = read_model(model)
    runtime = OnnxRuntime()
    runtime.load(model)

    def described(ports: list[Port]) -> dict[str, str]:
        return {
            port.name: f"{port.dtype} [{', '.join(str(size or '?') for size in port.shape)}]"
            for port in ports
        }

    return {
        "file": str(model),
        "bytes": model.stat().st_size,
        "opset": max(each.version for each in found.opset_import if each.domain in ("", "ai.onnx")),
        "inputs": described(runtime.inputs),
        "outputs": described(runtime.outputs),
        "operators": sorted({node.op_type for node in found.graph.node}),
        "metadata": {entry.key: _parsed(entry.value) for entry in found.metadata_props},
    }


def _parsed(text: str) -> Any:
    """Spaces and versions are JSON; anything else is text."""
    if not text.startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def run_once(model: Path, inputs: Path, engine: Literal["godot", "onnxruntime"]) -> dict[str, Any]:
    """Outputs by name as nested lists, for a JSON file of inputs by name; NaN becomes null."""
    _check_file(model)
    try:
        given = json.loads(inputs.read_text())
    except OSError as error:
        raise UserError(f"cannot read {inputs}: {error.strerror or error}") from error
    except ValueError as error:
        raise UserError(f"{inputs} is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise UserError(f"{inputs}: expected an object, a nested list for each input by its name")
    if engine == "onnxruntime":
        return _run(OnnxRuntime(), model, given)
    with GodotRuntime() as godot:
        return _run(godot, model, given)


def _run(engine: Engine, model: Path, given: dict[str, Any]) -> dict[str, Any]:
    engine.load(model)
    outputs = engine.run(_arrays(given, engine.inputs))
    return {name: _plain(array) for name, array in outputs.items()}


def compare_file(
    model: Path, samples: int, seed: int, absolute: float, relative: float
) -> dict[str, Any]:
    """`compare` of a file in newly started engines."""
    _check_file(model)
    runtime = OnnxRuntime()
    runtime.load(model)
    with GodotRuntime() as godot:
        godot.load(model)
        random = np.random.default_rng(seed)
        return compare(godot, runtime, samples, random, absolute, relative)


def compare(
    godot: GodotRuntime,
    runtime: OnnxRuntime,
    samples: int,
    random: np.random.Generator,
    absolute: float = 1e-5,
    relative: float = 1e-4,
) -> dict[str, Any]:
    """The largest differences of both engines, which have loaded the same model."""
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
            worst = max(worst, float(error.max(initial=0.0)))
            worst_relative = max(worst_relative, float((error / (size + 1e-12)).max(initial=0.0)))
    return {
        "max_abs_error": worst,
        "max_rel_error": worst_relative,
        "samples": samples,
        "operators": godot.operators,
        "agrees": agrees,
    }


def random_inputs(
    ports: list[Port], random: np.random.Generator, batch: int | None = None
) -> dict[str, np.ndarray]:
    """An array for each input; dimensions of one name have one size, the first is the batch."""
    batch = int(random.choice(BATCHES)) if batch is None else batch
    inputs = {}
    for port in ports:
        shape = [size if isinstance(size, int) else batch for size in port.shape]
        if "seq_lens" in port.name:
            inputs[port.name] = np.ones(shape, dtype=port.dtype)
        elif port.dtype.kind == "f":
            inputs[port.name] = random.normal(size=shape).astype(port.dtype)
        else:
            most = 256 if port.dtype == np.uint8 else 2
            inputs[port.name] = random.integers(0, most, shape).astype(port.dtype)
    return inputs


def _check_file(model: Path) -> None:
    if not model.is_file():
        raise UserError(f"no file {model}")


def _error(ours: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Absolute differences; the same infinity or NaN is no difference."""
    a, b = ours.astype(np.float64), right.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        error: np.ndarray = np.where(same, 0.0, np.abs(a - b))
    error[np.isnan(error)] = np.inf
    return error


def _arrays(given: dict[str, Any], ports: list[Port]) -> dict[str, np.ndarray]:
    names = [port.name for port in ports]
    if unknown := [name for name in given if name not in names]:
        raise UserError(f"the model has no input '{unknown[0]}'; it has {', '.join(names)}")
    if missing := [port for port in ports if port.name not in given]:
        raise UserError(f"missing input '{missing[0].name}', {missing[0].dtype}")
    arrays = {}
    for port in ports:
        shape = f"[{', '.join(str(size or '?') for size in port.shape)}]"
        try:
            array = np.asarray(given[port.name]).astype(port.dtype)
        except (TypeError, ValueError) as error:
            raise UserError(f"'{port.name}' is not an array of {port.dtype}: {error}") from error
        fits = array.ndim == len(port.shape) and all(
            not isinstance(size, int) or size == actual
            for size, actual in zip(port.shape, array.shape, strict=False)
        )
        if port.shape and not fits:
            raise UserError(f"'{port.name}': expected shape {shape}, got {list(array.shape)}")
        arrays[port.name] = array
    return arrays


def _plain(array: np.ndarray) -> Any:
    """Nested lists, with null for what JSON cannot hold."""
    if array.dtype.kind != "f":
        return array.tolist()
    plain = array.astype(object)
    plain[~np.isfinite(array)] = None
    return plain.tolist()
