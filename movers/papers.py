"""The papers that the metrics come from, and each metric in three sentences for people who meet it first."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PAPERS", "Paper"]


class Paper(NamedTuple):
    """A paper.

    Attributes
    ----------
    authors, title, doi, address : str
    about : str
        What the metric is: three sentences.
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
        about="Word Mover's Similarity is the minimum cost of moving the words of one text to those of another in an "
        "embedding space, as exp(−distance). Synonyms are close, so they cost little. Word order does not count, nor "
        "does who did what to whom.",
    ),
    "sms": Paper(
        *_CLARK,
        about="Sentence Mover's Similarity moves whole sentences, each the mean of its word vectors and as heavy as it "
        "is long. It suits texts of several sentences, in any order. A sentence that mixes two topics has a vector "
        "between them, and words that the mean hides are not seen.",
    ),
    "swms": Paper(
        *_CLARK,
        about="Sentence and Word Mover's Similarity moves words and sentences in one bag, half of the mass each. Mass "
        "may move from a word to a sentence, which absorbs what has no counterpart of its own kind. On long texts it "
        "agrees with people better than words or sentences alone.",
    ),
    "moverscore": Paper(
        *_ZHAO,
        about="MoverScore moves n-grams whose vectors a contextual model made, so the same word in another sense is "
        "elsewhere. Every n-gram is moved and none is matched for free, so repetition and omission cost something. "
        "On very short texts the start and end marks carry much of the mass and raise the score.",
    ),
    "bertscore_hungarian": Paper(
        *_JIN,
        about="BERTScore lets every token take its best partner, even one that is taken already. Here each token is "
        "matched at most once, by the assignment that is best as a whole. Repetition then gains nothing, and a text "
        "much longer or shorter than its reference leaves tokens without a partner.",
    ),
    "bertscore_emd": Paper(
        *_JIN,
        about="BERTScore lets every token take its best partner, even one that is taken already. Here token mass, by "
        "default the length of the token's vector, is moved to one or several tokens at the lowest cost. Repetition "
        "then gains nothing, and one token may still stand for two.",
    ),
    "reference_free_summary_quality": Paper(
        *_BAO,
        about="This metric judges a summary by the document it summarises, without any reference. A model that was "
        "trained on damaged summaries measures which sentences the document supports and how much of it is covered. "
        "A wrong number or name among right words can still pass.",
    ),
}
