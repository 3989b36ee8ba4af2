"""What reaches a page at all: requests of bounded size, a bounded number at once, uploads that fit the disk."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import gradio
from gradio.blocks import BlockFunction
from gradio.context import LocalContext
from gradio.exceptions import InvalidPathError

from movers.serve.limits import LIMITS

__all__ = ["Guard", "GuardedPage", "sweep", "sweep_regularly", "upload_folder", "visitor"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class _TooLarge(Exception):
    pass


class Guard:
    """ASGI middleware that answers 413 or 503, with a message, before anything is read or kept.

    Parameters
    ----------
    app
        What the rest is passed on to.
    uploads : str
        The folder that uploads are kept in.
    """

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], uploads: str) -> None:
        self.app = app
        self.uploads = Path(uploads)
        self.open: Counter[str] = Counter()  # by address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        upload = scope["path"].rstrip("/").endswith("/upload")
        limit = LIMITS.file_bytes + 10_000 if upload else LIMITS.request_bytes
        length = dict(scope["headers"]).get(b"content-length", b"0")
        refusal = None
        visitor = scope["client"][0] if scope.get("client") else ""
        if self.open.total() >= LIMITS.connections or self.open[visitor] >= LIMITS.own_connections:
            refusal = 503, "busy: too many visitors at once; try again later"
        elif not length.isdigit() or int(length) > limit:
            refusal = 413, f"expected at most {limit:,} bytes, but got {length.decode('ascii', 'replace')}"
        elif upload and _size(self.uploads) > LIMITS.upload_bytes:
            refusal = 503, "busy: too many uploads wait to be scored; try again later"
        if refusal is not None:
            await _answer(send, *refusal)
            return
        self.open[visitor] += 1
        try:
            await self._pass(scope, receive, send, limit)
        finally:
            self.open[visitor] -= 1
            if not self.open[visitor]:
                del self.open[visitor]

    async def _pass(self, scope: Scope, receive: Receive, send: Send, limit: int) -> None:
        received, begun = 0, False

        async def count() -> MutableMapping[str, Any]:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise _TooLarge
            return message

        async def note(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, count, note)
        except _TooLarge:
            if not begun:
                await _answer(send, 413, f"expected at most {limit:,} bytes, but got more")


def visitor() -> str:
    """The address from which the request came that this thread answers; behind a proxy it may be the proxy's."""
    client = getattr(LocalContext.request.get(None), "client", None)
    return client.host if client is not None else ""


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*") if folder.is_dir() else ():
        try:
            total += path.stat().st_size
        except OSError:  # scored and deleted meanwhile
            continue
    return total


async def _answer(send: Send, status: int, message: str) -> None:
    body = json.dumps({"detail": message}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})


class GuardedPage(gradio.Blocks):
    """A page that opens no address a visitor sends in place of a file."""

    async def preprocess_data(
        self, block_fn: BlockFunction, inputs: list[object], *state: object, **more: bool
    ) -> list:
        """What gradio does before it calls a function, which otherwise would download such a file."""
        _refuse_addresses(inputs)
        expected, actual = len(block_fn.inputs), len(inputs)
        if actual != expected:
            raise gradio.Error(f"data: expected {expected} values, but got {actual}", print_exception=False)
        try:
            return await super().preprocess_data(block_fn, inputs, *state, **more)
        except InvalidPathError:
            raise gradio.Error("file: expected an upload, but got another path", print_exception=False) from None


def _refuse_addresses(value: object) -> None:
    if isinstance(value, Mapping):
        if "://" in str(value.get("path", ""))[:40]:
            raise gradio.Error("file: expected an upload, but got an address", print_exception=False)
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            _refuse_addresses(item)


# --- uploads ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def upload_folder() -> str:
    """Where gradio keeps uploads: a folder of this process, in the one that GRADIO_TEMP_DIR names."""
    folder = tempfile.mkdtemp(prefix="movers-page-", dir=os.environ.get("GRADIO_TEMP_DIR"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["GRADIO_TEMP_DIR"] = folder
    return folder


def sweep(folder: str, begun: float = 60.0, kept: float = 600.0) -> None:
    """Delete uploads that nobody scored in `kept` seconds, and those that broke off more than `begun` seconds ago.

    gradio deletes the former too, but not the latter, which lie beside the folders of complete files.
    """
    for path in Path(folder).iterdir():
        with contextlib.suppress(FileNotFoundError):
            age = time.time() - path.stat().st_mtime
            if path.is_dir() and age > kept:
                shutil.rmtree(path, ignore_errors=True)
            elif not path.is_dir() and age > begun:
                path.unlink()


def sweep_regularly(folder: str, pause: float = 20.0) -> None:
    """Sweep as long as the folder is there."""
    while Path(folder).is_dir():
        sweep(folder)
        time.sleep(pause)
