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
from matplotlib.backends.backend_agg import FigureCanvasAgg

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
def test_the_page_has_the_metrics_own_score_and_needs_nothing_from_outside(name: str) -> None:
    explanation = explained(name)
    result = METRICS[name].function([PREDICTION], [REFERENCE])
    assert (explanation.score, explanation.signature) == (pytest.approx(result["score"]), result["signature"])
    page = explanation.html()
    assert f"<b>{result['score']:.3f}</b><span>score</span>" in page and "doi:10." in page
    assert "://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"<(link|img|iframe|object|embed|base|form)\b|<[^>]*\s(src|href|action|on\w+)=", page)


@pytest.mark.parametrize("name", ["wms", "sms", "swms", "moverscore"])
def test_the_page_holds_every_unit_and_every_flow_of_the_alignment(name: str) -> None:
    alignment = METRICS[name].function([PREDICTION], [REFERENCE], return_alignment=True)["alignments"][0][0]
    page = explained(name).html()
    units = [unit["text"] for side in ("prediction", "reference") for unit in alignment[side]]
    assert sorted(elements(page, "span", 'class="text"')) == sorted(units)
    (flows,) = map(json.loads, elements(page, "script", "json"))
    total = sum(flow["mass"] for flow in alignment["flows"])
    expected = {(flow["i"], flow["j"]): (flow["mass"] / total, flow["cost"]) for flow in alignment["flows"]}
    assert {(i, j): pytest.approx((share, cost)) for i, j, share, cost, _ in flows} == expected
    assert flows == sorted(flows, key=lambda flow: -flow[2])


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
    explanation = movers.explain("wms", "Prices went up.", "prices went DOWN: prices went.", preset="paper")
    page = explanation.html()
    assert explanation.score == 1.0 and "The texts differ only in grey words" in page
    assert "stop word: up<" in page and "stop word: down<" in page
    assert re.findall('data-n="0" style="[^"]*">(.*?)<', page) == ["Prices", "prices", "prices"]  # one unit per type


def test_what_greedy_matched_more_than_once_is_marked_and_nothing_else() -> None:
    greedy, once, many = explained("bertscore_emd").pictures[0].panels
    counts = Counter(flow.j for flow in greedy.flows)
    assert {place for place, unit in enumerate(greedy.right) if unit.mark} == {j for j, n in counts.items() if n > 1}
    assert max(counts.values()) > 1 and not any(unit.mark for unit in [*once.right, *many.right])
    assert len({flow.i for flow in once.flows}) == len({flow.j for flow in once.flows}) == len(once.flows)


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


def test_what_a_document_does_not_say_is_marked_in_the_summary() -> None:
    document = "In 1999 the river flooded 12 houses.\n<b>Volunteers</b> filled sandbags."
    summary = "In 1999 the river flooded 9 houses. Shares rose in Tokyo. In 1999 the river flooded houses."
    explanation = explained("reference_free_summary_quality", summary, document)
    marks = [unit.mark for unit in explanation.pictures[0].panels[0].left if unit.kind == "sentence"]
    assert marks == ["", "unsupported", "repeated"]
    first, second = elements(marked_texts(explanation.pictures[0]), "p", 'class="running"')
    assert re.findall('<mark class="unsupported" title="not in the document"[^>]*>(.*?)<', first) == ["9", "Tokyo"]
    assert re.findall('<mark class="covered"[^>]*>(.*?)</mark>', second) == ["In 1999 the river flooded 12 houses."]
    assert "<b>Volunteers" not in marked_texts(explanation.pictures[0])


def test_the_best_reference_comes_first() -> None:
    explanation = movers.explain("wms", "Snow melts.", ["Shares fell.", "Snow melts."])
    assert [picture.title.split(":")[0] for picture in explanation.pictures] == ["Reference 2 of 2", "Reference 1 of 2"]
    assert explanation.score == 1.0


def check_markup(page: str) -> None:
    assert "<img" not in page and not any("alert" in script for script in elements(page, "script")) and "alert" in page


@pytest.mark.parametrize("name", METRICS)
def test_markup_in_texts_comes_out_as_text(name: str, tmp_path: Path) -> None:
    explanation = explained(name, MARKUP + ".", MARKUP + ".")
    check_markup(explanation.html())
    explanation.save(tmp_path / "a.svg")
    root = ET.parse(tmp_path / "a.svg").getroot()
    assert not [node for node in root.iter() if node.tag.split("}")[-1] in ("script", "img")]
    assert "alert" in "".join(node.text or "" for node in root.iter())


