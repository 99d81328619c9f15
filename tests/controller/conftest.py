"""The browser of the controller's tests."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.controller.chromium import FLAGS, find_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium, installed if there is none."""
    program = str(find_chromium())
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=program, args=FLAGS)
