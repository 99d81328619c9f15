"""Run the programs in `benchmarks/` and write their figures as one table."""

import dataclasses
import importlib.util
import platform
import sys
from pathlib import Path
from types import ModuleType

from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import ensure_writable, write_json


@dataclasses.dataclass(frozen=True)
class Figure:
    """One measured number; rates are arenas × agents decisions, `repeat` ticks each."""

    name: str
    value: float
    unit: str
    arenas: int
    agents: int
    repeat: int
    note: str = ""


def run_benchmarks(only: tuple[str, ...], seconds: float, output: Path | None) -> None:
    """Run the programs, by default all; print their figures and write them as JSON."""
    folder = paths.checkout() / "benchmarks"
    output = output or folder / "results" / f"{'_'.join(only) or 'latest'}.json"
    ensure_writable(output)
    figures = [figure for program in _programs(folder, only) for figure in program.measure(seconds)]
    print(_table(figures))
    write_json(output, [dataclasses.asdict(figure) for figure in figures])
    print(f"wrote {output}")


def _programs(folder: Path, only: tuple[str, ...]) -> list[ModuleType]:
    """The benchmark programs, each a file with a `measure(seconds)`."""
    found = {path.stem: path for path in sorted(folder.glob("[a-z]*.py"))}
    for name in only:
        if name not in found:
            raise UserError(f"no benchmark '{name}'; choose from {', '.join(found)}")
    programs = []
    for name in only or found:
        spec = importlib.util.spec_from_file_location(f"benchmarks.{name}", found[name])
        if spec is None or spec.loader is None:
            raise UserError(f"cannot load {found[name]}")
        program = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = program
        spec.loader.exec_module(program)
        programs.append(program)
    return programs


def _table(figures: list[Figure]) -> str:
    lines = [f"estragon bench on {platform.machine()}, Python {platform.python_version()}"]
    for figure in figures:
        value = f"{figure.value:,.0f}" if figure.value >= 100 else f"{figure.value:,.2f}"
        shape = f"{figure.arenas} × {figure.agents} × {figure.repeat}"
        line = f"{figure.name:<38} {value:>12} {figure.unit:<18} {shape:<14} {figure.note}"
        lines.append(line.rstrip())
    return "\n".join(lines)
