"""Publishing: the files of a Space, with the Hub's client replaced, and what evaluate and gradio make of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import Mock

import pytest
from publish import CHECKOUT, main, publish, space_files

from movers.registry import METRICS
from movers.version import VERSION

PACKAGE = "git+https://example.org/movers@v1"


def read_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_publishing_creates_a_gradio_space_with_the_metric_s_files_and_no_others(tmp_path: Path) -> None:
    folder = tmp_path / "metrics" / "wms"
    shutil.copytree(CHECKOUT / "metrics" / "wms", folder)
    (folder / "notes.txt").write_text("private")
    files: dict[str, bytes] = {}
    hub = Mock()
    hub.upload_folder = lambda folder_path, **_: files.update(read_files(Path(folder_path)))
    assert publish("wms", "somebody", PACKAGE, checkout=tmp_path, api=hub) == "somebody/wms"
    assert hub.create_repo.call_args.args == ("somebody/wms",)
    assert hub.create_repo.call_args.kwargs["space_sdk"] == "gradio"
    assert sorted(files) == ["README.md", "app.py", "picture.png", "requirements.txt", "wms.py"]
    assert files["README.md"] == (folder / "README.md").read_bytes()


@pytest.mark.parametrize("name", METRICS)
def test_a_space_installs_the_package_and_tells_users_how_to(name: str, tmp_path: Path) -> None:
    from evaluate.loading import get_imports

    files = space_files(name, PACKAGE)
    first, *pins = files["requirements.txt"].decode().splitlines()
    assert first == f"movers[demo] @ {PACKAGE}"
    assert {"torch", "transformers", "evaluate"} <= {pin.split("==")[0] for pin in pins}
    (tmp_path / "module.py").write_bytes(files[f"{name}.py"])
    hints = {place for _, module, place, _ in get_imports(str(tmp_path / "module.py")) if module == "movers"}
    assert hints == {PACKAGE}


@pytest.fixture(scope="module")
def spaces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of all Spaces, as a dry run writes them."""
    folder = tmp_path_factory.mktemp("spaces")
    main(["--org", "somebody", "--dry-run", str(folder)])
    return folder


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """That of somebody who has the package and nothing else: empty caches, not in the checkout."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "MOVERS_"))}
    caches = {"HF_HOME": str(folder / "huggingface"), "MOVERS_CACHE": str(folder / "cache")}
    return {**inherited, **caches, "PYTHONPATH": str(CHECKOUT), "NO_PROXY": "127.0.0.1", **variables}


def test_evaluate_loads_a_space(spaces: Path, tmp_path: Path) -> None:
    class Handler(SimpleHTTPRequestHandler):
        """Serves /spaces/<org>/<name>/resolve/main/<file>, as the Hub does."""

        def translate_path(self, path: str) -> str:
            return str(spaces / path.removeprefix("/spaces/").replace("resolve/main/", ""))

        def end_headers(self) -> None:
            self.send_header("ETag", '"1"')
            super().end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    code = 'print(__import__("evaluate").load("somebody/wms").compute(predictions=["Snow."], references=["Snow."]))'
    variables = environment(tmp_path, HF_ENDPOINT=f"http://127.0.0.1:{server.server_port}")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=variables, capture_output=True, text=True)
    server.shutdown()
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 (n=1) wms|") and f"v:{VERSION}" in done.stdout
