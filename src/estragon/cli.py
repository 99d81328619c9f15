"""One door: `estragon <verb>`. Parses and calls; what a verb does lives in its own module."""

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
    """A command: a dataclass whose fields are its options and whose `run` does the work."""

    module: str
    options: str
    summary: str
    extra: str = "train"
    """The pip extra that brings what the core install lacks."""
    underscores: bool = False
    """Whether its options are written --like_this; both ways are understood."""


VERBS: dict[tuple[str, ...], Verb] = {
    ("train", "tag"): Verb(
        "estragon.commands.train_tag", "TrainTag", "teach a seeker and a hider by self-play"
    ),
    ("train", "sb3"): Verb(
        "estragon.commands.train_sb3",
        "TrainSb3",
        "teach the agents of any Godot game with Stable-Baselines3",
        extra="sb3",
        underscores=True,
    ),
    ("train", "rllib"): Verb(
        "estragon.commands.train_rllib",
        "TrainRllib",
        "teach the agents of any Godot game with Ray RLlib, several policies at once",
        extra="rllib",
        underscores=True,
    ),
    ("convert", "sb3"): Verb(
        "estragon.commands.convert_sb3",
        "ConvertSb3",
        "a Stable-Baselines3 model as ONNX, for games",
        extra="sb3,onnx",
    ),
    ("convert", "rllib"): Verb(
        "estragon.commands.convert_rllib",
        "ConvertRllib",
        "the policies of an RLlib checkpoint as ONNX, for games",
        extra="rllib,onnx",
    ),
    ("tune",): Verb(
        "estragon.commands.tune",
        "Tune",
        "search for the hyper-parameters that a game is learned best with",
        extra="tune",
        underscores=True,
    ),
    ("play",): Verb("estragon.commands.play", "Play", "you against a trained agent, in a window"),
    ("live",): Verb(
        "estragon.commands.live", "Live", "Godot plays, Python learns, over a WebSocket"
    ),
    ("eval", "tag"): Verb(
        "estragon.commands.eval_tag", "EvalTag", "play bots and policies against each other"
    ),
    ("eval-episode",): Verb(
        "estragon.commands.eval_episode", "EvalEpisode", "one match: its log and a picture of it"
    ),
    ("serve",): Verb("estragon.commands.serve", "Serve", "answer games that connect by WebSocket"),
    ("layout",): Verb(
        "estragon.commands.layout", "ShowLayout", "show a layout's boxes, or make one from a seed"
    ),
    ("godot", "install"): Verb(
        "estragon.commands.godot_install", "GodotInstall", "install a private copy of Godot 4"
    ),
    ("godot", "path"): Verb(
        "estragon.commands.godot_path", "GodotPath", "print which Godot is used"
    ),
    ("godot", "import"): Verb(
        "estragon.commands.godot_import",
        "GodotImport",
        "import a project and check that it plays",
    ),
    ("godot", "doctor"): Verb(
        "estragon.commands.godot_doctor", "GodotDoctor", "check that Godot is installed and starts"
    ),
    ("godot", "probe"): Verb(
        "estragon.commands.godot_probe",
        "GodotProbe",
        "play any game at random, report problems",
    ),
    ("export", "tag"): Verb(
        "estragon.commands.export_tag",
        "ExportTag",
        "trained policies as checked .onnx files",
        "onnx",
    ),
    ("onnx", "run"): Verb("estragon.commands.onnx_run", "OnnxRun", "run a .onnx file once", "onnx"),
    ("onnx", "compare"): Verb(
        "estragon.commands.onnx_compare",
        "OnnxCompare",
        "compare a .onnx file in Godot and in onnxruntime",
        "onnx",
    ),
    ("parity",): Verb("estragon.commands.parity", "Parity", "the same actions in both engines"),
    ("replay",): Verb(
        "estragon.commands.replay", "ShowReplay", "show a logged match again, in a window"
    ),
    ("record",): Verb("estragon.commands.record", "Record", "frames of a match, drawn by Godot"),
    ("encode",): Verb("estragon.commands.encode", "EncodeFrames", "make a film of frames"),
    ("film",): Verb("estragon.commands.film", "MakeFilm", "the video of a training run"),
    ("plot",): Verb("estragon.commands.plot", "DrawCharts", "charts of a training run"),
    ("collect-debug",): Verb(
        "estragon.commands.collect_debug",
        "CollectDebug",
        "bundle logs and metrics for a bug report",
    ),
    ("migrate-user-data",): Verb(
        "estragon.commands.migrate_user_data",
        "MigrateUserData",
        "copy old Godot user data into data/",
    ),
    ("demo",): Verb("estragon.commands.demo", "Demo", "print what a training run prints, made up"),
    ("bench",): Verb("estragon.commands.bench", "Bench", "measure speed on this machine"),
}

OVERVIEW = """\
estragon {version}: train, watch, test and ship game-playing agents for Godot 4.

Usage: estragon VERB [OPTIONS]        estragon VERB --help teaches one verb.

{verbs}

Try: estragon train tag

Options of every verb:
  --help     explain
  --debug    show a full traceback when something fails
  --version  print the version
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code: 0 fine, 1 a check failed, 2 bad input."""
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
    """Whether nobody reads what is printed any more, as with `| head`; then nothing more is."""
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
    """Read a verb's options with tyro; None after `--help`, UserError on anything wrong."""
    import tyro  # slow to import, and not needed for an overview

    verb = VERBS[name]
    options = getattr(importlib.import_module(verb.module), verb.options)
    program = f"estragon {' '.join(name)}"
    defaults = {"default": options.defaults()} if hasattr(options, "defaults") else {}
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(
                options,
                args=words,
                prog=program,
                use_underscores=verb.underscores,
                **defaults,
            )
    except SystemExit as stop:
        if not stop.code:
            return None
        what = _first_section(complaint.getvalue())
        raise UserError(f"{what} ({program} --help)") from None


def _first_section(boxed: str) -> str:
    """What tyro's framed message says first, without the frame."""
    lines: list[str] = []
    for line in boxed.splitlines():
        text = line.strip("│ ")
        if text.startswith("╭") or not text:
            continue
        if text.startswith(("─", "╰")):
            break
        lines.append(text)
    return " ".join(lines) or "these options make no sense"


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
