"""Publish the metrics of a checkout as Spaces on the Hugging Face Hub, for `evaluate.load("<org>/<name>")` to find.

    python tools/publish.py --org ORG --package movers==0.1.0 wms sms

`--package` is how users of the Space install movers: a requirement, or an address that pip installs from. It goes into
the Space's requirements.txt and into the hint that evaluate shows to users without the package.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from movers.errors import InputError
from movers.registry import METRICS, find_metric
from movers.version import VERSION

if TYPE_CHECKING:
    from huggingface_hub import HfApi

__all__ = ["CHECKOUT", "publish", "space_files"]

CHECKOUT = Path(__file__).parents[1]


def space_files(name: str, package: str, checkout: Path = CHECKOUT) -> dict[str, str]:
    """The files of a metric's Space by name, with the package's address filled in; a missing one is an error."""
    find_metric(name)
    folder = checkout / "metrics" / name
    names = ("README.md", "app.py", "requirements.txt", f"{name}.py")
    missing = [str(folder / file) for file in names if not (folder / file).is_file()]
    if missing:
        raise InputError(f"publish: expected a checkout with {', '.join(missing)}")
    files = {file: (folder / file).read_text(encoding="utf-8") for file in names}
    files["requirements.txt"] = f"{_requirement(package)}\n"
    # evaluate's loader reads the comment and tells a user without the package: pip install <package>.
    imports = re.compile(r"^((?:import|from) movers\b[^#\n]*?) *$", re.MULTILINE)
    files[f"{name}.py"] = imports.sub(lambda line: f"{line[1]}  # From: {package}", files[f"{name}.py"])
    return files


def _requirement(package: str) -> str:
    """The line of requirements.txt that installs the package with what its pages need.

    >>> _requirement("movers==0.1.0"), _requirement("git+https://example.org/movers@v1")
    ('movers[demo]==0.1.0', 'movers[demo] @ git+https://example.org/movers@v1')
    """
    if re.match(r"[a-z+]+://\S+$", package):
        return f"movers[demo] @ {package}"
    if re.match(r"movers(?:[=<>~!]=?\S+)?$", package):
        return f"movers[demo]{package.removeprefix('movers')}"
    raise InputError(
        f"publish: package: expected movers==VERSION or an address such as git+https://…, but got {package!r}"
    )


def publish(
    name: str,
    org: str,
    package: str,
    *,
    private: bool = False,
    checkout: Path = CHECKOUT,
    api: HfApi | None = None,
) -> str:
    """Create the Space `<org>/<name>`, or update it, and upload the metric's files.

    Parameters
    ----------
    name : str
        Which metric.
    org : str
        User or organisation that owns the Space.
    package : str
        How pip installs movers: `movers==0.1.0`, or an address.
    private : bool
        Whether a new Space is private.
    checkout : path
        Folder that contains `metrics/<name>`.
    api : HfApi, optional
        Client of the Hub; by default one with the token of `hf auth login` or `HF_TOKEN`.

    Returns
    -------
    str
        Id of the Space, for `evaluate.load`.
    """
    from huggingface_hub import HfApi

    files = space_files(name, package, checkout)
    api = HfApi() if api is None else api
    space = f"{org}/{name}"
    api.create_repo(space, repo_type="space", space_sdk="gradio", private=private, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for file, text in files.items():
            (Path(folder) / file).write_text(text, encoding="utf-8")
        api.upload_folder(
            repo_id=space, repo_type="space", folder_path=folder, commit_message=f"{name} of movers {VERSION}"
        )
    return space


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Publish metrics as Spaces on the Hugging Face Hub.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(METRICS)}; default: all")
    parser.add_argument("--org", required=True, help="user or organisation that owns the Spaces")
    parser.add_argument("--package", required=True, help="how pip installs movers: movers==0.1.0, or an address")
    parser.add_argument("--private", action="store_true", help="make new Spaces private")
    given = parser.parse_args(arguments)
    names = given.names or list(METRICS)
    try:
        for name in names:  # before the first upload, so that a typo publishes nothing
            space_files(name, given.package)
    except InputError as error:
        sys.exit(str(error))
    for name in names:
        print(f"published {publish(name, given.org, given.package, private=given.private)}")


if __name__ == "__main__":
    main()
