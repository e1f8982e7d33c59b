"""The modules of a program's functions: its main script, those that other processes can import, lost functions."""

import os
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from tsuzuki.model.abilities import MAIN_MODULE
from tsuzuki.model.errors import UsageError
from tsuzuki.model.import_string import is_importable
from tsuzuki.model.job import JobSpec


def path_of_program() -> str:
    """The script that runs, as it was named: links are kept, so that a release behind a link like `current` is still
    the same program. A session without a script, such as a notebook, is known by its working directory."""
    file = getattr(sys.modules.get(MAIN_MODULE), "__file__", None)
    return os.path.abspath(file or Path.cwd())  # noqa: PTH100 -- resolve() would follow links


def require_isolable(function: Callable[..., Any]) -> None:
    """Raise `UsageError` for a function that no other process can import."""
    name = f"{function.__module__}:{function.__qualname__}"
    if function.__module__ == MAIN_MODULE:
        cause = "is defined in the main script, which no other process can import"
    elif function.__name__ == "<lambda>":
        cause = "is a lambda, which has no name to import it by"
    elif not is_importable(function.__module__):
        cause = "is in a module that no other process can import"
    else:
        return
    raise UsageError(
        f"{name} cannot run in a separate process: it {cause}",
        hint="Move it to the top level of an importable module, or set isolation: thread.",
        code="not_isolable",
    )


def is_lost(job: JobSpec, *, functions: Collection[str], program: str) -> bool:
    """Whether a job's function is in a module that defines jobs here (`functions`), and is not there any more."""
    module, _, names = (job.needs.function or "").partition(":")
    defining = {path.partition(":")[0] for path in functions}
    # A module that was loaded from a path may not be listed: then only what was decorated in it is known.
    if job.needs.function in functions or module not in defining & sys.modules.keys():
        return False
    if module == MAIN_MODULE and job.needs.program != program:
        return False
    found: Any = sys.modules[module]
    for name in names.split("."):
        found = getattr(found, name, None)
    return found is None
