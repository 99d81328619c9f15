"""A run on disk: everything it takes to go on to the same bits."""

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch

from estragon.support.errors import UserError
from estragon.support.files import check_archive, write_whole

LARGEST_FILE = 2**32
FORMAT, VERSION = "estragon-run", 1
NOT_A_CHECKPOINT = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    EOFError,
    MemoryError,
    OverflowError,
    RuntimeError,
    pickle.UnpicklingError,
    zipfile.BadZipFile,
)


def save_checkpoint(path: Path, contents: dict[str, Any]) -> None:
    """Write tensors and plain data as one whole file."""
    stream = io.BytesIO()
    torch.save({"format": FORMAT, "version": VERSION, **contents}, stream)
    write_whole(path, stream.getvalue())


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read what `save_checkpoint` wrote; refuse anything else, and never run its code."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read checkpoint {path}: {error.strerror or error}") from error
    try:
        check_archive(data, LARGEST_FILE)
        contents = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
        fits, version = contents["format"] == FORMAT, int(contents["version"])
    except Exception as error:
        raise damaged(path) from error
    if not fits:
        raise damaged(path)
    if version != VERSION:
        raise UserError(f"{path}: made by another version ({version}, this one reads {VERSION})")
    return dict(contents)


def damaged(path: Path) -> UserError:
    """What to say of a file that is no checkpoint of ours, or no longer one."""
    return UserError(f"{path} is not a checkpoint of a run, or it is damaged; train a new run")
