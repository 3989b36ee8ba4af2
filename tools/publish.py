"""Publish the metrics of a checkout as Spaces on the Hugging Face Hub, for `evaluate.load("<org>/<name>")` to find.

    python tools/publish.py --org ORG [--package movers==0.1.0] [--dry-run FOLDER] [wms sms …]

`--package` is how users of the Space install movers: a requirement, or an address that pip installs from. It goes into
the Space's requirements.txt and into the hint that evaluate shows to users without the package. `--dry-run` writes the
folders of the Spaces and uploads nothing.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from movers.errors import InputError
from movers.registry import METRICS, find_metric
from movers.version import VERSION

if TYPE_CHECKING:
    from huggingface_hub import HfApi

__all__ = ["CHECKOUT", "publish", "space_files", "write_space"]

CHECKOUT = Path(__file__).parents[1]


def space_files(name: str, package: str, checkout: Path = CHECKOUT) -> dict[str, bytes]:
    """The files of a metric's Space by name, with the package's address filled in; a missing one is an error."""
    find_metric(name)
    folder = checkout / "metrics" / name
    names = ("README.md", "app.py", "picture.png", "requirements.txt", f"{name}.py")
    missing = [str(folder / file) for file in names if not (folder / file).is_file()]
    if missing:
        raise InputError(f"publish: expected a checkout with {', '.join(missing)}")
    files = {file: (folder / file).read_bytes() for file in names}
    files["requirements.txt"] = "".join(f"{line}\n" for line in [_requirement(package), *_pins()]).encode()
    # evaluate's loader reads the comment and tells a user without the package: pip install <package>.
    imports = re.compile(r"^((?:import|from) movers\b[^#\n]*?) *$", re.MULTILINE)
    script = files[f"{name}.py"].decode()
    files[f"{name}.py"] = imports.sub(lambda line: f"{line[1]}  # From: {package}", script).encode()
    return files


def write_space(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of a Space into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (folder / file).write_bytes(content)


def _pins() -> list[str]:
    """The tested versions of what the package requires; gradio's is in the card."""
    code = (CHECKOUT / "setup.py").read_text(encoding="utf-8").partition("EXTRAS")[0]
    required = {name.lower().replace("_", "-") for name in re.findall(r'^    "([\w-]+)>=', code, re.MULTILINE)}
    lines = (CHECKOUT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.partition("==")[0].lower().replace("_", "-") in required]


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
    name: str, org: str, package: str, *, private: bool = False, checkout: Path = CHECKOUT, api: HfApi | None = None
) -> str:
    """Create the Space `<org>/<name>`, or update it, and upload the metric's files; returns its id for `evaluate.load`.

    `package` is how pip installs movers (`movers==0.2.0`, or an address), `checkout` the folder that contains
    `metrics/<name>`, `api` a client of the Hub (by default one with the token of `hf auth login` or `HF_TOKEN`).
    """
    from huggingface_hub import HfApi

    files = space_files(name, package, checkout)
    api = HfApi() if api is None else api
    space = f"{org}/{name}"
    api.create_repo(space, repo_type="space", space_sdk="gradio", private=private, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        write_space(Path(folder), files)
        api.upload_folder(
            repo_id=space, repo_type="space", folder_path=folder, commit_message=f"{name} of movers {VERSION}"
        )
    return space


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Publish metrics as Spaces on the Hugging Face Hub.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(METRICS)}; default: all")
    parser.add_argument("--org", required=True, help="user or organisation that owns the Spaces")
    parser.add_argument(
        "--package",
        default=f"movers=={VERSION}",
        help=f"how pip installs it; default: movers=={VERSION}, or an address",
    )
    parser.add_argument("--dry-run", metavar="FOLDER", type=Path, help="write the Spaces there and upload nothing")
    parser.add_argument("--private", action="store_true", help="make new Spaces private")
    options = parser.parse_args(arguments)
    names = options.names or list(METRICS)
    try:
        for name in names:  # before the first upload, so that a typo publishes nothing
            space_files(name, options.package)
    except InputError as error:
        sys.exit(str(error))
    for name in names:
        if options.dry_run is None:
            print(f"published {publish(name, options.org, options.package, private=options.private)}")
        else:
            write_space(options.dry_run / options.org / name, space_files(name, options.package))
            print(f"wrote {options.dry_run / options.org / name}")


if __name__ == "__main__":
    main()
