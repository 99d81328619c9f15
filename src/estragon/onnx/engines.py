"""Two engines that run `.onnx` files behind one face: Godot's own, and onnxruntime."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from estragon.godot.channel import Lockstep
from estragon.godot.process import GodotError
from estragon.support import paths
from estragon.support.errors import UserError

SERVER = "res://tests/onnx_server.gd"
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
"""Element types of ONNX by their number."""
RUNTIME_TYPES = {
    "tensor(float)": 1,
    "tensor(uint8)": 2,
    "tensor(int8)": 3,
    "tensor(uint16)": 4,
    "tensor(int16)": 5,
    "tensor(int32)": 6,
    "tensor(int64)": 7,
    "tensor(bool)": 9,
    "tensor(double)": 11,
    "tensor(uint32)": 12,
}
LENGTH = struct.Struct("<I")


class Port(NamedTuple):
    """An input or output: a free size is its name, or None where it has none."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | str | None, ...]


class Engine(Protocol):
    """Runs the model it was last given."""

    inputs: list[Port]
    outputs: list[Port]

    def load(self, model: Path) -> None:
        """Open a model; UserError if it cannot run."""
        ...

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs by name for inputs by name."""
        ...


class Runtime:
    """The model in onnxruntime."""

    def __init__(self) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise UserError(
                "onnxruntime is missing: pip install 'estragon[onnx]', or use --engine godot"
            ) from None
        self._onnxruntime = onnxruntime
        self.inputs: list[Port] = []
        self.outputs: list[Port] = []

    def load(self, model: Path) -> None:
        """Open a model; UserError if it cannot run."""
        options = self._onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = self._onnxruntime.InferenceSession(
                str(model), options, providers=["CPUExecutionProvider"]
            )
            self.inputs = [_port(port) for port in self._session.get_inputs()]
            self.outputs = [_port(port) for port in self._session.get_outputs()]
        except Exception as error:
            raise UserError(f"onnxruntime cannot run {model}: {error}") from error

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs by name for inputs by name."""
        try:
            made = self._session.run(None, dict(inputs))
        except Exception as error:
            raise UserError(f"onnxruntime: {error}") from error
        return {
            port.name: np.asarray(array) for port, array in zip(self.outputs, made, strict=True)
        }


class Godot:
    """The model in the addon's runtime, in one Godot process for as many models as there are."""

    def __init__(self) -> None:
        self._channel = Lockstep(paths.godot_project(), [], engine=["-s", SERVER])
        self.inputs: list[Port] = []
        self.outputs: list[Port] = []
        self.operators: list[str] = []

    def __enter__(self) -> Self:
        """The engine, to be closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End Godot."""
        self.close()

    @property
    def pid(self) -> int:
        """The number of the Godot process."""
        return self._channel.process.pid

    def load(self, model: Path) -> None:
        """Open a model; UserError if it cannot run."""
        said, _ = self.ask({"do": "load", "path": str(model.resolve())})
        if said["error"]:
            raise UserError(f"Godot cannot run {model}: {said['error']}")
        self.inputs = [_described(entry) for entry in said["inputs"]]
        self.outputs = [_described(entry) for entry in said["outputs"]]
        self.operators = said["operators"]

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs by name for inputs by name."""
        said, arrays = self.ask({"do": "run"}, [inputs[port.name] for port in self.inputs])
        if said["error"]:
            raise UserError(f"Godot: {said['error']}")
        return {port.name: array for port, array in zip(self.outputs, arrays, strict=True)}

    def time(self, inputs: Mapping[str, np.ndarray], seconds: float) -> float:
        """The fewest microseconds of one run with these inputs."""
        given = [inputs[port.name] for port in self.inputs]
        said, _ = self.ask({"do": "time", "seconds": seconds}, given)
        if said["error"]:
            raise UserError(f"Godot: {said['error']}")
        return float(said["usec"])

    def ask(
        self, request: dict[str, Any], arrays: list[np.ndarray] | None = None
    ) -> tuple[dict[str, Any], list[np.ndarray]]:
        """One question to the server, with tensors, and its answer, with tensors."""
        arrays = arrays or []
        numbers = {dtype: number for number, dtype in TYPES.items()}
        request["tensors"] = [
            {"type": numbers[array.dtype], "dims": list(array.shape)} for array in arrays
        ]
        text = json.dumps(request).encode()
        frame = LENGTH.pack(len(text)) + text
        frame += b"".join(array.astype(_carried(array.dtype)).tobytes() for array in arrays)
        answer = self._channel.ask(frame, f"the answer to {request['do']}")
        size = LENGTH.unpack(answer[:4])[0]
        # Godot does not escape every control character that a damaged file may hold.
        said: dict[str, Any] = json.loads(
            bytes(answer[4 : 4 + size]).decode(errors="replace"), strict=False
        )
        if said.get("complaints"):
            raise GodotError(f"a fault of the runtime: {' | '.join(said['complaints'][:4])}")
        made = []
        place = 4 + size
        for entry in said["tensors"]:
            dtype = TYPES[int(entry["type"])]
            shape = [int(size) for size in entry["dims"]]
            carried = _carried(dtype)
            count = int(np.prod(shape, dtype=np.int64))
            array = np.frombuffer(answer, dtype=carried, count=count, offset=place)
            place += array.nbytes
            made.append(array.reshape(shape).astype(dtype))
        return said, made

    def close(self) -> None:
        """End Godot."""
        self._channel.close()


def _carried(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """How numbers of a type travel."""
    return np.dtype("<f4") if dtype.kind == "f" else np.dtype("<i8")


def _port(port: Any) -> Port:
    number = RUNTIME_TYPES.get(port.type)
    if number is None:
        raise UserError(f"'{port.name}' is of a type that cannot be given: {port.type}")
    return Port(port.name, TYPES[number], tuple(port.shape))


def _described(entry: dict[str, Any]) -> Port:
    dims = entry["dims"] or []
    shape = [
        int(size) if size >= 0 else (free or None)
        for size, free in zip(dims, entry["free"], strict=True)
    ]
    dtype = TYPES.get(int(entry["type"]), TYPES[1])  # an output need not say its type
    return Port(entry["name"], dtype, tuple(shape))
