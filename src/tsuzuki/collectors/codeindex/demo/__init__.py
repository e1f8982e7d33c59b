"""The code index in `tsuzuki demo`: a small project of the demo's own, because every account of the machine can see
the page."""

import json
from collections.abc import Mapping
from functools import partial

from tsuzuki.cli.demo.part import DemoContext, DemoPart, make_once
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE
from tsuzuki.collectors.codeindex.lsp.settings import CONFIG_VARIABLE

from .project import make_project

PROJECT = "project"
JOB = (
    "  code-index:\n    description: Keep an index of a source tree up to date\n    "
    "type: codeindex\n    roots: [{root}]\n    schedule: {{every: 10m}}\n"
)


def _values(context: DemoContext) -> Mapping[str, str]:
    return {"root": json.dumps(str(context.folder / PROJECT))}


def _prepare(context: DemoContext) -> None:
    make = partial(make_project, end=int(context.since.timestamp()))
    make_once(context.folder / PROJECT, make)


DEMO = DemoPart(
    job=JOB,
    values=_values,
    prepare=_prepare,
    kept_variables=(FOLDER_VARIABLE, CONFIG_VARIABLE),
    run_at_start=("code-index",),
    look_at={"/index": "search the source code"},
)
