"""Takes secrets out of text that is going to be shown to others."""

import re
from collections.abc import Mapping

SECRET_NAME = re.compile(r"token|key|secret|passw|credential|authorization", re.IGNORECASE)
"""What holds a secret has a name like this."""
HIDDEN = "[redacted]"
SHORTEST_SECRET = 8
"""Values shorter than this are not looked for in text: they would be found everywhere."""
ASSIGNED = re.compile(
    r"""((?:token|key|secret|passw|credential|authorization)[\w.-]{0,40}["']?\s{0,9}"""
    r"""(?:[:=]|\bis\b)\s{0,9}["']?(?:(?:bearer|basic)\s{1,9})?)([^\s"',;&<>]+)""",
    re.IGNORECASE,
)
"""`API_TOKEN=…`, `"password": "…"`, `Authorization: Bearer …`, `the token is …`."""
BEARER = re.compile(r"(\bbearer\s{1,9})([\w.~+/=-]{8,})", re.IGNORECASE)
IN_ADDRESS = re.compile(r"(://[^\s/:@]{0,99}:)([^\s/@]{1,999})(?=@)")
"""`https://name:…@host`."""


class Redactor:
    """Knows the secrets of an environment, and what others look like."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        values = {value for name, value in environment.items() if SECRET_NAME.search(name)}
        self._values = sorted((v for v in values if len(v) >= SHORTEST_SECRET), key=len)[::-1]

    def clean(self, text: str) -> str:
        """The text without secrets."""
        for value in self._values:
            text = text.replace(value, HIDDEN)
        for pattern in (ASSIGNED, BEARER, IN_ADDRESS):
            text = pattern.sub(rf"\g<1>{HIDDEN}", text)
        return text

    def variable(self, name: str, value: str) -> str:
        """An environment variable as it may be shown."""
        return f"{name}={HIDDEN if SECRET_NAME.search(name) else self.clean(value)}"
