"""Forms made from the options of commands: fields, help, ranges, defaults; and back to words."""

import ast
import dataclasses
import functools
import inspect
import itertools
import textwrap
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from estragon.controller.project import Project
from estragon.support.errors import UserError
from estragon.support.options import check_span
from estragon.trainers.settings import Span

Kind = Literal["bool", "int", "float", "choice", "ints", "path", "text"]
PATH_METAVARS = {"PATH", "FILE", "FOLDER", "CHECKPOINT", "MODEL", "MODEL_PATH", "CHECKPOINT_PATH"}
LONGEST_TEXT = 1000


@dataclasses.dataclass(frozen=True)
class Field:
    """One option."""

    name: str
    option: str
    """As typed: --n_steps; empty for a positional argument."""
    help: str
    kind: Kind
    default: Any
    choices: tuple[str, ...] = ()
    span: Span | None = None
    group: str = ""
    """Of a nested dataclass: its field's name."""

    def convert(self, value: Any) -> Any:
        """What was typed as the option's type, None for nothing; a UserError if it is invalid."""
        if value is None or value in ("", []):
            return None
        try:
            if self.kind == "bool":
                return bool(value)
            if self.kind in ("int", "float"):
                found = _whole(value) if self.kind == "int" else float(value)
                if self.span is not None:
                    check_span(self.name, found, *self.span)
                return found
            if self.kind == "ints":
                parts = value.replace(",", " ").split() if isinstance(value, str) else value
                return tuple(int(part) for part in parts)
        except (TypeError, ValueError, OverflowError):
            wanted = {"int": "a whole number", "ints": "whole numbers"}.get(self.kind, "a number")
            raise UserError(f"{self.name}: expected {wanted}, got {value!r}") from None
        text = str(value).strip()
        if self.kind == "choice" and text not in self.choices:
            raise UserError(f"{self.name}: expected {', '.join(self.choices)}, got {text!r}")
        if len(text) > LONGEST_TEXT or not text.isprintable():
            raise UserError(f"{self.name}: expected one line of text")
        return text

    def words(self, value: Any) -> list[str]:
        """The option with a value, as arguments; nothing for the default."""
        if value is None or value == self.default:
            return []
        if self.kind == "bool":
            dashes, name = self.option[:2], self.option[2:]
            no = "no_" if "_" in name else "no-"
            return [self.option if value else f"{dashes}{no}{name}"]
        if self.kind == "ints":
            return [self.option, *map(str, value)]
        # One word, so that a value that begins with a dash is no option.
        return [f"{self.option}={value}" if self.option else str(value)]


