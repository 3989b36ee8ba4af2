"""Pictures and the page as a person meets them: lines, hover, keyboard, screen reader, small screens."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
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


def wait_for_scores(page: Any, names: Iterable[str], *texts: str) -> None:
    """Wait until the table shows the scores of the metrics' functions, with three digits."""
    for name in names:
        score = METRICS[name].function([texts[0]], [texts[1]])["score"]
        page.locator(f"tr[data-row={name}] .n", has_text=f"{score:.3f}").wait_for()


def test_every_metric_scores_a_pair_and_a_click_draws_its_picture(address: str, open_page: Callable[..., Any]) -> None:
    page = open_page(address)
    names = [name for name, spec in METRICS.items() if spec.compared_with == "references"]
    wait_for_scores(page, names, *about("wms")["examples"][0][1:])
    page.get_by_label("Prediction", exact=True).fill(MARKUP)
    page.locator("tr[data-row]:visible").first.wait_for(state="detached")  # the scores of other texts
    page.get_by_label("Reference", exact=True).fill("Snow melts.")
    page.get_by_role("button", name="Score", exact=True).first.click()
    wait_for_scores(page, names, MARKUP, "Snow melts.")
    assert page.locator("iframe:visible").bounding_box()["y"] < 800
    page.get_by_role("button", name=METRICS["bertscore_emd"].title).press("Enter")
    page.frame_locator("iframe:visible").get_by_role("heading", name="one-to-many").wait_for()
    assert page.locator("[aria-pressed=true]:visible").inner_text() == METRICS["bertscore_emd"].title
    with page.expect_download() as download:
        page.get_by_role("button", name="Save picture (SVG)").first.click()
    assert download.value.suggested_filename == "bertscore_emd.svg"
    page.get_by_role("button", name="Copy link").first.click()
    page.wait_for_url("**metric=bertscore_emd")
    linked = open_page(page.url)
    wait_for_scores(linked, names, MARKUP, "Snow melts.")
    assert linked.get_by_label("Prediction", exact=True).input_value() == MARKUP
    linked.frame_locator("iframe:visible").get_by_role("heading", name="one-to-many").wait_for()


def test_a_file_is_scored_with_a_mended_column(address: str, open_page: Callable[..., Any], tmp_path: Path) -> None:
    rows = [{"output": f"{word} melts {MARKUP}", "source": "Mud.", "gold": "Ice."} for word in ("Snow", "Gold", "Wax")]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({**row, "target": row["gold"]}) + "\n" for row in rows))
    page = open_page(address)
    page.get_by_role("tab", name="A file").click()
    page.locator("input[type=file]").set_input_files(tmp_path / "rows.jsonl")
    page.wait_for_function("[...document.querySelectorAll('input')].some(field => field.value === 'output')")
    page.get_by_role("button", name="Score the file").click()
    page.get_by_role("alert").get_by_text("choose the column of references").wait_for()  # two have a common name
    page.get_by_label("Reference column").click()
    page.get_by_role("option", name="gold").click()
    page.get_by_role("button", name="Score the file").click()
    page.get_by_text("over 3 rows").wait_for()
    expected = movers.wms([row["output"] for row in rows], ["Ice."] * 3)["scores"]
    page.get_by_role("button", name="Score", exact=True).locator("visible=true").click()
    shown = page.locator(".movers-table:visible td.n").all_inner_texts()
    assert shown == [f"{score:.3f}" for score in sorted(expected)]
    page.locator("tr[data-row='2']").click()
    page.locator("iframe:visible").scroll_into_view_if_needed()  # otherwise browsers leave it undrawn
    page.frame_locator("iframe:visible").locator(".canvas path").first.wait_for(state="attached")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download all scores").click()
    with open(download.value.path(), encoding="utf-8") as file:
        assert [float(row["score"]) for row in csv.DictReader(file)] == expected


@pytest.mark.parametrize(("width", "dark"), [(390, True), (390, False), (1280, True), (1280, False)])
def test_every_tab_fits_the_screen_and_can_be_read_by_everyone(
    width: int, dark: bool, address: str, open_page: Callable[..., Any], check_page: Callable[[Any, str], None]
) -> None:
    page = open_page(address, width, dark)
    wait_for_scores(page, ["bertscore_emd"], *about("wms")["examples"][0][1:])
    parts = [page.locator(part).first for part in ("textarea", "button.primary", "tr[data-row=wms]", "iframe")]
    places = [part.bounding_box() for part in parts]
    assert all(one["y"] + one["height"] <= other["y"] for one, other in zip(places, places[1:], strict=False))
    check_page(page, f"scored-{width}-{dark}")
    page.get_by_label("Prediction", exact=True).fill("a" * 6000)
    page.get_by_role("button", name="Score", exact=True).first.click()
    page.get_by_role("alert").get_by_text("Prediction: expected at most 5,000 characters, but got 6,000").wait_for()
    check_page(page, f"error-{width}-{dark}")
    page.get_by_role("tab", name="A summary").click()
    name = "reference_free_summary_quality"
    wait_for_scores(page, [name], *about(name)["examples"][0][1:])
    page.frame_locator("iframe:visible").locator("mark.unsupported").first.wait_for()
    for tab in ("A summary", "A file", "API"):
        page.get_by_role("tab", name=tab).click()
        check_page(page, f"{tab.split()[-1].lower()}-{width}-{dark}")
