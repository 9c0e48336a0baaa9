"""Applications that are served while a test runs, for browsers and clients."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from pydantic import SecretStr
from starlette.applications import Starlette

from keygraph_server.app import create_app
from keygraph_server.commands.first_start import make_sample_file
from keygraph_server.models import load_model
from keygraph_server.settings import Settings


@contextmanager
def served(app: Starlette) -> Iterator[str]:
    """The address of an application that runs."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listener.close()


@contextmanager
def served_example(name: str, folder: Path) -> Iterator[str]:
    """The address of an example with its sample, and with the playground."""
    with served_model(f"keygraph_examples.{name}:graph", folder / f"{name}.sqlite") as found:
        yield found


@contextmanager
def served_model(model: str, file: Path) -> Iterator[str]:
    """The address of a model with its sample in a new SQLite file, and with the playground."""
    make_sample_file(load_model(model), file)
    with served(
        create_app(Settings(model=model, store=f"sqlite:{file}", secret=SecretStr("x" * 32)))
    ) as found:
        yield found
