"""A headless browser, and pages served on loopback. Screenshots go to the folder that MOVERS_SCREENSHOTS names."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# As root in a container, and without asking anything of the network.
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("needs a browser: Debian's package chromium, or Google Chrome")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """`open_page(address, width=1280, dark=False)`; errors in the page and requests to elsewhere fail the test."""
    contexts, wrong = [], []

    def open_page(address: str, width: int = 1280, dark: bool = False) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 1000}, color_scheme="dark" if dark else "light", accept_downloads=True
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: wrong.append(f"error in the page: {error}"))
        page.on("dialog", lambda dialog: wrong.append(f"a script of a text ran: {dialog.message}"))
        page.on("request", lambda request: wrong.append(request.url) if _is_elsewhere(request.url) else None)
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def _is_elsewhere(url: str) -> bool:
    return url.startswith("http") and not url.startswith(("http://127.0.0.1", "http://localhost"))


@pytest.fixture(scope="session")
def served() -> Iterator[Callable[[], str]]:
    """The address of the page of all metrics, served from the first call on."""
    pytest.importorskip("gradio")
    pages: list[Any] = []

    def serve() -> str:
        from movers.serve import all_metrics_page, launch

        if not pages:
            page = all_metrics_page()
            launch(page, prevent_thread_lock=True, quiet=True)
            pages.append(page)
        return pages[0].local_url

    yield serve
    for page in pages:
        page.close()


@pytest.fixture
def screenshot() -> Callable[[Any, str], None]:
    """Write a screenshot, if a folder for them is named."""

    def write(page: Any, name: str) -> None:
        folder = os.environ.get("MOVERS_SCREENSHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=True)

    return write


@pytest.fixture(scope="session")
def faults() -> Callable[[Any], list[str]]:
    """Serious and critical accessibility faults that axe-core finds."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs the package axe-playwright-python")

    def find(page: Any) -> list[str]:
        found = axe.Axe().run(page).response["violations"]
        return [
            f"{fault['id']}: {fault['nodes'][0]['html'][:200]}"
            for fault in found
            if fault["impact"] in ("serious", "critical")
        ]

    return find
