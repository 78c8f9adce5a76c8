"""Chromium without a window, and the page in it: what a person sees, and what the browser complains about."""

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

__all__ = ["DESKTOP", "PHONE", "Seen", "chromium", "looking", "sign_in"]

DESKTOP, PHONE = (1280, 900), (390, 844)
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE = 20_000.0
"""Milliseconds: machines are shared."""


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser that is installed; where there is none, skip the test and name the package."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.skip("needs a browser: install the Debian package chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])  # root has no sandbox
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Seen:
    """What went wrong in the browser, in its own words."""

    problems: list[str] = field(default_factory=list)
    forgiven: bool = False
    """While the coordinator is away, a browser notes every request that fails."""

    def console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not self.forgiven:
            self.problems.append(message.text)

    def request(self, request: Any, address: str) -> None:
        if not request.url.startswith((address, "data:", "blob:")):
            self.problems.append(f"asked {request.url}")


@contextlib.contextmanager
def looking(
    browser: Browser, address: str, size: tuple[int, int] = DESKTOP, **more: Any
) -> Iterator[tuple[Page, Seen]]:
    """Open the page in a window of its own; in the end, nothing may have gone wrong in it."""
    seen = Seen()
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **more)
    context.set_default_timeout(_PATIENCE)
    expect.set_options(timeout=_PATIENCE)
    page = context.new_page()
    page.on("console", seen.console)
    page.on("pageerror", lambda error: seen.problems.append(str(error)))
    page.on("request", lambda request: seen.request(request, address))
    page.on("dialog", lambda dialog: seen.problems.append(f"a dialog of the browser: {dialog.message}"))
    page.goto(address)
    try:
        yield page, seen
    finally:
        context.close()
    assert seen.problems == []


def sign_in(page: Page, token: str) -> None:
    """Show a token to the page."""
    page.fill("#token", token)
    page.click("#sign-in button[type=submit]")
