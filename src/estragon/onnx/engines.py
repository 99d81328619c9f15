"""Two engines that run `.onnx` files behind one interface: the Godot addon's, and onnxruntime."""

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


class Port(NamedTuple):
    """An input or output; a free dimension is its name, or None where it has none."""

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


class OnnxRuntime:
    """The model in onnxruntime."""

    def __init__(self) -> None:
        import onnxruntime

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
        except Exception as error:
            raise UserError(f"onnxruntime cannot run {model}: {error}") from error
        self.inputs = [_runtime_port(port) for port in self._session.get_inputs()]
        self.outputs = [_runtime_port(port) for port in self._session.get_outputs()]

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs by name for inputs by name."""
        try:
            made = self._session.run(None, dict(inputs))
        except Exception as error:
            raise UserError(f"onnxruntime: {error}") from error
        return {
            port.name: np.asarray(array) for port, array in zip(self.outputs, made, strict=True)
        }


class GodotRuntime:
    """The model in the addon's runtime; one Godot process runs any number of models."""

    def __init__(self) -> None:
        self._channel = Lockstep(paths.godot_project(), [], engine=["-s", str(SERVER)])
        self.inputs: list[Port] = []
        self.outputs: list[Port] = []
        self.operators: list[str] = []

    def __enter__(self) -> Self:
        """The engine, closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop Godot."""
        self.close()

    @property
    def pid(self) -> int:
        """Process id of Godot."""
        return self._channel.process.pid

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

    def ask(
        self, request: dict[str, Any], arrays: list[np.ndarray] | None = None
    ) -> tuple[dict[str, Any], list[np.ndarray]]:
        """Send a request with tensors to the server; its answer with tensors."""
        arrays = arrays or []
        numbers = {dtype: number for number, dtype in TYPES.items()}
        request["tensors"] = [
            {"type": numbers[array.dtype], "dims": list(array.shape)} for array in arrays
        ]
        text = json.dumps(request).encode()
        frame = LENGTH.pack(len(text)) + text
        frame += b"".join(array.astype(_wire_type(array.dtype)).tobytes() for array in arrays)
        answer = self._channel.ask(frame, f"the answer to {request['do']}")
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

    def close(self) -> None:
        """Stop Godot."""
        self._channel.close()


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
