"""A Ray cluster of nodes that are processes of this machine, each with places for env runners."""

import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from estragon.envs.connection import listen

RAY = Path(sys.executable).with_name("ray")


def free_port() -> int:
    with listen(0) as socket:
        return int(socket.getsockname()[1])


@contextlib.contextmanager
def cluster(nodes: int) -> Iterator[tuple[str, dict[str, str]]]:
    """Its address, and the environment of who wants to join it."""
    folder = Path(tempfile.mkdtemp(prefix="ray-"))  # short: sockets have names of limited length
    environment = dict(os.environ) | {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_USAGE_STATS_ENABLED": "0",
        "PYTHONPATH": str(Path(__file__).resolve().parents[3] / "src"),
    }
    address = f"127.0.0.1:{free_port()}"
    started: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(nodes):
            words = ["--node-ip-address=127.0.0.1", "--num-cpus=1", "--block"]
            words += ["--object-store-memory=100000000", f'--resources={{"node{number}": 1}}']
            if number == 0:
                port = address.partition(":")[2]
                words += ["--head", f"--port={port}", "--include-dashboard=false"]
                words += [f"--temp-dir={folder}"]
            else:
                words += [f"--address={address}"]
            log = folder / f"node{number}.log"
            with log.open("wb") as stream:
                started.append(
                    subprocess.Popen(
                        [RAY, "start", *words],
                        env=environment,
                        stdout=stream,
                        stderr=stream,
                        start_new_session=True,
                    )
                )
            wait_for_node(started[-1], log)
        yield address, environment
    finally:
        for node in reversed(started):
            node.terminate()
        for node in started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                node.wait(20.0)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(node.pid, signal.SIGKILL)  # a session of our own
        shutil.rmtree(folder, ignore_errors=True)


def wait_for_node(node: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 60.0
    while "Ray runtime started" not in log.read_text():
        assert node.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)


def env_runners() -> list[int]:
    """Processes that play games for RLlib on this machine."""
    told = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True)
    return [int(found[1]) for found in re.finditer(r"(\d+) ray::GameRunner", told.stdout)]
