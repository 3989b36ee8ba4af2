"""Pictures and the page as a person meets them: lines, hover, keyboard, screen reader, small screens."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import movers
from movers.pictures import report
from movers.pictures.explain import about
from movers.registry import METRICS
from movers.scorer import Row

pytestmark = pytest.mark.slow
PREDICTION = "Neighbours dug out the bakery. Bread was on sale by noon. Bread was on sale by noon."
REFERENCE = "After the blizzard, villagers cleared the baker's shop. By midday it sold loaves again."
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(1)> snow"
SCREENS = [("wms", 390, True), ("swms", 1280, False), ("sms", 390, False), ("bertscore_emd", 1280, True)]
SCREENS += [("moverscore", 1280, False), ("reference_free_summary_quality", 390, True)]
SCREENS += [("bertscore_emd", 390, False), ("reference_free_summary_quality", 1280, False)]


@pytest.fixture
def draw(tmp_path: Path, open_page: Callable[..., Any]) -> Callable[..., Any]:
    def draw(name: str, width: int = 1280, dark: bool = False, texts: tuple[str, str] = (PREDICTION, REFERENCE)) -> Any:
        key = "source" if METRICS[name].compared_with == "sources" else "reference"
        movers.explain(name, texts[0], **{key: texts[1]}).save(tmp_path / "picture.html")
        return open_page((tmp_path / "picture.html").as_uri(), width, dark)

    return draw


@pytest.mark.parametrize(("name", "width", "dark"), SCREENS)
def test_pictures_fit_the_screen_and_can_be_read_by_everyone(
    name: str, width: int, dark: bool, draw: Callable[..., Any], check_page: Callable[[Any, str], None]
) -> None:
    page = draw(name, width, dark)
    assert page.locator(".canvas path").count() > 0
    check_page(page, f"{name}-{width}")
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    check_page(page, f"{name}-{width}-open")


def test_details_appear_on_hover_and_the_keyboard_crosses_to_the_partner(draw: Callable[..., Any]) -> None:
    page = draw("wms", texts=(PREDICTION + MARKUP, REFERENCE + MARKUP))
    unit, detail = page.locator(".left .unit", has_text="bakery"), page.locator(".detail")
    unit.hover()
    assert "“bakery”" in detail.inner_text() and "at distance" in detail.inner_text()
    page.mouse.move(0, 0)
    assert "Point at a unit" in detail.inner_text()
    units = page.locator(".left .unit")
    units.first.focus()
    reached = {page.evaluate("document.activeElement.dataset.n")}
    for _ in range(units.count() - 1):
        page.keyboard.press("ArrowDown")
        reached.add(page.evaluate("document.activeElement.dataset.n"))
    assert len(reached) == units.count()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.closest('.right') && document.activeElement.ariaSelected") == "true"
    assert page.locator("path.on").count() == detail.inner_text().count("at distance")


def test_rows_of_a_report_draw_when_they_are_opened(
    tmp_path: Path, open_page: Callable[..., Any], check_page: Callable[[Any, str], None]
) -> None:
    rows = [Row(PREDICTION, [REFERENCE]), Row("Shares fell.", [REFERENCE]), Row("", [REFERENCE])]
    (tmp_path / "report.html").write_text(report("wms", rows).html(), encoding="utf-8")
    page = open_page((tmp_path / "report.html").as_uri())
    page.locator("details.row > summary").first.click()
    page.locator(".canvas path").first.wait_for(state="attached")
    check_page(page, "report")


# --- the page of all metrics ---


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    pytest.importorskip("gradio")
    from movers.serve import all_metrics_page, launch

    page = all_metrics_page()
    launch(page, prevent_thread_lock=True, quiet=True)
    yield page.local_url
    page.close()


def wait_for_score(page: Any, score: float) -> None:
    number = re.compile(rf"^{re.escape(f'{score:.4g}')}$")
    page.locator(".movers-numbers b:visible", has_text=number).first.wait_for()


@pytest.mark.parametrize("name", ["wms", "bertscore_emd", "reference_free_summary_quality"])
def test_a_person_scores_a_pair_and_sees_its_picture(name: str, address: str, open_page: Callable[..., Any]) -> None:
    page = open_page(address)
    page.get_by_label(METRICS[name].title, exact=True).check()
    label, prediction, other = about(name)["examples"][1]
    page.get_by_role("button", name=label).locator("visible=true").click()
    expected = METRICS[name].function([prediction], [other])
    wait_for_score(page, expected["score"])
    page.locator("iframe.movers-frame:visible").scroll_into_view_if_needed()  # otherwise browsers leave it undrawn
    page.frame_locator("iframe.movers-frame:visible").locator(".canvas path").first.wait_for(state="attached")
    assert page.locator("textarea[disabled]:visible").input_value() == expected["signature"]


def test_a_file_is_uploaded_scored_and_downloaded(address: str, open_page: Callable[..., Any], tmp_path: Path) -> None:
    rows = [{"prediction": f"{word} melts {MARKUP}", "reference": "Ice melts."} for word in ("Snow", "Gold", "Wax")]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    page = open_page(address)
    page.get_by_role("tab", name="A file").click()
    page.locator("input[type=file]").set_input_files(tmp_path / "rows.jsonl")
    page.get_by_text("rows.jsonl").first.wait_for()
    page.get_by_role("button", name="Score the file").click()
    page.get_by_text("over 3 rows").wait_for()
    page.frame_locator("iframe.movers-frame:visible").locator(".histogram i").first.wait_for(state="attached")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download all scores").click()
    with open(download.value.path(), encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    expected = movers.wms([row["prediction"] for row in rows], [row["reference"] for row in rows])["scores"]
    assert [float(row["score"]) for row in table] == expected


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1280, True)])
def test_every_tab_fits_the_screen_and_can_be_read_by_everyone(
    width: int, dark: bool, address: str, open_page: Callable[..., Any], check_page: Callable[[Any, str], None]
) -> None:
    page = open_page(address, width, dark)
    page.locator("iframe.movers-frame").wait_for()
    for tab, content in (("A pair", "Options"), ("A file", "Score the file")):
        page.get_by_role("tab", name=tab).click()
        page.get_by_text(content).locator("visible=true").first.wait_for()
        check_page(page, f"page-{tab.split()[-1].lower()}-{width}")
