"""The command line: `estragon VERB`. Parses options and calls; each verb has its own module."""

import contextlib
import difflib
import importlib
import io
import os
import re
import select
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NamedTuple

from estragon import __version__
from estragon.support.errors import BAD_INPUT, INTERRUPTED, READER_GONE, UserError
from estragon.support.interrupts import clean_interrupts


class Verb(NamedTuple):
    """A command: `estragon train sb3` is `TrainSb3Command` of `commands/train_sb3.py`.

    Its fields are the options, and its `run` does the work.
    """

    summary: str
    extra: str = "train"
    """The pip extra that brings what the core install lacks."""
    underscores: bool = False
    """Whether options are shown as --like_this; both spellings are accepted."""


VERBS: dict[tuple[str, ...], Verb] = {
    ("train", "tag"): Verb("train a seeker and a hider by self-play"),
    ("train", "sb3"): Verb(
        "train the agents of any Godot game with Stable-Baselines3", "sb3", underscores=True
    ),
    ("train", "spacetime"): Verb("train an agent to walk in VR without making people sick", "sb3"),
    ("train", "scene"): Verb(
        "train the agents of a SpaceTime scene, with an ONNX file", "sb3,onnx", underscores=True
    ),
    ("train", "rllib"): Verb(
        "train the agents of any Godot game with Ray RLlib", "rllib", underscores=True
    ),
    ("tune",): Verb("search the hyper-parameters of a game with Optuna", "tune", underscores=True),
    ("export", "tag"): Verb("export trained tag policies as verified .onnx files", "onnx"),
    ("export", "sb3"): Verb(
        "export a Stable-Baselines3 model as a verified .onnx file", "sb3,onnx"
    ),
    ("export", "rllib"): Verb("export an RLlib checkpoint as verified .onnx files", "rllib,onnx"),
    ("distill",): Verb("teach a small network to act like a trained policy", "sb3,onnx"),
    ("play",): Verb("play against a trained agent"),
    ("live",): Verb("train live: Godot plays, Python learns"),
    ("serve",): Verb("serve policies to games over a WebSocket"),
    ("eval", "tag"): Verb("measure bots and policies against each other"),
    ("eval", "game"): Verb("measure a model over the parameters of any Godot game", "sb3"),
    ("eval", "scene"): Verb(
        "let a trained model play a SpaceTime scene", "sb3,onnx", underscores=True
    ),
    ("judge", "evaluate"): Verb(
        "play any model on any game and write every episode", "sb3,onnx", underscores=True
    ),
    ("judge", "validate"): Verb(
        "check the metrics of a training run against thresholds", underscores=True
    ),
    ("judge", "regress"): Verb("compare an evaluation with a baseline", underscores=True),
    ("judge", "report"): Verb("write a report as Markdown, HTML or JUnit XML", underscores=True),
    ("judge", "hunt"): Verb("play a game until it breaks; a replay of every bug", "train"),
    ("judge", "replay"): Verb("play the trace of a bug again"),
    ("spacetime", "run"): Verb("run a SpaceTime scene with its HTTP API"),
    ("eval-episode",): Verb("play one match, with a log and a picture"),
    ("layout",): Verb("check and show a layout, or generate one"),
    ("parity",): Verb("compare both engines on the same actions"),
    ("godot", "install"): Verb("install a private copy of Godot 4"),
    ("godot", "path"): Verb("print the path of the Godot in use"),
    ("godot", "import"): Verb("import a project and check that it can be played"),
    ("godot", "doctor"): Verb("check that Godot is installed and starts"),
    ("godot", "probe"): Verb("play any game at random and report problems"),
    ("onnx", "run"): Verb("show what an .onnx file is, or run it once", "onnx"),
    ("onnx", "bench"): Verb("measure an .onnx file in Godot and onnxruntime", "onnx"),
    ("onnx", "compare"): Verb("compare an .onnx file in Godot and onnxruntime", "onnx"),
    ("replay",): Verb("show a logged match in a window"),
    ("record",): Verb("render the frames of a match in Godot"),
    ("encode",): Verb("encode frames as a video"),
    ("film",): Verb("make the film of a training run"),
    ("plot",): Verb("draw the charts of a training run"),
    ("collect-debug",): Verb("bundle logs and metrics for a bug report"),
    ("migrate-user-data",): Verb("copy old Godot user data into data/"),
    ("ui",): Verb("open the controller: a page over projects, runs and matches", "ui"),
    ("demo",): Verb("print sample output of a training run"),
    ("bench",): Verb("measure speed on this machine"),
}

