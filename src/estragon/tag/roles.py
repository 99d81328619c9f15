"""The two sides of a match; a role's number is its place in ROLES."""

from typing import Literal

Role = Literal["seeker", "hider"]
ROLES: tuple[Role, Role] = ("seeker", "hider")
SEEKER, HIDER = 0, 1
