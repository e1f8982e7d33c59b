"""Tsuzuki: a job engine for work that must continue, with a relational database as the only truth."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tsuzuki.engine.run_context import RunContext, RunStopped, current_run
    from tsuzuki.library.handle import Handle
    from tsuzuki.library.job import Call, Job
    from tsuzuki.library.options import JobOptions
    from tsuzuki.library.program import Tsuzuki
    from tsuzuki.model.errors import (
        Conflict,
        Fenced,
        NotFound,
        RunFailed,
        TsuzukiError,
        UsageError,
        WaitTimedOut,
    )
    from tsuzuki.model.run import Run
    from tsuzuki.model.states import RunState
    from tsuzuki.services.runs import Request

    __version__: str

__all__ = [
    "Call",
    "Conflict",
    "Fenced",
    "Handle",
    "Job",
    "JobOptions",
    "NotFound",
    "Request",
    "Run",
    "RunContext",
    "RunFailed",
    "RunState",
    "RunStopped",
    "Tsuzuki",
    "TsuzukiError",
    "UsageError",
    "WaitTimedOut",
    "__version__",
    "current_run",
]

# Loaded when first asked for: `tsuzuki --help` must not wait for a database driver.
_HOMES = {
    "Call": "tsuzuki.library.job",
    "Conflict": "tsuzuki.model.errors",
    "Fenced": "tsuzuki.model.errors",
    "Handle": "tsuzuki.library.handle",
    "Job": "tsuzuki.library.job",
    "JobOptions": "tsuzuki.library.options",
    "NotFound": "tsuzuki.model.errors",
    "Request": "tsuzuki.services.runs",
    "Run": "tsuzuki.model.run",
    "RunContext": "tsuzuki.engine.run_context",
    "RunFailed": "tsuzuki.model.errors",
    "RunState": "tsuzuki.model.states",
    "RunStopped": "tsuzuki.engine.run_context",
    "Tsuzuki": "tsuzuki.library.program",
    "TsuzukiError": "tsuzuki.model.errors",
    "UsageError": "tsuzuki.model.errors",
    "WaitTimedOut": "tsuzuki.model.errors",
    "current_run": "tsuzuki.engine.run_context",
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
