"""The tables of the papers: which metric corresponds to which row, and the published numbers."""

from __future__ import annotations

from movers.agreement.scoring import MetricCall

from layout import GLOVE, MINILM, MPNET, Row, Table, call, paper  # isort: skip


def _idf(label: str, output: str = "scores", /, **options: object) -> MetricCall:
    """MoverScore with corpus IDF, as in all tables of Zhao et al."""
    return call(label, "moverscore", output, idf="per-side", **options)


BLEU, CHRF, ROUGE = call("sentence BLEU", "bleu"), call("chrF", "chrf"), call("ROUGE-L", "rouge")
GREEDY = call("BERTScore, greedy", "bertscore_emd", alignment="greedy")
HUNGARIAN, EMD = call("BERTScore, one-to-one", "bertscore_hungarian"), call("BERTScore, transport", "bertscore_emd")
MOVERSCORE = call("MoverScore", "moverscore")
WMS, SMS, SWMS = call("WMS", "wms"), call("SMS", "sms"), call("S+WMS", "swms")
_SENTENCE_STATIC = _idf("MoverScore, sentence, static, IDF", model="wordllama", n_gram="sentence")
_SENTENCE = _idf("MoverScore, sentence, IDF", n_gram="sentence")
_STATIC, _UNIGRAM = _idf("MoverScore, static, IDF", model="wordllama"), _idf("MoverScore, IDF")
_ROUTING = _idf("MoverScore, routing, IDF", aggregation="routing")


def _printed(label: str, name: str, output: str = "scores", /, **options: object) -> MetricCall:
    return call(label, name, output, preset="paper", **options)


# On every set beside the defaults: the definitions as printed, and what of Zhao et al.'s makes the difference.
AS_PRINTED = (
    _printed("MoverScore, as printed", "moverscore"),
    _printed("MoverScore, as printed, distance", "moverscore", "distances"),
    _printed("MoverScore, as printed, max(0, 1 − distance)", "moverscore", similarity="one_minus"),
    _printed("MoverScore, as printed, unit vectors", "moverscore", normalize=True),
    _printed("BERTScore, greedy, layer 0", "bertscore_emd", alignment="greedy"),
    _printed("BERTScore, one-to-one, layer 0", "bertscore_hungarian"),
    _printed("BERTScore, transport, layer 0", "bertscore_emd"),
)
WITH_IDF = (_UNIGRAM, *AS_PRINTED)

# --- Clark et al. 2019, Table 2 --------------------------------------------------------------------------------------

_CLARK = Table(
    name="clark-table-2",
    title="Clark et al. 2019, Table 2: 2,085 machine summaries of news (Chaganty et al. 2018)",
    data="chaganty18_cnndm",
    humans=("overall",),
    where=("is_reference!=true",),
    coefficient="spearman",
    baseline="ROUGE-L",
    rows=(
        Row(ROUGE, "ROUGE-L", {"overall": 0.117}),
        Row(_printed("WMS, GloVe, as printed", "wms", model=GLOVE), "WMS, GloVe", {"overall": 0.180}),
        Row(_printed("SMS, GloVe, as printed", "sms", model=GLOVE), "SMS, GloVe", {"overall": 0.258}),
        Row(_printed("S+WMS, GloVe, as printed", "swms", model=GLOVE), "S+WMS, GloVe", {"overall": 0.214}),
        Row(call("WMS, static", "wms"), "WMS, GloVe", {"overall": 0.180}),
        Row(call("SMS, static", "sms"), "SMS, GloVe", {"overall": 0.258}),
        Row(call("S+WMS, static", "swms"), "S+WMS, GloVe", {"overall": 0.214}),
        Row(call("WMS, contextual", "wms", model=MINILM), "WMS, ELMo", {"overall": 0.160}, "WMS, static"),
        Row(call("SMS, contextual", "sms", model=MINILM), "SMS, ELMo", {"overall": 0.253}, "SMS, static", 0.35),
        Row(call("S+WMS, contextual", "swms", model=MINILM), "S+WMS, ELMo", {"overall": 0.204}, "S+WMS, static", 0.16),
        *map(Row, (MOVERSCORE, GREEDY, HUNGARIAN, EMD, *WITH_IDF)),
    ),
    note="Spearman over all texts. GloVe, as printed: the paper's definitions and its vectors (300 dimensions, Common "
    "Crawl; cut to 33,860 words, `make data`). Static: our defaults and vectors (wordllama). Contextual: "
    "all-MiniLM-L6-v2 (the paper: ELMo). The last columns are Williams' test: one-sided against ROUGE-L, two-sided "
    "between the vectors (footnote 12).",
)

