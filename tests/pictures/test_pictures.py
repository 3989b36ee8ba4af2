"""What pictures show: the structure of HTML and SVG, compared with the alignments that metrics return."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from page import Page

import movers
from movers.errors import InputError
from movers.pictures.explain import repeated_share
from movers.pictures.html import histogram
from movers.registry import METRICS

PREDICTION = "Neighbours dug out the bakery. Bread was on sale by noon. Bread was on sale by noon."
REFERENCE = "After the blizzard, villagers cleared the baker's shop. By midday it sold loaves again."
MARKUP = "<script>alert(1)</script> <img src=x onerror=alert(1)> & \"quoted\" 'twice' $x_1$ </textarea> sale"
NAMES = list(METRICS)


def explained(name: str, prediction: str = PREDICTION, other: str = REFERENCE) -> movers.pictures.Explanation:
    key = "source" if METRICS[name].compared_with == "sources" else "reference"
    return movers.explain(name, prediction, **{key: other})


@pytest.mark.parametrize("name", NAMES)
def test_the_score_is_the_metrics_own(name: str) -> None:
    explanation = explained(name)
    result = METRICS[name].function([PREDICTION], [REFERENCE])
    assert explanation.score == pytest.approx(result["score"], abs=1e-6)
    assert explanation.signature == result["signature"]


@pytest.mark.parametrize("name", ["wms", "sms", "swms", "moverscore"])
def test_the_page_holds_every_unit_and_every_flow_of_the_alignment(name: str) -> None:
    result = METRICS[name].function([PREDICTION], [REFERENCE], return_alignment=True)
    alignment = result["alignments"][0][0]
    page = Page(explained(name).html())
    shown = sorted(text for _, text in page.all("span", class_="text"))
    assert shown == sorted(unit["text"] for side in ("prediction", "reference") for unit in alignment[side])
    ((_, data),) = page.all("script", type="application/json")
    total = sum(flow["mass"] for flow in alignment["flows"])
    expected = {(flow["i"], flow["j"]): (flow["mass"] / total, flow["cost"]) for flow in alignment["flows"]}
    drawn = {(i, j): (share, cost) for i, j, share, cost in json.loads(data)}
    assert drawn.keys() == expected.keys()
    for key, values in drawn.items():
        assert values == pytest.approx(expected[key], abs=1e-5)
    shares = [share for _, _, share, _ in json.loads(data)]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("name", NAMES)
def test_the_page_needs_nothing_from_outside_and_names_the_paper(name: str) -> None:
    page = explained(name).html()
    assert "://" not in page.replace("http://www.w3.org/2000/svg", "")
    for tag, attributes, _ in Page(page).elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert not {"src", "href", "action"} & attributes.keys()
        assert not [key for key in attributes if key.startswith("on")]
    assert "doi:10." in page


def test_the_matrix_has_a_cell_per_flow_and_rules_between_words_and_sentences() -> None:
    explanation = explained("swms")
    page = Page(explanation.html())
    panel = explanation.pictures[0].panels[0]
    assert len(page.all("rect", class_="cell")) == len(panel.flows)
    assert len(page.all("line", class_="block")) == 2


def test_what_greedy_matched_more_than_once_is_marked_and_nothing_else() -> None:
    greedy, once, many = explained("bertscore_emd").pictures[0].panels
    counts = Counter(flow.j for flow in greedy.flows)
    assert {place for place, unit in enumerate(greedy.right) if unit.mark} == {j for j, n in counts.items() if n > 1}
    assert any(unit.mark for unit in greedy.right)
    for panel in (once, many):
        assert not any(unit.mark for unit in [*panel.left, *panel.right])
    assert max(Counter(flow.i for flow in once.flows).values()) == 1
    assert max(Counter(flow.j for flow in once.flows).values()) == 1


def test_bertscores_panels_have_the_scores_of_their_alignments() -> None:
    titles = [panel.title for panel in explained("bertscore_hungarian").pictures[0].panels]
    runs = [
        movers.bertscore_hungarian([PREDICTION], [REFERENCE], alignment="greedy"),
        movers.bertscore_hungarian([PREDICTION], [REFERENCE]),
        movers.bertscore_emd([PREDICTION], [REFERENCE]),
    ]
    assert [float(title.split()[-1]) for title in titles] == pytest.approx([run["score"] for run in runs], abs=1e-4)


def test_parts_of_a_summary_are_supported_unsupported_or_repeated() -> None:
    document = "The river flooded the town on Monday. Volunteers filled sandbags. The mayor thanked them."
    summary = "The river flooded the town. Shares rose in Tokyo. The river flooded the town again."
    panel = explained("reference_free_summary_quality", summary, document).pictures[0].panels[0]
    assert [unit.mark for unit in panel.left] == ["supported", "unsupported", "repeated"]
    assert [unit.text for unit in panel.right] == re.split(r"(?<=\.) ", document)
    bars = explained("reference_free_summary_quality", summary, document).pictures[0].bars
    assert bars and all(0 <= bar.value <= 1 for bar in bars)


def test_word_pairs_that_stood_before_are_repeated() -> None:
    assert repeated_share(["a b c", "a b c", "c d", ""]) == [0.0, 1.0, 0.0, 0.0]


def test_the_best_reference_comes_first() -> None:
    explanation = movers.explain("wms", "Snow melts.", ["Shares fell.", "Snow melts."])
    assert [picture.title.split(":")[0] for picture in explanation.pictures] == ["Reference 2 of 2", "Reference 1 of 2"]
    assert explanation.score == 1.0


@pytest.mark.parametrize("name", NAMES)
def test_markup_in_texts_comes_out_as_text(name: str, tmp_path: Path) -> None:
    explanation = explained(name, MARKUP + ".", MARKUP + ".")
    for markup in (explanation.html(), explanation._repr_html_()):
        page = Page(markup)
        for script in ("script", "img"):
            assert not any("onerror" in attributes or "alert" in text for attributes, text in page.all(script))
    explanation.save(tmp_path / "a.svg")
    root = ET.parse(tmp_path / "a.svg").getroot()
    assert not [node for node in root.iter() if node.tag.split("}")[-1] in ("script", "img", "image")]
    texts = "".join(node.text or "" for node in root.iter())
    assert "alert" in texts


def test_a_notebook_gets_a_frame_that_may_not_reach_the_notebook() -> None:
    ((attributes, _),) = Page(explained("wms")._repr_html_()).all("iframe")
    assert attributes["sandbox"] == "allow-scripts"
    assert Page(attributes["srcdoc"]).all("span", class_="text")


def test_images_are_what_their_names_say(tmp_path: Path) -> None:
    explanation = explained("bertscore_emd")
    explanation.save(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    for number in (1, 2):
        explanation.save(tmp_path / f"{number}.svg")
    assert (tmp_path / "1.svg").read_bytes() == (tmp_path / "2.svg").read_bytes()
    with pytest.raises(InputError, match=r"a\.pdf: cannot write it: expected a name that ends in"):
        explanation.save(tmp_path / "a.pdf")


def test_the_svg_names_every_word_and_labels_lines_with_their_distance(tmp_path: Path) -> None:
    explanation = explained("wms")
    explanation.save(tmp_path / "a.svg")
    texts = [node.text for node in ET.parse(tmp_path / "a.svg").getroot().iter() if node.tag.endswith("}text")]
    panel = explanation.pictures[0].panels[0]
    for unit in [*panel.left, *panel.right]:
        assert unit.text in texts
    labels = {text for text in texts if text and re.fullmatch(r"[\d.]+", text)}
    costs = {f"{flow.cost:.3g}" for flow in panel.flows}
    assert labels <= costs and len(labels) >= len(costs) / 2  # one that would cover another is left out


def test_blank_texts_have_a_picture_that_says_so(tmp_path: Path) -> None:
    for name in ("wms", "bertscore_emd", "reference_free_summary_quality"):
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


def test_a_histogram_counts_every_score() -> None:
    scores = np.random.default_rng(3).beta(2, 5, size=500).tolist()
    titles = [text for _, text in Page(histogram(scores)).all("title")]
    assert sum(int(title.split()[0]) for title in titles) == 500
    assert Page(histogram([0.5])).all("rect")
