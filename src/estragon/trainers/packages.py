"""Which packages are installed, for controllers; imports nothing but Python itself."""

import importlib
import json

PACKAGES = {
    "sb3_available": ("stable_baselines3", "sb3_contrib"),
    "rllib_available": ("ray.rllib",),
    "godot_rl_available": ("estragon.envs.vector_core",),
    "torch_available": ("torch",),
    "onnx_available": ("onnx", "onnxruntime"),
}
"""What is reported → the modules it needs; Estragon itself is the client of the games."""


def check() -> int:
    """Import everything and print the result as JSON; 0 if all is installed, else 1."""
    problems: dict[str, str] = {}
    found = {name: _can_import(modules, problems) for name, modules in PACKAGES.items()}
    print(json.dumps(found | ({"problems": problems} if problems else {}), indent=2))
    return 0 if all(found.values()) else 1


def _can_import(modules: tuple[str, ...], problems: dict[str, str]) -> bool:
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:  # noqa: BLE001 - a broken package raises anything
            problems[module] = f"{type(error).__name__}: {error}"
    return not any(module in problems for module in modules)
