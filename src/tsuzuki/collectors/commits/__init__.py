"""Continues the collection of every project and branch: from the head it knew to the head of today.

a collection:  collect → kit.host_pool (threads) → branch → pages, completion   ledger: what was started, how it ended
a source:      source (what can be asked) ← source_git, source_mirror, source_gitlab
what is kept:  tables ← projects, targets, pages, details, completions, ledger, statistics
"""

from pathlib import Path
from typing import TYPE_CHECKING

from tsuzuki.collectors.collector import (
    CheckContext,
    Collector,
    CollectorContext,
    Handler,
    ServiceContext,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tsuzuki.collectors.commits.service import CommitsService
    from tsuzuki.config import JobKind, SectionReader
    from tsuzuki.engine.run_context import RunContext
    from tsuzuki.model.check import Check
    from tsuzuki.store.schema.migrate import Component


def _kind() -> "JobKind":
    from tsuzuki.collectors.commits.options import CommitsOptions, CommitsSection
    from tsuzuki.config import JobKind
    from tsuzuki.model.job_question import JobQuestion

    text = "Which projects (with commas; empty: every branch that is followed)"
    return JobKind(
        name="commits",
        options_model=CommitsOptions,
        section_model=CommitsSection,
        check_files=_check_files,
        questions=(JobQuestion(key=("projects",), text=text, is_list=True, required=False),),
        usual_schedule="every 1h",
    )


def _check_files(read_section: "SectionReader", workspace: Path) -> None:
    from tsuzuki.collectors.commits.people.people_file import read_people

    people = getattr(read_section(only=("people",)), "people", None)
    if people is not None:
        read_people(workspace / people)


def _component() -> "Component":
    from tsuzuki.collectors.commits.tables import COMPONENT

    return COMPONENT


def _handler(context: CollectorContext) -> Handler:
    def collect_commits(run: "RunContext") -> object:
        from tsuzuki.collectors.commits.collect import collect

        return collect(context, run)

    return collect_commits


def _service(context: ServiceContext) -> "CommitsService":
    from tsuzuki.collectors.commits.service import CommitsService

    return CommitsService(context)


def _checks(context: CheckContext) -> "Iterable[Check]":
    from tsuzuki.collectors.commits.checks import checks

    return checks(context)


COMMITS = Collector(
    name="commits",
    summary="Continue the collection of every project and branch, and see what it brought.",
    kind=_kind,
    component=_component,
    handler=_handler,
    service=_service,
    checks=_checks,
    faces={"cli": "tsuzuki.cli.commits:commits"},
)
