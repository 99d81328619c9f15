"""A person at the page: opens it, clicks, and looks; notes what the page asks of other hosts."""

import contextlib
from collections.abc import Iterator
from typing import Any

from playwright.sync_api import Browser, Page

from tests.controller.staging import Server

PATIENCE_MS = 60_000
OWN = ("file:", "data:", "blob:")


class Visit:
    """An open page."""

    def __init__(self, page: Page, server: Server) -> None:
        self.page, self.server = page, server
        self.foreign: list[str] = []
        self.errors: list[str] = []
        page.on("request", self._note)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _note(self, request: Any) -> None:
        if not request.url.startswith((self.server.url, *OWN)):
            self.foreign.append(request.url)

    def enter(self) -> None:
        """Open it as `estragon ui` does."""
        self.page.goto(self.server.door)
        self.page.get_by_role("tab", name="Home").wait_for()

    def tab(self, name: str) -> None:
        """Show a tab, and wait until it is shown."""
        self.page.get_by_role("tab", name=name).click()
        self.page.locator(f"[data-tab={name}]").wait_for()

    def click(self, name: str) -> None:
        """Press a button, the first of that name."""
        self.page.get_by_role("button", name=name, exact=True).first.click()

    def sees(self, text: str) -> None:
        """Wait for a text."""
        self.page.get_by_text(text).first.wait_for()

    def sees_status(self, status: str, count: int = 1) -> None:
        """Wait until so many sessions have a status."""
        self.page.locator(f"[data-status={status}]").nth(count - 1).wait_for()


@contextlib.contextmanager
def visiting(
    browser: Browser, server: Server, width: int = 1280, height: int = 720
) -> Iterator[Visit]:
    """Open the page; at the end, nothing went wrong in it and it asked nothing of other hosts."""
    context = browser.new_context(viewport={"width": width, "height": height})
    context.set_default_timeout(PATIENCE_MS)
    with contextlib.closing(context):
        visit = Visit(context.new_page(), server)
        visit.enter()
        yield visit
        assert visit.foreign == []
        assert visit.errors == []
