"""The tag game again, slow and plain, written from docs/physics.md alone.

It exists to be compared with the real engines: where all of them agree to the last bit, the page
says enough to write the game from. It shares no code with them and must not import any. Names and
formulas follow the page; the order of every sum and product matters.
"""

from tests.tag.reference.arithmetic import threefry
from tests.tag.reference.match import ReferenceMatch

__all__ = ["ReferenceMatch", "threefry"]
