"""Secrets never get out; what is none stays readable."""

import pytest

from estragon.judge.debug_bundle import HIDDEN, Redactor

SECRET = "s3cr3t-Value.42"


@pytest.mark.parametrize(
    "text",
    [
        f"API_TOKEN={SECRET}",
        f"export my.api-key='{SECRET}'",
        f'{{"password": "{SECRET}", "speed": 8}}',
        f"Authorization: Bearer {SECRET}",
        f"sent with bearer {SECRET} to the game",
        f"the token is {SECRET}",
        f"token: {SECRET}",
        f"SECRET = {SECRET}",
        f"client_secret={SECRET}&user=me",
        f"git clone https://me:{SECRET}@example.org/x.git",
        f"credentials: {SECRET}",
    ],
)
def test_what_looks_like_a_secret_is_taken_out(text: str) -> None:
    cleaned = Redactor({}).clean(f"before\n{text}\nafter")
    assert SECRET not in cleaned
    assert HIDDEN in cleaned
    assert cleaned.startswith("before\n")
    assert cleaned.endswith("\nafter")


@pytest.mark.parametrize(
    "text",
    [
        "tick 12: Agent1 tags Agent2",
        "episode,reward_mean\n1,0.5\n",
        "http://127.0.0.1:8080/health",
        "A" * 300_000 + " " * 300_000 + "token" * 60_000 + " and " + "://" * 100_000,
        "ws://127.0.0.1:8765 opening handshake failed",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redactor({"API_TOKEN": SECRET}).clean(text) == text


def test_the_secrets_of_the_environment_are_found_anywhere() -> None:
    redactor = Redactor({"API_TOKEN": SECRET, "MY_KEY": SECRET + "-longer", "HOME": "/home/me"})
    cleaned = redactor.clean(f"/home/me says {SECRET} and {SECRET}-longer")
    assert cleaned == f"/home/me says {HIDDEN} and {HIDDEN}"


def test_short_values_are_not_looked_for() -> None:
    assert Redactor({"API_KEY": "1"}).clean("episode 1 of 11") == "episode 1 of 11"


def test_variables() -> None:
    redactor = Redactor({})
    assert redactor.variable("AI_RECORD", "1") == "AI_RECORD=1"
    assert redactor.variable("ESTRAGON_API_KEY", "x") == f"ESTRAGON_API_KEY={HIDDEN}"
    assert SECRET not in redactor.variable("AI_URL", f"https://me:{SECRET}@host")
