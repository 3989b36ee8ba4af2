"""A headless browser. Screenshots go to the folder that MOVERS_SCREENSHOTS names."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# As root in a container, and without asking anything of the network.
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("needs a browser: Debian's package chromium, or Google Chrome")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """`open_page(address, width=1280, dark=False)`; errors in the page and requests to elsewhere fail the test."""
    contexts, faults = [], []

    def open_page(address: str, width: int = 1280, dark: bool = False) -> Any:
        scheme = "dark" if dark else "light"
        context = browser.new_context(viewport={"width": width, "height": 1000}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: faults.append(f"error in the page: {error}"))
        page.on("dialog", lambda dialog: faults.append(f"a script of a text ran: {dialog.message}"))
        page.route("**", lambda route: route.continue_() if _is_here(route.request.url) else faults.append(route))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


def _is_here(url: str) -> bool:
    return not url.startswith("http") or url.startswith(("http://127.0.0.1", "http://localhost"))


@pytest.fixture
def check_page() -> Callable[[Any, str], None]:
    """Check that a page fits its screen and has no serious accessibility fault; write a screenshot if asked to."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs the package axe-playwright-python")

    def check(page: Any, name: str) -> None:
        if folder := os.environ.get("MOVERS_SCREENSHOTS"):
            page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        faults = axe.Axe().run(page).response["violations"]
        assert [fault for fault in faults if fault["impact"] in ("serious", "critical")] == []

    return check
