"""Models, texts and names of others run no code, control no terminal, and nothing asks the network by itself.

Pickled weights are in encoders/test_load.py, markup in pictures and pages in their tests, formulas in test_io.py.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import ROOT, tiny_model, tiny_table, tiny_tokenizer, vector_bytes

import movers
from movers.cli import main
from movers.errors import InputError

CODE = """
import pathlib
from transformers import BertConfig, BertModel
pathlib.Path({ran!r}).touch()
class OwnConfig(BertConfig):
    model_type = "own"
class OwnModel(BertModel):
    config_class = OwnConfig
    def __init__(self, config):
        super().__init__(config, add_pooling_layer=False)
"""


def test_code_of_a_model_runs_only_if_it_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MOVERS_TRUST_REMOTE_CODE", raising=False)
    folder, ran = tmp_path / "model", tmp_path / "ran"
    tiny_model(layers=1).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(CODE.format(ran=str(ran)))
    with pytest.raises(InputError, match=r"brings code of its own.* trust_remote_code=True\) as model"):
        movers.wms(["the cat"], ["a dog"], model=str(folder))
    with pytest.raises(InputError, match="unknown option"):  # nobody who only names a metric can allow it
        movers.wms(["the cat"], ["a dog"], trust_remote_code=True)
    assert not ran.exists()
    first = movers.load_encoder(str(folder), trust_remote_code=True)
    assert ran.exists() and "|emb:model@" in movers.wms(["the cat"], ["a dog"], model=first)["signature"]
    (folder / "own.py").write_text(CODE.format(ran="") + "# other\n")  # other code is another encoder
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    monkeypatch.setenv("MOVERS_TRUST_REMOTE_CODE", "1")
    assert movers.load_encoder(str(folder)).identity != first.identity


def test_the_sources_load_no_pickle_and_run_no_strings() -> None:
    workers = ROOT / "movers" / "engines.py"  # pickles what goes to the Ray actors that it started
    for path in {*(ROOT / "movers").rglob("*.py"), *(ROOT / "metrics").rglob("*.py")} - {workers}:
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                modules = [getattr(node, "module", None), *(alias.name for alias in node.names)]
                loaders = {"pickle", "dill", "shelve", "marshal", "joblib"}.intersection(modules)
                assert not loaders or modules[1:] == ["UnpicklingError"], path
            elif isinstance(node, ast.Call):
                name, keywords = ast.unparse(node.func), {word.arg: ast.unparse(word.value) for word in node.keywords}
                assert name not in ("eval", "exec", "os.system", "yaml.load"), path
                assert keywords.get("shell") != "True", path
                assert name not in ("torch.load",) or keywords["weights_only"] == "True", path
                assert name not in ("np.load", "np.save") or keywords["allow_pickle"] == "False", path
                if name.endswith((".from_pretrained", ".from_config")):
                    unpacked = None in keywords and '"trust_remote_code": ' in source
                    assert unpacked or "trust_remote_code" in keywords, (path, name)


def test_texts_and_names_cannot_control_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "\x1b]0;title\x07\x1b[2Jsnow\x9b31m \u202efell\r"
    vectors, texts = tmp_path / f"{hostile}.txt", tmp_path / "p.txt"
    vectors.write_bytes(vector_bytes(tiny_table(["snow", "fell", "cat"]), "glove"))
    texts.write_text(f"{hostile}\nsnow cat\n", newline="")
    (tmp_path / f"{hostile}.p").write_text("snow\ncat\n")
    both = ["-p", str(texts), "-r", str(texts)]
    printed = ""
    for command in (
        ["explain", "wms", "--prediction", hostile, "--reference", f"{hostile} ice"],
        ["score", "wms", *both, "-m", str(vectors), "-s", "temperature=1"],
        ["score", "wms", *both, "--json", "--alignment"],
        ["score", "wms", "-p", str(tmp_path / hostile), "-r", str(texts)],
        ["compare", str(texts), str(tmp_path / f"{hostile}.p"), "-r", str(texts)],
    ):
        main(command)
        printed += "".join(capsys.readouterr())
    assert "snow" in printed and not set(printed) & set("\x1b\x07\x9b\u202e\r")
    assert "\x1b" not in repr(movers.wms(["snow"], ["cat"], model=str(vectors), temperature=1))


@pytest.mark.slow
def test_nothing_asks_the_network_unless_a_hub_name_is_given(tmp_path: Path) -> None:
    free = dict.fromkeys(("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"), "")
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, **free, "HF_HOME": str(tmp_path), "PYTHONPATH": path}
    command = [sys.executable, str(ROOT / "tests" / "_without_network.py"), str(tmp_path)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "done"
