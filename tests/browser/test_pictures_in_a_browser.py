"""The pictures as a person meets them: lines, slider, hover, keyboard, screen reader, small screens."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import movers
from movers.pictures.explain import Explainer
from movers.pictures.report import report_of
from movers.registry import METRICS
from movers.weights import Corpus

PREDICTION = "Neighbours dug out the bakery. Bread was on sale by noon. Bread was on sale by noon."
REFERENCE = "After the blizzard, villagers cleared the baker's shop. By midday it sold loaves again."
SHOWN = ["wms", "sms", "swms", "moverscore", "bertscore_emd", "reference_free_summary_quality"]
SCREENS = [(name, width, dark) for name in SHOWN for width in (1280, 390) for dark in (False, True)]
FIRST = [("swms", 390, True), ("bertscore_emd", 1280, True), ("reference_free_summary_quality", 390, False)]


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Write the picture of a pair; returns its address."""
    folder = tmp_path_factory.mktemp("pictures")

    def write(name: str, prediction: str = PREDICTION, other: str = REFERENCE) -> str:
        key = "source" if METRICS[name].compared_with == "sources" else "reference"
        path = folder / f"{name}-{abs(hash((prediction, other)))}.html"
        movers.explain(name, prediction, **{key: other}).save(path)
        return path.as_uri()

    return write


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [screen if screen in FIRST else pytest.param(*screen, marks=pytest.mark.slow) for screen in SCREENS],
)
def test_pictures_fit_the_screen_and_can_be_read_by_everyone(
    name: str,
    width: int,
    dark: bool,
    picture: Callable[..., str],
    open_page: Callable[..., Any],
    faults: Callable[[Any], list[str]],
    screenshot: Callable[[Any, str], None],
) -> None:
    page = open_page(picture(name), width, dark)
    screenshot(page, f"{name}-{width}-{'dark' if dark else 'light'}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".canvas path").count() > 0
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert faults(page) == []


def test_the_slider_draws_the_strongest_flows_first(picture: Callable[..., str], open_page: Callable[..., Any]) -> None:
    page = open_page(picture("swms"))
    slider = page.locator("input[type=range]")
    total = int(slider.get_attribute("max") or 0)
    assert page.locator(".canvas path").count() == total
    slider.fill("3")
    assert page.locator(".canvas path").count() == 3
    assert page.locator("output").inner_text() == f"3 of {total}"
    widths = page.locator(".canvas path").evaluate_all("paths => paths.map(path => +path.getAttribute('stroke-width'))")
    slider.fill(str(total))
    every = page.locator(".canvas path").evaluate_all("paths => paths.map(path => +path.getAttribute('stroke-width'))")
    assert sorted(widths) == sorted(every)[-3:]


def test_panels_of_a_picture_share_one_scale_of_colours(
    picture: Callable[..., str], open_page: Callable[..., Any], screenshot: Callable[[Any, str], None]
) -> None:
    page = open_page(picture("bertscore_emd"))
    screenshot(page, "one-scale")
    for slider in page.locator("input[type=range]").all():
        slider.fill(slider.get_attribute("max") or "")
    drawn = page.evaluate("""() => [...document.querySelectorAll(".panel")].map((panel) => {
        const flows = JSON.parse(panel.querySelector("script").textContent);
        const paths = [...panel.querySelectorAll(".canvas path")].map((path) => path.style.stroke);
        return [flows.sort((a, b) => a[0] - b[0] || a[1] - b[1]).map((flow) => flow[3]), paths];
    })""")
    assert len(drawn) == 3
    costs = [cost for own, _ in drawn for cost in own]
    for own, strokes in drawn:
        for cost, stroke in zip(own, strokes, strict=True):
            share = 100 * (cost - min(costs)) / (max(costs) - min(costs))
            assert abs(share - float(re.search(r"([\d.]+)%", stroke)[1])) <= 0.6, stroke  # type: ignore[index]
    assert len({max(own) for own, _ in drawn}) > 1  # each by itself they would differ


def test_details_appear_on_hover_and_on_focus(picture: Callable[..., str], open_page: Callable[..., Any]) -> None:
    page = open_page(picture("wms"))
    unit, detail = page.locator(".left .unit", has_text="bakery"), page.locator(".detail")
    unit.hover()
    assert "“bakery”" in detail.inner_text() and "at distance" in detail.inner_text()
    page.mouse.move(0, 0)
    assert "Point at a unit" in detail.inner_text()
    unit.focus()
    assert "“bakery”" in detail.inner_text()
    assert page.locator("path.on").count() == detail.inner_text().count("at distance")


def test_the_keyboard_reaches_every_unit_and_crosses_to_its_partner(
    picture: Callable[..., str], open_page: Callable[..., Any]
) -> None:
    page = open_page(picture("wms"))
    units = page.locator(".left .unit")
    assert page.locator(".left .unit[tabindex='0']").count() == 1
    units.first.focus()
    reached = [page.evaluate("document.activeElement.dataset.n")]
    for _ in range(units.count() - 1):
        page.keyboard.press("ArrowDown")
        reached.append(page.evaluate("document.activeElement.dataset.n"))
    assert len(set(reached)) == units.count()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("Boolean(document.activeElement.closest('.right'))")
    assert page.evaluate("document.activeElement.ariaSelected") == "true"


def test_markup_of_texts_does_not_run(picture: Callable[..., str], open_page: Callable[..., Any]) -> None:
    text = "<script>alert(1)</script><img src=x onerror=alert(1)> snow"
    for name in ("sms", "moverscore", "reference_free_summary_quality"):
        page = open_page(picture(name, text, text))
        page.locator(".unit").first.hover()
        assert page.locator("main img").count() == 0
        assert "alert" in page.locator(".canvas").inner_text()


def test_of_two_thousand_words_the_largest_flows_are_drawn(
    picture: Callable[..., str], open_page: Callable[..., Any]
) -> None:
    # Words of the static vocabulary: all pairs of two syllables that make a short word.
    parts = [consonant + vowel for consonant in "bdfgklm" for vowel in "aeiou"]
    words = [first + second + "s" for first in parts for second in parts][:1100]
    sentences = [" ".join(words[begin : begin + 20]).capitalize() + "." for begin in range(0, len(words), 20)]
    page = open_page(picture("wms", " ".join(sentences), " ".join(sentences[::-1])))
    assert page.locator(".unit").count() > 2000
    assert page.locator(".canvas path").count() == 60


def test_rows_of_a_report_draw_when_they_are_opened(
    tmp_path: Path,
    open_page: Callable[..., Any],
    faults: Callable[[Any], list[str]],
    screenshot: Callable[[Any, str], None],
) -> None:
    rows = [(PREDICTION, [REFERENCE]), ("Shares fell.", [REFERENCE]), ("", [REFERENCE])]
    explainer = Explainer.build(METRICS["wms"], {}, Corpus([], []))
    target = tmp_path / "report.html"
    target.write_text(report_of(explainer, rows).html(), encoding="utf-8")
    page = open_page(target.as_uri())
    assert page.locator(".canvas path:visible").count() == 0
    page.locator("details.row > summary").first.click()
    page.locator(".canvas path").first.wait_for(state="attached")
    screenshot(page, "report")
    assert faults(page) == []
