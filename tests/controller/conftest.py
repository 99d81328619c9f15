"""The browser of the controller's tests, and one controller that most of them share."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.controller.chromium import FLAGS, find_chromium
from tests.controller.staging import Server, serving


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A real Chromium, installed if there is none."""
    program = str(find_chromium())
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A controller; a page opens the project that `Server.use` names."""
    with serving(tmp_path_factory.mktemp("controller")) as running:
        yield running
