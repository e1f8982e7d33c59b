"""An application on a port of its own, in a thread of the test's process."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette

from tsuzuki.mcp.serve import LOOPBACK


@contextmanager
def served(app: Starlette) -> Iterator[str]:
    """The address that the application answers at, while it does."""
    listener = socket.create_server((LOOPBACK, 0))
    started = threading.Event()

    class Noticed(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            started.set()

    server = Noticed(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        assert started.wait(120)
        yield f"http://{LOOPBACK}:{listener.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
