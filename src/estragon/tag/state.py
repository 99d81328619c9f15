"""The state of every arena: plain records, so that saving a match is copying an array."""

import numpy as np

AGENT = np.dtype(
    [
        ("x", np.float64),
        ("y", np.float64),
        ("z", np.float64),
        ("velocity_x", np.float64),
        ("velocity_y", np.float64),
        ("velocity_z", np.float64),
        ("forward_x", np.float64),
        ("forward_z", np.float64),
        ("seen_x", np.float64),
        ("seen_y", np.float64),
        ("seen_z", np.float64),
        ("seen_tick", np.int64),
        ("immune_ticks", np.int64),
        ("it_ticks", np.int64),
        ("on_floor", np.int64),
    ]
)
"""One agent: centre of the cube, facing, where the opponent was last seen and when (-1 never)."""

ARENA = np.dtype(
    [
        ("number", np.int64),
        ("episode", np.int64),
        ("tick", np.int64),
        ("layout", np.int64),
        ("seeker", np.int64),
    ]
)
"""One arena: its number in the random streams, and which of its agents is "it" now."""


def vectors(records: np.ndarray, *fields: str) -> np.ndarray:
    """Some float fields of records side by side, as one array that shares their memory."""
    names = records.dtype.names or ()
    first = names.index(fields[0])
    if names[first : first + len(fields)] != fields:
        raise ValueError(f"{fields} do not lie side by side")
    plain = records.view(np.float64).reshape(*records.shape, len(names))
    return plain[..., first : first + len(fields)]
