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

    def application(self) -> Application:
        """Raises `ConfigurationError` where there is no workspace; the next call looks again."""
        with self._lock:
            if self._application is None:
                self._application = self._open()
            return self._application

    def apply_file(self) -> None:
        """Jobs may have been written since: there need be no engine that reads the file."""
        self.application().jobs.apply()

    def close(self) -> None:
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


class ServedWorkspace:
    """That of a web server, for the actor of one request. Its file is applied by the engine, not by requests."""

    def __init__(self, application: Application) -> None:
        self._application = application

    def application(self) -> Application:
        return self._application

    def apply_file(self) -> None:
        return

    def close(self) -> None:
        return


def workspace_of(state: ServerState) -> Workspace | ServedWorkspace:
    """The workspace that a server was started in."""
    workspace: Workspace | ServedWorkspace = state.part(
        "workspace", lambda state: Workspace(state.sources)
    )
    return workspace


def application_of(state: ServerState) -> Application:
    """Its services."""
    return workspace_of(state).application()