# --- Zhao et al. 2019, Tables 1, 5, 6: WMT17 -------------------------------------------------------------------------

PAIRS = ("cs-en", "de-en", "fi-en", "lv-en", "ru-en", "tr-en", "zh-en")
_WMT = " ".join([*PAIRS, "mean"])

_CHRF = call("chrF++", "chrf", word_order=2)
_MPNET = call("MoverScore, mpnet", "moverscore", model=MPNET)
_MPNET_LAYERS: dict[str, object] = {"model": MPNET, "aggregation": "7+12"}
_ALL_TOKENS: dict[str, object] = {"punctuation": False, "drop_subwords": False}

_ZHAO_1 = Table(
    name="zhao-table-1",
    title="Zhao et al. 2019, Table 1: WMT17, segments translated into English",
    data="wmt17_seg_da_to_en",
    humans=("da_z",),
    group="lp",
    groups=PAIRS,
    rows=(
        Row(BLEU, "sentBLEU (Table 7)", paper(_WMT, ".435 .432 .571 .393 .484 .538 .512 .481")),
        Row(_CHRF, "chrF++ (Table 7)", paper(_WMT, ".523 .534 .678 .520 .588 .614 .593 .579")),
        Row(GREEDY, "BERTScore-F1", paper(_WMT, ".670 .686 .820 .710 .729 .714 .704 .719")),
        Row(_SENTENCE_STATIC, "SMD + W2V", paper(_WMT, ".438 .505 .540 .442 .514 .456 .494 .484")),
        Row(_SENTENCE, "SMD + BERT + PMeans", paper(_WMT, ".607 .623 .770 .639 .667 .641 .619 .652")),
        Row(_STATIC, "WMD-1 + W2V", paper(_WMT, ".392 .463 .558 .463 .456 .485 .481 .471")),
        Row(_UNIGRAM, "WMD-1 + BERT + PMeans", paper(_WMT, ".662 .687 .823 .714 .735 .734 .719 .725")),
        Row(MOVERSCORE),
        Row(_idf("MoverScore, bigrams, IDF", n_gram=2)),
        Row(call("MoverScore, layers 4 and 6, all tokens", "moverscore", aggregation="4+6", **_ALL_TOKENS)),
        Row(_MPNET),
        Row(call("MoverScore, mpnet, layers 7 and 12, all tokens", "moverscore", **_MPNET_LAYERS, **_ALL_TOKENS)),
        Row(HUNGARIAN),
        Row(EMD),
        Row(call("BERTScore, transport, mpnet", "bertscore_emd", model=MPNET)),
        *map(Row, (WMS, SMS, SWMS, ROUGE, CHRF, *AS_PRINTED)),
    ),
    note="Pearson within each language pair, and its mean. The paper's encoder is BERT-base (12 layers); ours is "
    "all-MiniLM-L6-v2 (6 layers, 384 dimensions) unless a row names another. The paper weights n-grams by IDF, so our "
    "rows with IDF correspond to it.",
)

_FOUR = "cs-en de-en fi-en lv-en"
# The paper compares alignments on the 9th layer of BERT; a model without one has its last layer instead.
_LAYER_9 = {MINILM: "last", MPNET: 9}


def _hard(output: str, model: str) -> MetricCall:
    name = {"f1": "F1", "recall": "recall", "precision": "precision"}[output]
    return _idf(f"hard, {name}, {model}", output, alignment="hard", aggregation=_LAYER_9[model], model=model)


def _soft(n_gram: int, model: str) -> MetricCall:
    name = {1: "unigrams", 2: "bigrams"}[n_gram]
    return _idf(f"soft, {name}, {model}", n_gram=n_gram, aggregation=_LAYER_9[model], model=model)


_ZHAO_5 = Table(
    name="zhao-table-5",
    title="Zhao et al. 2019, Table 5: hard and soft alignments",
    data="wmt17_seg_da_to_en",
    humans=("da_z",),
    group="lp",
    groups=tuple(_FOUR.split()),
    mean=False,
    rows=tuple(
        Row(metric, stands_for, paper(_FOUR, numbers))
        for model in (MINILM, MPNET)
        for metric, stands_for, numbers in (
            (_hard("f1", model), "HMD-F1 + BERT", ".655 .681 .821 .712"),
            (_hard("recall", model), "HMD-Recall + BERT", ".651 .658 .788 .681"),
            (_hard("precision", model), "HMD-Prec + BERT", ".624 .669 .817 .707"),
            (_soft(1, model), "WMD-unigram + BERT", ".651 .686 .823 .710"),
            (_soft(2, model), "WMD-bigram + BERT", ".665 .688 .821 .712"),
        )
    ),
    note="Pearson, with IDF. The same vectors with greedy (hard) and optimal (soft) alignment: layer 9 of "
    "all-mpnet-base-v2, as in the paper, and the last layer (6) of all-MiniLM-L6-v2.",
)


