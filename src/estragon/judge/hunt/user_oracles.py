"""What a user says must hold: patterns of the log, and expressions over infos and properties."""

import ast
import dataclasses
import re
from typing import Any

import numpy as np

from estragon.support.errors import UserError

EXPRESSION = (
    *(ast.Expression, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Name, ast.Constant),
    *(ast.Load, ast.boolop, ast.operator, ast.unaryop, ast.cmpop, ast.Call),
)
COSTLY = (ast.Pow, ast.LShift)
FUNCTIONS = {"abs": abs, "min": min, "max": max, "round": round}
PROPERTY = re.compile(r"\{([^{}:]+:[^{}]+)\}")


@dataclasses.dataclass(frozen=True)
class UserOracles:
    """What a user asks for."""

    log_patterns: tuple[str, ...] = ()
    expects: tuple[str, ...] = ()
    warnings: bool = False
    """Whether a warning of the game is a bug, too."""

    def __post_init__(self) -> None:
        """Check patterns and expressions."""
        for pattern in self.log_patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise UserError(f"--log-pattern '{pattern}': {error}") from error
        for text in self.expects:
            self._compile(text)

    @property
    def watched(self) -> tuple[str, ...]:
        """The properties in all expressions, such as Main/Player:position:y."""
        return tuple(
            dict.fromkeys(each for text in self.expects for each in PROPERTY.findall(text))
        )

    def broken(self, info: dict[str, Any], watched: np.ndarray) -> list[str]:
        """The expressions that do not hold; those with unknown names are left out."""
        names: dict[str, Any] = {f"_{i}": float(value) for i, value in enumerate(watched)}
        names |= info
        found = []
        for text in self.expects:
            code, used = self._compile(text)
            known = all(name in names and names[name] == names[name] for name in used)
            try:
                if known and not eval(code, {"__builtins__": {}}, names | FUNCTIONS):  # noqa: S307
                    found.append(text)
            except (TypeError, ValueError, ArithmeticError) as error:
                raise UserError(f"--expect '{text}': {error}") from error
        return found

    def _compile(self, text: str) -> tuple[Any, set[str]]:
        order = {name: f"_{i}" for i, name in enumerate(self.watched)}
        plain = PROPERTY.sub(lambda found: order[found[1]], text)
        try:
            tree = ast.parse(plain.strip(), mode="eval")
        except SyntaxError as error:
            raise UserError(f"--expect '{text}': {error.msg}") from error
        names = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
        for node in ast.walk(tree):
            is_known = not isinstance(node, ast.Call) or (
                isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS
            )
            # Powers and shifts of large numbers take for ever; a trace may be a stranger's.
            is_safe = isinstance(node, EXPRESSION) and not isinstance(node, COSTLY)
            if not is_safe or not is_known:
                raise UserError(
                    f"--expect '{text}': expected a comparison of info values, {{Node:property}} "
                    f"and numbers, such as score >= 0, got {type(node).__name__}"
                )
        return compile(tree, "--expect", "eval"), names - FUNCTIONS.keys()
