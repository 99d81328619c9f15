"""The two colours that mean a role, in every chart and film."""

SEEKER, HIDER = "#d1495b", "#2e6f95"
ROLES = {"seeker": SEEKER, "hider": HIDER}
