"""The page of all metrics as a person uses it."""

from __future__ import annotations

import csv
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import movers
from movers.registry import METRICS
from movers.serve.examples import EXAMPLES

MARKUP = "<script>alert(1)</script><img src=x onerror=alert(1)> snow"


@pytest.fixture
def page(served: Callable[[], str], open_page: Callable[..., Any]) -> Any:
    page = open_page(served())
    page.locator("iframe.movers-frame").wait_for()  # a result is there before the first click
    return page


def choose(page: Any, name: str) -> None:
    page.get_by_label(METRICS[name].title, exact=True).check()
    page.get_by_role("heading", name=METRICS[name].title, exact=True).wait_for()


def wait_for_score(page: Any, expected: float) -> None:
    page.locator(
        ".movers-numbers b:visible", has_text=re.compile(rf"^{re.escape(f'{expected:.4g}')}$")
    ).first.wait_for()


def score(page: Any, expected: float) -> None:
    """Press the button and wait for that score."""
    page.get_by_role("button", name="Score", exact=True).click()
    wait_for_score(page, expected)


def open_options(page: Any) -> None:
    """Unfold the form. What is filled in while it unfolds is lost to gradio: no person is that fast."""
    page.get_by_role("button", name="Options").click()
    page.locator(".movers-options label:visible").first.wait_for()
    page.wait_for_timeout(1000)


def wait_for_count(page: Any, locator: Any) -> None:
    """Wait until the locator finds something; frames may be replaced meanwhile."""
    end = time.monotonic() + 60
    while not locator.count() and time.monotonic() < end:
        page.wait_for_timeout(50)
    assert locator.count()


@pytest.mark.parametrize(
    "name", [name if name == "wms" else pytest.param(name, marks=pytest.mark.slow) for name in METRICS]
)
def test_a_person_scores_a_pair_with_each_metric_and_sees_its_picture(name: str, page: Any) -> None:
    choose(page, name)
    _, prediction, other = EXAMPLES[name][0]
    expected = METRICS[name].function([prediction], [other])
    score(page, expected["score"])
    page.locator(
        "iframe.movers-frame:visible"
    ).scroll_into_view_if_needed()  # browsers leave frames out of sight undrawn
    lines = page.frame_locator("iframe.movers-frame:visible").locator(".canvas path")
    wait_for_count(page, lines)
    assert page.locator("textarea[disabled]:visible").input_value() == expected["signature"]
    link = page.locator("a:visible[href^='https://']").first
    assert "20" in link.inner_text()


def test_a_changed_option_and_another_reference_change_the_score(page: Any) -> None:
    _, prediction, other = EXAMPLES["wms"][0]
    open_options(page)
    page.get_by_label("normalize", exact=True).check()
    score(page, movers.wms([prediction], [other], normalize=True)["score"])
    page.get_by_role("button", name="Add a reference").click()
    page.get_by_label("Reference 2", exact=True).fill(prediction)
    score(page, 1.0)
    frame = page.frame_locator("iframe.movers-frame:visible")
    wait_for_count(page, frame.locator("h2", has_text="Reference 2 of 2"))


def test_examples_fill_the_fields_and_score(page: Any) -> None:
    label, prediction, other = EXAMPLES["wms"][1]
    page.get_by_role("button", name=label).click()
    expected = movers.wms([prediction], [other])["score"]
    wait_for_score(page, expected)
    assert page.get_by_label("Prediction", exact=True).input_value() == prediction


def test_the_signature_is_copied(page: Any) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("[aria-label*='Copy' i]:visible, button[title*='Copy' i]:visible").first.click()
    page.wait_for_timeout(200)
    assert page.evaluate("navigator.clipboard.readText()").startswith("wms|emb:")