def test_files_are_what_their_names_say_and_a_notebook_gets_a_frame_of_its_own(tmp_path: Path) -> None:
    explanation = explained("wms")
    frame = explanation._repr_html_()
    assert frame.startswith("<iframe") and 'sandbox="allow-scripts"' in frame and "srcdoc=" in frame
    for name in ("a.png", "1.svg", "2.svg", "a.json"):
        explanation.save(tmp_path / name)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "1.svg").read_bytes() == (tmp_path / "2.svg").read_bytes()
    texts = [node.text for node in ET.parse(tmp_path / "1.svg").getroot().iter() if node.tag.endswith("}text")]
    panel = explanation.pictures[0].panels[0]
    assert {unit.text for unit in [*panel.left, *panel.right]} <= set(texts)
    saved = json.loads((tmp_path / "a.json").read_text())
    assert saved["pictures"][0]["panels"][0]["flows"][0]["cost"] == panel.flows[0].cost
    with pytest.raises(InputError, match=r"a\.pdf: cannot write it: expected a name that ends in"):
        explanation.save(tmp_path / "a.pdf")


@pytest.mark.parametrize("name", ["wms", "swms"])
def test_at_most_ten_labels_do_not_overlap_and_lines_cells_and_words_agree_in_colour(name: str) -> None:
    explanation = explained(name)
    panel, figure, page = explanation.pictures[0].panels[0], explanation.figure(), explanation.html()
    FigureCanvasAgg(figure).draw()
    lines, matrix = figure.axes
    boxes = [text.get_window_extent() for text in lines.texts if re.fullmatch(r"\d+\.\d{3}", text.get_text())]
    assert 3 < len(boxes) <= 10 and not any(first.overlaps(second) for first, second in combinations(boxes, 2))
    for flow, line in zip(panel.flows, lines.patches, strict=True):
        assert line.get_edgecolor()[:3] == pytest.approx(tuple(matrix.images[0].get_array()[flow.i, flow.j][:3]))
    tints = {flow[0]: flow[4] for flow in json.loads(elements(page, "script", "json")[0])[::-1]}
    words = re.findall('data-n="([0-9]+)" style="--tint:([0-9]+);', page.split('class="right"')[0])
    assert words and all(tints[int(index)] == int(tint) for index, tint in words)


def test_print_names_what_the_document_does_not_have_and_says_if_nothing_was_matched() -> None:
    document = "Heavy rain fell on Monday. The river flooded the town."
    ends = {"aspects": "not in the document: Leeds", "paper": "or the model scores whole texts."}
    for model, end in ends.items():
        name = f"reference_free_summary_quality[model={model}]"
        printed = repr(movers.explain(name, "The river flooded Leeds.", source=document))
        assert printed.endswith(end) and "\n" not in printed


def test_print_shows_score_and_strongest_matches_in_one_line() -> None:
    explanation = explained("wms", "Snow\nmelts.", "Snow melts.")
    assert str(explanation) == "wms 1.000: snow → snow (0.000), melts → melts (0.000)"


@pytest.mark.parametrize("name", ["wms", "bertscore_emd", "reference_free_summary_quality"])
def test_blank_texts_have_a_picture_that_says_so(name: str, tmp_path: Path) -> None:
    explanation = explained(name, " ")
    assert explanation.flags == ["empty"] and "Nothing was matched" in explanation.html()
    explanation.save(tmp_path / "a.svg")


def test_a_text_of_the_wrong_kind_is_refused() -> None:
    with pytest.raises(InputError, match="wms: explain: pass reference="):
        movers.explain("wms", "a", source="a")
    with pytest.raises(InputError, match="pass source="):
        movers.explain("reference_free_summary_quality", "a", "a")


# --- the report ---

WORDS = "snow ice rain wind storm cloud river lake sea hill stone sand tree leaf root seed bird fish horse wolf".split()
ROWS = [*(Row(f"{word} melts today", ["ice melts today"]) for word in WORDS), Row("", ["a"]), Row("...", ["snow"])]


@pytest.mark.parametrize("options", [{}, {"idf": "corpus"}])
def test_a_report_shows_the_best_and_worst_rows_of_the_whole_file(options: dict[str, object]) -> None:
    scores = movers.wms([row.prediction for row in ROWS], [row.references for row in ROWS], **options)["scores"]
    shown = report("wms", ROWS, **options)
    ranked = sorted(scores, reverse=True)
    assert list(shown.scores) == scores
    assert [scores[row] for row, _ in shown.best] == ranked[:10]
    assert [scores[row] for row, _ in shown.worst] == ranked[::-1][:10]
    for row, explanation in [*shown.best, *shown.worst]:
        assert (explanation.prediction, explanation.score) == (ROWS[row].prediction, scores[row])
    assert shown.flagged == {"empty": [20], "unfiltered": [21], "truncated": [], "unknown": []}
    page = shown.html()
    assert "1 of 22; rows 21</p>" in page and page.count('<details class="row">') == 20
    assert page.count("<br>Reference: ice melts today</summary>") >= 18


def test_few_rows_are_shown_once_and_their_markup_is_text() -> None:
    shown = report("wms", [Row("<script>alert(1)</script> snow", ["<img src=x onerror=alert(1)> snow"])])
    assert (len(shown.best), len(shown.worst)) == (1, 0)
    check_markup(shown.html())
