"""Publish the metrics of a checkout as Spaces on the Hugging Face Hub, for `evaluate.load("<org>/<name>")` to find.

From a checkout: `python -m movers.publish --org movers-metrics wms sms`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from movers.registry import METRICS, find_metric
from movers.version import VERSION

if TYPE_CHECKING:
    from huggingface_hub import HfApi

__all__ = ["CHECKOUT", "publish", "space_files"]

CHECKOUT = Path(__file__).parents[1]


def space_files(name: str, checkout: Path = CHECKOUT) -> list[Path]:
    """The files of a metric's Space; one that is missing is an error."""
    find_metric(name)
    folder = checkout / "metrics" / name
    files = [folder / file for file in ("README.md", "app.py", "requirements.txt", f"{name}.py")]
    missing = [str(file) for file in files if not file.is_file()]
    if missing:
        raise FileNotFoundError(f"publish: expected a checkout with {', '.join(missing)}; installed packages lack them")
    return files


def publish(name: str, org: str, *, private: bool = False, checkout: Path = CHECKOUT, api: HfApi | None = None) -> str:
    """Create the Space `<org>/<name>`, or update it, and upload the metric's files.

    Parameters
    ----------
    name : str
        Which metric.
    org : str
        User or organisation that owns the Space.
    private : bool
        Whether a new Space is hidden from others.
    checkout : path
        Where `metrics/<name>` lies.
    api : HfApi, optional
        Who talks to the Hub; by default one that uses the token of `hf auth login` or `HF_TOKEN`.

    Returns
    -------
    str
        Id of the Space, which `evaluate.load` takes.
    """
    from huggingface_hub import HfApi

    files = space_files(name, checkout)
    api = HfApi() if api is None else api
    space = f"{org}/{name}"
    api.create_repo(space, repo_type="space", space_sdk="gradio", private=private, exist_ok=True)
    api.upload_folder(
        repo_id=space,
        repo_type="space",
        folder_path=files[0].parent,
        allow_patterns=[file.name for file in files],
        commit_message=f"{name} of movers {VERSION}",
    )
    return space


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m movers.publish", description="Publish metrics as Spaces.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(METRICS)}; all if none is given")
    parser.add_argument("--org", required=True, help="user or organisation that owns the Spaces")
    parser.add_argument("--private", action="store_true", help="hide new Spaces from others")
    given = parser.parse_args(arguments)
    names = given.names or list(METRICS)
    for name in names:  # before the first upload, so that a typing error publishes nothing
        space_files(name)
    for name in names:
        print(f"published {publish(name, given.org, private=given.private)}")


if __name__ == "__main__":
    main()
