"""The papers behind the metrics, and a short introduction to each metric."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PAPERS", "Paper"]


class Paper(NamedTuple):
    """A paper.

    Attributes
    ----------
    authors, title, doi, address : str
    about : str
        Introduction to the metric, three sentences.
    """

    authors: str
    title: str
    doi: str
    address: str
    about: str

    @property
    def cited(self) -> str:
        return f"{self.authors}. {self.title}. doi:{self.doi}"


_CLARK = (
    "Clark, Celikyilmaz and Smith 2019",
    "Sentence Mover's Similarity: Automatic Evaluation for Multi-Sentence Texts",
    "10.18653/v1/P19-1264",
    "https://aclanthology.org/P19-1264",
)
_ZHAO = (
    "Zhao et al. 2019",
    "MoverScore: Text Generation Evaluating with Contextualized Embeddings and Earth Mover Distance",
    "10.18653/v1/D19-1053",
    "https://aclanthology.org/D19-1053",
)
_JIN = (
    "Jin and Gildea 2022",
    "Rewarding Semantic Similarity under Optimized Alignments for AMR-to-Text Generation",
    "10.18653/v1/2022.acl-short.80",
    "https://aclanthology.org/2022.acl-short.80",
)
_BAO = (
    "Bao et al. 2020",
    "End-to-end Semantics-based Summary Quality Assessment for Single-document Summarization",
    "10.48550/arXiv.2005.06377",
    "https://arxiv.org/abs/2005.06377",
)

PAPERS: dict[str, Paper] = {
    "wms": Paper(
        *_CLARK,
        about="Word Mover's Similarity is exp(−distance / temperature), where the distance is the minimum cost of "
        "moving the words of one text to those of another in an embedding space. Synonyms are close, so they cost "
        "little. Word order is ignored, and so is who did what to whom.",
    ),
    "sms": Paper(
        *_CLARK,
        about="Sentence Mover's Similarity moves whole sentences: the vector of a sentence is the mean of its word "
        "vectors, its weight is its length. It suits texts of several sentences, in any order. A sentence on two "
        "topics has a vector between them, and details are lost in the mean.",
    ),
    "swms": Paper(
        *_CLARK,
        about="Sentence and Word Mover's Similarity moves words and sentences jointly, each with half of the mass. "
        "Words may be matched with sentences and sentences with words, which absorbs units without a counterpart of "
        "their own kind. On long texts it correlates better with human judgements than words or sentences alone.",
    ),
    "moverscore": Paper(
        *_ZHAO,
        about="MoverScore moves n-grams with contextual embeddings, so a word in another sense has another vector. All "
        "n-grams of both texts take part in the transport, so repetition and omission lower the score. On very short "
        "texts the special tokens [CLS] and [SEP] carry much of the mass and raise the score.",
    ),
    "bertscore_hungarian": Paper(
        *_JIN,
        about="BERTScore matches every token with its most similar one, even if that is matched already. Here each "
        "token is matched at most once, by the optimal assignment. Repetition is therefore not rewarded, and if one "
        "text is much longer than the other, tokens remain unmatched.",
    ),
    "bertscore_emd": Paper(
        *_JIN,
        about="BERTScore matches every token with its most similar one, even if that is matched already. Here token "
        "mass, by default the norm of the token's vector, is moved to one or several tokens at minimum cost. "
        "Repetition is therefore not rewarded, and one token can still match two.",
    ),
    "reference_free_summary_quality": Paper(
        *_BAO,
        about="This metric scores a summary against its source document, without a reference. It rates faithfulness "
        "(is it supported by the document), coverage (does it say what matters) and fluency. A wrong number or name "
        "among right words can go unnoticed.",
    ),
}
