"""Ray for a run: a private one on this machine, or a cluster."""

import contextlib
import logging
import os
import secrets
import shutil
import socket
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import ray
from ray._private.authentication.authentication_token_setup import AuthenticationTokenLoader

import estragon
from estragon.support.errors import UserError

OBJECT_STORE_BYTES = 256 * 2**20
LOCAL = "127.0.0.1"
JOIN_SEC = 10.0
STARTS = 3
"""Attempts to start: on a busy machine Ray itself times out after half a minute."""


def be_quiet() -> None:
    """Let Ray and RLlib log errors only."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    for name in ("ray", "ray.rllib", "ray.tune", "ray._private", "ray._common"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", module=r"ray\b.*")
    warnings.filterwarnings("ignore", category=DeprecationWarning)


@contextlib.contextmanager
def ray_session(address: str | None, cpus: int) -> Iterator[None]:
    """Start a private Ray with slots for `cpus` processes, or join the one at an address.

    If Ray is running already, use that.
    """
    be_quiet()
    if ray.is_initialized():
        yield
    elif address is not None:
        _join(address)
        be_quiet()  # joining resets the log levels
        try:
            yield
        finally:
            ray.shutdown()
    else:
        # Short: socket paths have a length limit.
        folder = Path(tempfile.mkdtemp(prefix="estragon-ray-", dir=os.environ.get("RAY_TMPDIR")))
        try:
            _start(folder, cpus)
            be_quiet()
            yield
        finally:
            ray.shutdown()
            shutil.rmtree(folder, ignore_errors=True)


def _join(address: str) -> None:
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=JOIN_SEC).close()
        except OSError as error:  # Ray itself would retry for minutes
            why = error.strerror or error
            raise UserError(f"--address {address}: cannot reach a Ray cluster: {why}") from error
    own = {"_node_ip_address": LOCAL} if host in (LOCAL, "localhost") else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **own)
    except Exception as error:
        why = " ".join(str(error).split())[:200]
        raise UserError(f"--address {address}: cannot reach a Ray cluster: {why}") from error


def _start(folder: Path, cpus: int) -> None:
    # Ray's processes import the same package; its token is in no file, so nobody else can connect.
    home = str(Path(estragon.__file__).parents[1])
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([home, before] if before else [home])
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    AuthenticationTokenLoader.instance().reset_cache()  # from an earlier Ray of this process
    try:
        for retries in reversed(range(STARTS)):
            try:
                ray.init(
                    address="local",
                    num_cpus=cpus,
                    num_gpus=None,
                    include_dashboard=False,
                    object_store_memory=OBJECT_STORE_BYTES,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    _node_ip_address=LOCAL,
                    _temp_dir=str(folder),
                )
                break
            except Exception as error:
                ray.shutdown()  # what has started so far
                if not retries or "timed out" not in str(error):
                    why = " ".join(str(error).split())
                    raise UserError(f"cannot start Ray: {why}") from error
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
