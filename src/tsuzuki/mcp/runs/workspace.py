"""The workspace that a server's calls act on: opened with the first of them, and shared by all."""

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from tsuzuki.mcp.tool import ServerState
from tsuzuki.wiring.application import Application, local_actor, opened, require_workspace


class Workspace:
    """Nothing is opened before it is needed: a server for code runs where there is no workspace."""

    def __init__(self, sources: Mapping[str, Any]) -> None:
        self._sources = sources
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._application: Application | None = None
        self.is_closing = threading.Event()
        """Set when the server ends: who waits for a run stops waiting, or the process would linger."""

    def application(self) -> Application:
        """Raises `ConfigurationError` where there is no workspace; the next call looks again."""
        with self._lock:
            if self._application is None:
                self._application = self._open()
            return self._application

    def close(self) -> None:
        self.is_closing.set()
        with self._lock:
            self._application = None
            self._stack.close()

    def _open(self) -> Application:
        with ExitStack() as stack:
            application = stack.enter_context(
                opened(**self._sources, actor=local_actor("mcp"), migrate=False)
            )
            require_workspace(application)
            application.maintenance.upgrade()
            self._stack = stack.pop_all()
        return application


def workspace_of(state: ServerState) -> Workspace:
    """The workspace that a server was started in."""
    workspace: Workspace = state.part("workspace", lambda state: Workspace(state.sources))
    return workspace


def application_of(state: ServerState) -> Application:
    """Its services."""
    return workspace_of(state).application()
