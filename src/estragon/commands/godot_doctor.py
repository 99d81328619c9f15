"""`estragon godot doctor`."""

import dataclasses

from estragon.godot.doctor import examine
from estragon.support.errors import CHECK_FAILED, OK


@dataclasses.dataclass(frozen=True)
class GodotDoctorCommand:
    """Check that Godot is installed and starts, with and without a window."""

    def run(self) -> int:
        """Print one line per check; 0 if a match could be played, 1 if not."""
        code = OK
        for finding in examine():
            print(finding, flush=True)
            if finding.needed and not finding.good:
                code = CHECK_FAILED
        return code
