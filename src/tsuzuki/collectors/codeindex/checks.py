"""Checks of the code index: its libraries, and the trees named by jobs."""

from collections.abc import Iterator
from importlib.util import find_spec

from tsuzuki.model.check import Check, fault, ok
from tsuzuki.wiring.collector import CheckContext

LIBRARIES = ("tree_sitter", "pathspec")


def checks(context: CheckContext) -> Iterator[Check]:
    """None without a job of this kind."""
    if not context.jobs:
        return
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        yield fault(
            "codeindex: libraries",
            f"cannot import {', '.join(missing)}",
            "Install them with: pip install 'tsuzuki[codeindex]'",
        )
    for job in context.jobs:
        for root in job.options["roots"]:
            what = f"codeindex: {job.name}"
            folder = context.workspace / root
            if folder.is_dir():
                yield ok(what, str(folder))
            else:
                hint = f"Change `roots` of {job.name}: tsuzuki job update {job.name} --set roots='[FOLDER]'"
                yield fault(what, f"folder {folder} does not exist", hint)