ALIASES = {"convert": "export"}
"""Older names of a group of verbs."""

OVERVIEW = """\
estragon {version}: train, watch, test and ship game-playing agents for Godot 4.

Usage: estragon VERB [OPTIONS]        estragon VERB --help explains one verb.

{verbs}

Try: estragon train tag

Options of every verb:
  --help     show the options
  --debug    show a full traceback when something fails
  --version  print the version
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (see `support/errors.py`)."""
    # Products of small matrices: threads of BLAS would only wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    try:
        with clean_interrupts():
            code = _dispatch(words)
            sys.stdout.flush()
            return code
    except UserError as error:
        if debug:
            traceback.print_exc()
        print(f"estragon: {_one_line(str(error))}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        if debug:
            traceback.print_exc()
        print("estragon: stopped", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _reader_has_gone():
            return READER_GONE
        if debug:
            raise
        what = _one_line(f"{type(error).__name__}: {error}")
        print(f"estragon: unexpected {what} (--debug shows where)", file=sys.stderr)
        return 1


def _reader_has_gone() -> bool:
    """Whether the reader of the output is gone, as with `| head`; then stop printing."""
    if not hasattr(select, "poll"):
        return False
    output = select.poll()
    with contextlib.suppress(OSError, ValueError):  # it may be no file
        output.register(sys.stdout, select.POLLOUT)
    if not any(event & select.POLLERR for _, event in output.poll(0)):
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return True


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(OVERVIEW.format(version=__version__, verbs=_list_verbs(())))
        return 0
    if words[0] in ("-V", "--version"):
        print(f"estragon {__version__}")
        return 0
    words = [ALIASES.get(words[0], words[0]), *words[1:]]
    for length in (2, 1):
        name = tuple(words[:length])
        if name in VERBS:
            try:
                options = _parse(name, words[length:])
                return 0 if options is None else int(options.run() or 0)
            except ModuleNotFoundError as error:
                if error.name is None or error.name.startswith("estragon"):
                    raise
                raise UserError(
                    f"'estragon {' '.join(name)}' needs {error.name}; "
                    f"run: pip install 'estragon[{VERBS[name].extra}]'"
                ) from error
    if group := _list_verbs((words[0],)):
        if words[1:] and words[1] not in ("-h", "--help"):
            raise UserError(f"no command '{words[0]} {words[1]}'; estragon {words[0]} lists them")
        print(group)
        return 0 if words[1:] else BAD_INPUT
    known = sorted({name[0] for name in VERBS})
    near = difflib.get_close_matches(words[0], known, 1)
    hint = f"did you mean '{near[0]}'?" if near else "estragon --help lists them"
    raise UserError(f"no command '{words[0]}'; {hint}")


def _list_verbs(prefix: tuple[str, ...]) -> str:
    shown = [(name, verb) for name, verb in VERBS.items() if name[: len(prefix)] == prefix]
    return "\n".join(f"  estragon {' '.join(name):<17} {verb.summary}" for name, verb in shown)


def _parse(name: tuple[str, ...], words: list[str]) -> Any:
    """Parse a verb's options with tyro; None after `--help`, UserError if they are invalid."""
    import tyro  # slow to import, and not needed for an overview

    verb = VERBS[name]
    parts = " ".join(name).replace("-", " ").split()
    module = importlib.import_module(f"estragon.commands.{'_'.join(parts)}")
    options = getattr(module, "".join(map(str.capitalize, parts)) + "Command")
    program = f"estragon {' '.join(name)}"
    defaults = {"default": options.defaults()} if hasattr(options, "defaults") else {}
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(
                options, args=words, prog=program, use_underscores=verb.underscores, **defaults
            )
    except SystemExit as stop:
        if not stop.code:
            return None
        what = _first_section(complaint.getvalue())
        raise UserError(f"{what} ({program} --help)") from None


def _first_section(boxed: str) -> str:
    """The first section of tyro's framed error message, without the frame."""
    lines: list[str] = []
    for line in boxed.splitlines():
        text = line.strip("│ ")
        if text.startswith("╭") or not text:
            continue
        if text.startswith(("─", "╰")):
            break
        lines.append(text)
    return " ".join(lines) or "invalid options"


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
