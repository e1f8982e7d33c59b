"""Isolation: whether a Python function is executed in a thread of its worker, or in a process that can be killed."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

MEMORY_BYTES_MIN = 16 * 1024 * 1024
"""Less than an interpreter needs."""


class Isolation(StrEnum):
    """Where a Python function is executed."""

    PROCESS = "process"
    """In a warm child process. It can be killed, and a crash ends only its own run."""

    THREAD = "thread"
    """In a thread of the worker, or on its event loop. It shares memory with its program, and can only be asked to
    stop."""


def isolation_of(options: Mapping[str, Any]) -> Isolation:
    """Of a Python job, by its options."""
    return Isolation(options.get("isolation") or Isolation.THREAD)


class _ThisProcess:
    is_child = False


def enter_child() -> None:
    """From now on this process executes isolated functions, and nothing else."""
    _ThisProcess.is_child = True


def is_isolated_child() -> bool:
    """Whether this process was started to execute isolated functions. A program's own engine stays off in it."""
    return _ThisProcess.is_child