def _layer(model: str, aggregation: object) -> MetricCall:
    return _idf(f"{aggregation}, {model}", aggregation=aggregation, model=model)


_LAYERS = (
    ("layer 8", ".6361 .6755 .8134 .7033 .7273 .7233 .7175"),
    ("layer 9", ".6510 .6865 .8240 .7107 .7291 .7357 .7195"),
    ("layer 10", ".6605 .6948 .8231 .7158 .7363 .7317 .7168"),
    ("layer 11", ".6695 .6845 .8192 .7048 .7315 .7276 .7058"),
    ("layer 12", ".6677 .6825 .8194 .7188 .7326 .7291 .7064"),
    ("routing", ".6618 .6897 .8225 .7122 .7334 .7301 .7182"),
    ("PMeans", ".6623 .6873 .8234 .7139 .7350 .7339 .7192"),
)

_ZHAO_6 = Table(
    name="zhao-table-6",
    title="Zhao et al. 2019, Table 6: layers",
    data="wmt17_seg_da_to_en",
    humans=("da_z",),
    group="lp",
    groups=PAIRS,
    rows=tuple(
        Row(_layer(model, aggregation), f"WMD-1 + BERT + {stands_for}", paper(" ".join(PAIRS), numbers))
        for model, aggregations in (
            (MINILM, (2, 3, 4, 5, 6, "routing", "pmeans")),
            (MPNET, (8, 9, 10, 11, 12, "routing", "pmeans")),
        )
        for aggregation, (stands_for, numbers) in zip(aggregations, _LAYERS, strict=True)
    ),
    note="Pearson, with IDF. The last five layers of each model correspond to the last five of the paper's BERT, which "
    "has 12 layers; all-mpnet-base-v2 also has 12, all-MiniLM-L6-v2 has 6.",
)

# --- Zhao et al. 2019, Table 3: BAGEL and SFHOTEL -------------------------------------------------------------------


def _dialogue(name: str, title: str, data: str, columns: str, numbers: tuple[str, ...], note: str) -> Table:
    stand_for = (
        (BLEU, "BLEU-4 (Table 9)"),
        (ROUGE, "ROUGE-L (Table 9)"),
        (GREEDY, "BERTScore-F1"),
        (_SENTENCE_STATIC, "SMD + W2V"),
        (_SENTENCE, "SMD + BERT + PMeans"),
        (_STATIC, "WMD-1 + W2V"),
        (_UNIGRAM, "WMD-1 + BERT + PMeans"),
        (_ROUTING, "WMD-1 + BERT + routing (Table 9)"),
    )
    bigrams = call("MoverScore, bigrams", "moverscore", n_gram=2)
    others = (MOVERSCORE, bigrams, _MPNET, HUNGARIAN, EMD, WMS, SMS, SWMS, CHRF, *AS_PRINTED)
    rows = (Row(*one, paper(columns, three)) for one, three in zip(stand_for, numbers, strict=True))
    return Table(
        name=name,
        title=f"Zhao et al. 2019, Table 3: {title}",
        data=data,
        humans=tuple(columns.split()),
        coefficient="spearman",
        rows=(*rows, *map(Row, others)),
        note=note,
    )


_BAGEL = _dialogue(
    "zhao-table-3",
    "BAGEL, utterances of dialogue systems",
    "bagel",
    "informativeness naturalness quality",
    (
        *(".175 .141 .101", ".202 .134 .111", ".267 .210 .178", ".024 .074 .078"),
        *(".290 .163 .121", ".222 .079 .123", ".298 .212 .163", ".294 .209 .156"),
    ),
    "Spearman over all 404 utterances. BLEU is of up to four words.",
)
_SFHOTEL = _dialogue(
    "zhao-table-3-sfhotel",
    "SFHOTEL, utterances of dialogue systems",
    "sfhot",
    "informativeness naturalness overall",
    (
        *(".084 .104 .056", ".092 .147 .062", ".163 .193 .118", ".022 .025 .011"),
        *(".192 .223 .134", ".074 .095 .021", ".203 .261 .182", ".208 .256 .178"),
    ),
    "Spearman over 875 utterances in a copy of UniEval's data, with one reference each; the paper has several. Its "
    "third judgement is that of quality.",
)

PAPER_TABLES = (_CLARK, _ZHAO_1, _BAGEL, _SFHOTEL, _ZHAO_5, _ZHAO_6)
