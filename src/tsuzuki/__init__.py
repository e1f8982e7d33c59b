"""Tsuzuki: a job engine for work that must continue, with a relational database as the only truth."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tsuzuki.engine.run_context import RunContext, RunStopped
    from tsuzuki.library import RunHandle, Tsuzuki
    from tsuzuki.model.errors import Fenced, RunFailed, TsuzukiError, WaitTimedOut
    from tsuzuki.services.runs import Request

    __version__: str

__all__ = [
    "Fenced",
    "Request",
    "RunContext",
    "RunFailed",
    "RunHandle",
    "RunStopped",
    "Tsuzuki",
    "TsuzukiError",
    "WaitTimedOut",
    "__version__",
]

# Loaded when first asked for: `tsuzuki --help` must not wait for a database driver.
_HOMES = {
    "Fenced": "tsuzuki.model.errors",
    "Request": "tsuzuki.services.runs",
    "RunContext": "tsuzuki.engine.run_context",
    "RunFailed": "tsuzuki.model.errors",
    "RunHandle": "tsuzuki.library",
    "RunStopped": "tsuzuki.engine.run_context",
    "Tsuzuki": "tsuzuki.library",
    "TsuzukiError": "tsuzuki.model.errors",
    "WaitTimedOut": "tsuzuki.model.errors",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 -- slow to load, rarely needed

        return version("tsuzuki")
    if name not in _HOMES:
        raise AttributeError(f"module 'tsuzuki' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
