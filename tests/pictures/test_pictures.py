"""What pictures show, compared with the alignments that metrics return."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from html import unescape
from itertools import combinations
from pathlib import Path

import pytest

import movers
from movers.errors import InputError
from movers.pictures import Explanation, report
from movers.pictures.explain import marked_texts
from movers.registry import METRICS
from movers.scorer import Row

PREDICTION = "Neighbours dug out the bakery. Bread was on sale by noon. Bread was on sale by noon."
REFERENCE = "After the blizzard, villagers cleared the baker's shop. By midday it sold loaves again."
MARKUP = "<script>alert(1)</script> <img src=x onerror=alert(1)> & \"quoted\" 'twice' $x_1$ </textarea> sale"


def explained(name: str, prediction: str = PREDICTION, other: str = REFERENCE) -> Explanation:
    key = "source" if METRICS[name].compared_with == "sources" else "reference"
    return movers.explain(name, prediction, **{key: other})


def elements(markup: str, tag: str, attribute: str = "") -> list[str]:
    """What the elements with that tag and attribute hold."""
    return [unescape(inner) for inner in re.findall(rf"<{tag}\b[^>]*{attribute}[^>]*>(.*?)</{tag}>", markup, re.DOTALL)]


@pytest.mark.parametrize("name", METRICS)
def test_the_score_is_the_metrics_own(name: str) -> None:
    explanation = explained(name)
    result = METRICS[name].function([PREDICTION], [REFERENCE])
    assert explanation.score == pytest.approx(result["score"], abs=1e-6)
    assert explanation.signature == result["signature"]


@pytest.mark.parametrize("name", ["wms", "sms", "swms", "moverscore"])
def test_the_page_holds_every_unit_and_every_flow_of_the_alignment(name: str) -> None:
    alignment = METRICS[name].function([PREDICTION], [REFERENCE], return_alignment=True)["alignments"][0][0]
    page = explained(name).html()
    units = [unit["text"] for side in ("prediction", "reference") for unit in alignment[side]]
    assert sorted(elements(page, "span", 'class="text"')) == sorted(units)
    (data,) = elements(page, "script", "json")
    drawn = json.loads(data)
    total = sum(flow["mass"] for flow in alignment["flows"])
    expected = {(flow["i"], flow["j"]): (flow["mass"] / total, flow["cost"]) for flow in alignment["flows"]}
    assert {(i, j): pytest.approx((share, cost)) for i, j, share, cost, _ in drawn} == expected
    shares = [share for _, _, share, _, _ in drawn]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("name", METRICS)
def test_both_texts_are_on_the_page_as_written_and_dropped_words_have_a_reason(name: str) -> None:
    prediction = "  We don't  sell snow;\n snow isn’t 5 % ice – it's café-cold! "
    page = explained(name, prediction).html()
    running = [re.sub("<[^>]*>", "", text) for text in elements(page, "p", 'class="running"')]
    assert running == [prediction, REFERENCE]
    alignment = METRICS[name].function([prediction], [REFERENCE], return_alignment=True)["alignments"][0][0]
    dropped = [unit for side in alignment.get("dropped", {}).values() for unit in side if unit["kind"] != "special"]
    reasons = re.findall('class="dropped" title="([^"]+)"', page)
    assert sorted(reasons) == sorted(unit["reason"] for unit in dropped)
    assert all(f"{reason}: " in page for reason in reasons)


def test_the_page_says_why_texts_that_differ_score_one() -> None:
    explanation = movers.explain("wms", "Prices went up.", "Prices went down.", preset="paper")
    page = explanation.html()
    assert explanation.score == 1.0 and "The texts differ only in grey words" in page
    assert "stop word: up<" in page and "stop word: down<" in page


def test_a_later_occurrence_of_a_word_belongs_to_its_unit() -> None:
    (running, _) = elements(explained("wms", "Snow on snow.", "Ice melts.").html(), "p", 'class="running"')
    assert re.findall('data-n="0"[^>]*>(.*?)<', running) == ["Snow", "snow"]


@pytest.mark.parametrize("name", METRICS)
def test_the_page_needs_nothing_from_outside_and_names_the_paper(name: str) -> None:
    page = explained(name).html()
    assert "://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"<(link|img|iframe|object|embed|base|form)\b|<[^>]*\s(src|href|action|on\w+)=", page)
    assert "doi:10." in page


def test_what_greedy_matched_more_than_once_is_marked_and_nothing_else() -> None:
    greedy, once, many = explained("bertscore_emd").pictures[0].panels
    counts = Counter(flow.j for flow in greedy.flows)
    assert {place for place, unit in enumerate(greedy.right) if unit.mark} == {j for j, n in counts.items() if n > 1}
    assert any(unit.mark for unit in greedy.right)
    for panel in (once, many):
        assert not any(unit.mark for unit in [*panel.left, *panel.right])
    assert max(Counter(flow.i for flow in once.flows).values()) == 1
    assert max(Counter(flow.j for flow in once.flows).values()) == 1


@pytest.mark.parametrize("alignment", ["optimal", "greedy"])
def test_bertscores_panels_have_the_scores_of_their_alignments(alignment: str) -> None:
    explanation = movers.explain("bertscore_hungarian", PREDICTION, REFERENCE, alignment=alignment)
    runs = [
        movers.bertscore_hungarian([PREDICTION], [REFERENCE], alignment="greedy"),
        movers.bertscore_hungarian([PREDICTION], [REFERENCE]),
        movers.bertscore_emd([PREDICTION], [REFERENCE]),
    ]
    titles = [float(panel.title.split()[-1]) for panel in explanation.pictures[0].panels]
    assert titles == pytest.approx([run["score"] for run in runs], abs=5e-4)
    assert explanation.score == pytest.approx(runs[alignment == "optimal"]["score"], abs=1e-6)


def test_parts_of_a_summary_are_supported_unsupported_or_repeated() -> None:
    document = "The river flooded the town on Monday. Volunteers filled sandbags. The mayor thanked them."
    summary = "The river flooded the town. Shares rose in Tokyo. The river flooded the town again."
    explanation = explained("reference_free_summary_quality", summary, document)
    panel = explanation.pictures[0].panels[0]
    marks = [(unit.text, unit.mark) for unit in panel.left if unit.kind == "fact"]
    assert [unit.mark for unit in panel.left[:3]] == ["supported", "unsupported", "repeated"]
    assert marks == [("Tokyo", "unsupported")]
    assert [unit.mark for unit in panel.right] == ["covered", "", ""]
    assert [unit.text for unit in panel.right] == re.split(r"(?<=\.) ", document)
    assert {"faithfulness", "coverage"} <= explanation.numbers.keys()


def test_a_number_that_the_document_lacks_is_marked_in_the_text() -> None:
    document = "In 1999 the river flooded 12 houses.\n<b>Nobody</b> was hurt."
    explanation = explained("reference_free_summary_quality", "In 1999 the river flooded 9 houses.", document)
    summary, covered = elements(marked_texts(explanation), "p", 'class="running"')
    assert re.findall('<mark class="unsupported" title="not in the document"[^>]*>(.*?)</mark>', summary) == ["9"]
    assert re.findall('<mark class="covered"[^>]*>(.*?)</mark>', covered) == ["In 1999 the river flooded 12 houses."]
    assert "<b>Nobody" not in marked_texts(explanation)


def test_the_best_reference_comes_first() -> None:
    explanation = movers.explain("wms", "Snow melts.", ["Shares fell.", "Snow melts."])
    assert [picture.title.split(":")[0] for picture in explanation.pictures] == ["Reference 2 of 2", "Reference 1 of 2"]
    assert explanation.score == 1.0


def check_markup(page: str) -> None:
    assert "<img" not in page and not any("alert" in script for script in elements(page, "script"))
    assert "alert" in page


@pytest.mark.parametrize("name", METRICS)
def test_markup_in_texts_comes_out_as_text(name: str, tmp_path: Path) -> None:
    explanation = explained(name, MARKUP + ".", MARKUP + ".")
    check_markup(explanation.html())
    explanation.save(tmp_path / "a.svg")
    root = ET.parse(tmp_path / "a.svg").getroot()
    assert not [node for node in root.iter() if node.tag.split("}")[-1] in ("script", "img")]
    assert "alert" in "".join(node.text or "" for node in root.iter())


def test_a_notebook_gets_a_frame_that_may_not_reach_the_notebook() -> None:
    frame = explained("wms")._repr_html_()
    assert frame.startswith("<iframe") and 'sandbox="allow-scripts"' in frame
    (inside,) = re.findall('srcdoc="([^"]*)"', frame)
    assert elements(unescape(inside), "span", 'class="text"')


def test_files_are_what_their_names_say(tmp_path: Path) -> None:
    explanation = explained("wms")
    for name in ("a.png", "1.svg", "2.svg", "a.json"):
        explanation.save(tmp_path / name)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "1.svg").read_bytes() == (tmp_path / "2.svg").read_bytes()
    texts = [node.text for node in ET.parse(tmp_path / "1.svg").getroot().iter() if node.tag.endswith("}text")]
    panel = explanation.pictures[0].panels[0]
    assert {unit.text for unit in [*panel.left, *panel.right]} <= set(texts)
    saved = json.loads((tmp_path / "a.json").read_text())
    assert saved["score"] == explanation.score
    saved_panel = saved["pictures"][0]["panels"][0]
    assert saved_panel["flows"][0]["cost"] == panel.flows[0].cost
    assert [unit["text"] for unit in saved_panel["dropped"][0]] == [unit.text for unit in panel.dropped[0]] != []
    with pytest.raises(InputError, match=r"a\.pdf: cannot write it: expected a name that ends in"):
        explanation.save(tmp_path / "a.pdf")


@pytest.mark.parametrize("name", ["wms", "swms", "bertscore_emd"])
def test_at_most_ten_labels_are_drawn_and_they_do_not_overlap(name: str) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = explained(name).figure()
    FigureCanvasAgg(figure).draw()
    for axis in figure.axes:
        labels = [text for text in axis.texts if re.fullmatch(r"\d\.\d{3}", text.get_text())]
        boxes = [label.get_window_extent() for label in labels]
        assert len(boxes) <= 10 and not any(first.overlaps(second) for first, second in combinations(boxes, 2))
    assert boxes or name != "bertscore_emd"


def test_lines_cells_and_words_agree_in_colour() -> None:
    explanation = explained("wms")
    panel, (lines, matrix) = explanation.pictures[0].panels[0], explanation.figure().axes
    cells = matrix.images[0].get_array()
    for flow, line in zip(panel.flows, lines.patches, strict=True):
        assert line.get_edgecolor()[:3] == pytest.approx(tuple(cells[flow.i, flow.j][:3]))
    page = explanation.html()
    i, _, _, _, tint = json.loads(elements(page, "script", "json")[0])[0]
    assert f'data-n="{i}" style="--tint:{tint};' in page


def test_print_shows_score_and_strongest_matches_in_one_line() -> None:
    explanation = explained("wms")
    panel = explanation.pictures[0].panels[0]
    flow, shown = panel.flows[0], str(explanation)
    match = f"{panel.left[flow.i].text} → {panel.right[flow.j].text} ({flow.cost:.3f})"
    assert shown.startswith(f"wms {explanation.score:.3f}: {match}, ") and "\n" not in shown


@pytest.mark.parametrize("name", ["wms", "bertscore_emd", "reference_free_summary_quality"])
def test_blank_texts_have_a_picture_that_says_so(name: str, tmp_path: Path) -> None:
    explanation = explained(name, " ")
    assert explanation.flags == ["empty"]
    assert "Nothing was matched" in explanation.html()
    explanation.save(tmp_path / "a.svg")


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("wms", {}, "wms: explain: expected `reference`"),
        ("wms", {"source": "a"}, "wms: explain: expected `reference`"),
        ("reference_free_summary_quality", {"reference": "a"}, "expected `source`"),
        ("wms", {"reference": "a", "distance": "far"}, "wms: distance: expected"),
        ("wmss", {"reference": "a"}, "did you mean 'wms'"),
    ],
)
def test_wrong_arguments_are_named(name: str, arguments: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        movers.explain(name, "a", **arguments)


# --- the report ---

WORDS = "snow ice rain wind storm cloud river lake sea hill stone sand tree leaf root seed bird fish horse wolf".split()
ROWS = [*(Row(f"{word} melts today", ["ice melts today"]) for word in WORDS), Row("", ["a"]), Row("...", ["snow"])]


@pytest.mark.parametrize("options", [{}, {"idf": "corpus"}])
def test_a_report_shows_the_best_and_worst_rows_of_the_whole_file(options: dict[str, object]) -> None:
    expected = movers.wms([row.prediction for row in ROWS], [row.references for row in ROWS], **options)
    scores = expected["scores"]
    shown = report("wms", ROWS, **options)
    ranked = sorted(scores, reverse=True)
    assert list(shown.scores) == scores and shown.signature == expected["signature"]
    assert [scores[row] for row, _ in shown.best] == ranked[:10]
    assert [scores[row] for row, _ in shown.worst] == ranked[::-1][:10]
    for row, explanation in [*shown.best, *shown.worst]:
        assert (explanation.prediction, explanation.score) == (ROWS[row].prediction, scores[row])
    assert shown.flagged == {"empty": [20], "unfiltered": [21], "truncated": [], "unknown": []}
    page = shown.html()
    assert "1 of 22; rows 21</p>" in page
    assert page.count('<details class="row">') == 20 and page.count("<br>ice melts today</summary>") >= 18


def test_few_rows_are_shown_once_and_their_markup_is_text() -> None:
    shown = report("wms", [Row("<script>alert(1)</script> snow", ["<img src=x onerror=alert(1)> snow"])])
    assert (len(shown.best), len(shown.worst)) == (1, 0)
    check_markup(shown.html())