@dataclasses.dataclass(frozen=True)
class Form:
    """A command that can be started from the page."""

    key: str
    title: str
    verb: tuple[str, ...]
    options: type[Any]
    """Its dataclass."""
    main: tuple[str, ...]
    """The fields to show first."""
    hidden: frozenset[str] = frozenset()
    """Fields that the page sets itself, or that make no sense in it."""
    underscores: bool = False
    given: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Values to begin with, other than the defaults."""

    @functools.cached_property
    def fields(self) -> list[Field]:
        """Those that are shown, main ones first."""
        found = [each for each in read_fields(self.options, underscores=self.underscores)
                 if each.name not in self.hidden]  # fmt: skip
        order = {name: rank for rank, name in enumerate(self.main)}
        return sorted(found, key=lambda each: order.get(each.name, len(order)))

    def words(self, values: Mapping[str, Any], project: Project) -> list[str]:
        """The arguments of `estragon` for what was typed; a UserError names what is invalid."""
        words = list(self.verb)
        for field in self.fields:
            value = field.convert(values.get(field.name))
            if field.kind in ("text", "path") and value is not None:
                for part in value.split(","):
                    check_path(part, project, certainly=field.kind == "path")
            words += field.words(value)
        return words

    def config(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What to write to `training_config.json`; empty for commands that do not read it."""
        prefix = getattr(self.options, "CONTROLLER_PREFIX", "")
        if not prefix:
            return {}
        found: dict[str, Any] = {}
        for key, field in self._config_keys():
            value = field.convert(values.get(field.name))
            found[key] = list(value) if isinstance(value, tuple) else value
        return found | {"mode": "multi_agent" if self.key == "rllib" else "single_agent"}

    def values(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """What to begin with: the defaults, and what `training_config.json` says."""
        found = {field.name: field.default for field in self.fields} | dict(self.given)
        if getattr(self.options, "CONTROLLER_PREFIX", ""):
            for key, field in self._config_keys():
                try:
                    value = field.convert(config.get(key))
                except UserError:
                    continue
                found[field.name] = found[field.name] if value is None else value
        return found

    def _config_keys(self) -> Iterator[tuple[str, Field]]:
        prefix, names = self.options.CONTROLLER_PREFIX, self.options.CONTROLLER_KEYS
        by_option = {option: key for key, option in names.items()}
        for field in self.fields:
            if field.name in ("env_path", "experiment_name"):
                yield field.name, field
            elif field.group or field.name in by_option:
                yield prefix + by_option.get(field.name, field.name.rstrip("_")), field
            elif field.name == "timesteps":
                yield field.name, field


def check_path(text: str, project: Project, *, certainly: bool) -> None:
    """Reject text that leads, or could lead, to a file outside the project."""
    text = text.strip()
    if not certainly and text.startswith("res://") and ".." not in text:
        return
    if certainly or any(sign in text for sign in ("/", "\\", "..")) or text.startswith("~"):
        project.confine(text)


def read_fields(options: type[Any], group: str = "", *, underscores: bool = False) -> list[Field]:
    """The options of a dataclass, with those of the dataclasses in it."""
    hints = get_type_hints(options, include_extras=True)
    texts = _help_texts(options)
    found: list[Field] = []
    for each in dataclasses.fields(options):
        bare: Any = hints[each.name]
        metadata: tuple[Any, ...] = ()
        if hasattr(bare, "__metadata__"):
            metadata, bare = bare.__metadata__, bare.__origin__
        marks = {repr(part) for part in metadata}
        if "Suppress" in marks:
            continue
        if dataclasses.is_dataclass(bare) and isinstance(bare, type):
            found += read_fields(bare, each.name, underscores=underscores)
            continue
        default = each.default
        if each.default_factory is not dataclasses.MISSING:
            default = each.default_factory()
        configured = [part for part in metadata if hasattr(part, "metavar")]
        named = next((part.name for part in configured if part.name), None)
        kind, choices = _kind(bare, next((part.metavar for part in configured), None))
        name = named or each.name.rstrip("_")
        option = f"--{name if underscores else name.replace('_', '-')}"
        found.append(
            Field(
                name=each.name,
                option="" if "Positional" in marks else option,
                help=texts.get(each.name, ""),
                kind=kind,
                default=str(default) if isinstance(default, Path) else default,
                choices=choices,
                span=next((part for part in metadata if isinstance(part, Span)), None),
                group=group,
            )
        )
    return found


def _kind(bare: Any, metavar: str | None) -> tuple[Kind, tuple[str, ...]]:
    if get_origin(bare) in (Union, types.UnionType):
        bare = next(part for part in get_args(bare) if part is not type(None))
    if hasattr(bare, "__metadata__"):
        bare = bare.__origin__
    if get_origin(bare) is Literal:
        return "choice", get_args(bare)
    if get_origin(bare) is tuple:
        return ("ints" if get_args(bare)[0] is int else "text"), ()
    if bare is Path or metavar in PATH_METAVARS:
        return "path", ()
    kinds: dict[Any, Kind] = {bool: "bool", int: "int", float: "float"}
    return kinds.get(bare, "text"), ()


def _whole(value: Any) -> int:
    number = float(value)
    if number != int(number):
        raise ValueError
    return int(number)


def _help_texts(options: type[Any]) -> dict[str, str]:
    """The docstring below each field, of the class and its bases."""
    found: dict[str, str] = {}
    for each in reversed(options.__mro__):
        if not dataclasses.is_dataclass(each):
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(each))).body[0]
        body = tree.body if isinstance(tree, ast.ClassDef) else []
        for field, text in itertools.pairwise(body):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                found[field.target.id] = " ".join(str(text.value.value).split())
    return found
