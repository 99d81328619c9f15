"""What a client may ask at most, and how long anything may take: the table of ws_protocol.md."""

from dataclasses import dataclass

PORT = 8765
PROTOCOL = 1
LARGEST_MESSAGE = 16 * 2**20
"""Bytes."""
MOST_ARENAS = 1024
LARGEST_OBSERVATION = 4096
MOST_SIZES = 16
"""Different observation sizes of a server."""
MOST_AGENTS = 2048
"""In an `act_batch`, and of a connection."""
LONGEST_NAME = 128
MOST_TRANSITIONS = 4096
BAD_MESSAGES_IN_A_ROW = 100


@dataclass(frozen=True)
class Limits:
    """The limits of a server that a test makes tighter."""

    connections: int = 64
    open_sec: float = 10.0
    """For the opening handshake."""
    send_sec: float = 20.0
    """For a client to take an answer."""
    ping_every_sec: float = 20.0
    ping_sec: float = 60.0
    """For a client to answer a ping."""
    close_sec: float = 2.0
    """For a client to answer that the connection is closed."""