def test_a_file_is_uploaded_scored_and_downloaded(page: Any, tmp_path: Path) -> None:
    rows = [{"prediction": f"{word} melts {MARKUP}", "reference": "Ice melts."} for word in ("Snow", "Gold", "Wax")]
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    page.get_by_role("tab", name="A file").click()
    page.locator("input[type=file]").set_input_files(source)
    page.get_by_text("rows.jsonl").first.wait_for()
    page.get_by_role("button", name="Score the file").click()
    page.get_by_text("over 3 rows").wait_for()
    wait_for_count(page, page.frame_locator("iframe.movers-frame:visible").locator("svg.histogram rect"))
    assert page.get_by_text("Gold melts <script>").first.is_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download all scores").click()
    with open(download.value.path(), encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    expected = movers.wms([row["prediction"] for row in rows], [row["reference"] for row in rows])["scores"]
    assert [float(row["score"]) for row in table] == expected


def test_a_bad_file_is_answered_with_a_message(page: Any, tmp_path: Path, faults: Callable[[Any], list[str]]) -> None:
    source = tmp_path / "bad.csv"
    source.write_text("<img src=x onerror=alert(1)>,b\n1,2\n")
    page.get_by_role("tab", name="A file").click()
    page.locator("input[type=file]").set_input_files(source)
    page.get_by_text("bad.csv").first.wait_for()
    page.get_by_role("button", name="Score the file").click()
    message = page.get_by_role("alert").locator("visible=true")
    message.wait_for()
    assert "expected --prediction-column to name a column, but got the columns <img src=x" in message.inner_text()
    assert faults(page) == []


def test_markup_of_texts_does_not_run(page: Any) -> None:
    page.get_by_label("Prediction", exact=True).fill(MARKUP)
    page.get_by_label("Reference", exact=True).fill(MARKUP)
    score(page, 1.0)
    wait_for_count(page, page.frame_locator("iframe.movers-frame:visible").locator(".unit", has_text="alert"))
    assert page.locator("img[src='x']").count() == 0
    open_options(page)
    page.locator(".movers-options label:visible", has_text="language code").locator("textarea, input").fill("<b>x</b>")
    page.get_by_role("button", name="Score", exact=True).click()
    message = page.get_by_role("alert").locator("visible=true")
    message.wait_for()
    assert "<b>x</b>" in message.inner_text()


def test_what_is_refused_is_told_in_the_page(page: Any, screenshot: Callable[[Any, str], None]) -> None:
    choose(page, "moverscore")
    page.get_by_label("Prediction", exact=True).locator("visible=true").fill("天地人" * 6000)
    page.get_by_label("Reference", exact=True).locator("visible=true").fill("人天" * 9000)
    page.get_by_role("button", name="Score", exact=True).locator("visible=true").click()
    message = page.get_by_role("alert").locator("visible=true")
    message.wait_for()
    assert "expected work for at most 30 seconds, but this would take about" in message.inner_text()
    screenshot(page, "page-refused")


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        (390, False),
        *(pytest.param(*screen, marks=pytest.mark.slow) for screen in [(1280, False), (1280, True), (390, True)]),
    ],
)
def test_every_tab_fits_the_screen_and_can_be_read_by_everyone(
    width: int,
    dark: bool,
    served: Callable[[], str],
    open_page: Callable[..., Any],
    faults: Callable[[Any], list[str]],
    screenshot: Callable[[Any, str], None],
) -> None:
    page = open_page(served(), width, dark)
    page.locator("iframe.movers-frame").wait_for()
    open_options(page)
    for tab in ("A pair", "A file", "API"):
        page.get_by_role("tab", name=tab).click()
        page.wait_for_timeout(400)
        screenshot(page, f"page-{tab.split()[-1].lower()}-{width}-{'dark' if dark else 'light'}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert faults(page) == []


def test_programs_call_the_page(served: Callable[[], str]) -> None:
    from gradio_client import Client

    client = Client(served(), verbose=False)
    result = client.predict("Snow melts.", ["Ice thaws."], {"normalize": True}, api_name="/wms")
    expected = movers.wms(["Snow melts."], ["Ice thaws."], normalize=True)
    assert (result["score"], result["signature"]) == (expected["score"], expected["signature"])
    with pytest.raises(Exception, match="expected one of wordllama"):
        client.predict("a", ["b"], {"model": "/etc/passwd"}, api_name="/wms")
