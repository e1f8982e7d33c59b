"""What a shell offers for a word that is being typed: names and ids of this workspace.

Completion changes nothing and never fails: what cannot be looked up is not offered.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeAlias
from zoneinfo import available_timezones

import click
from click.shell_completion import CompletionItem

from tsuzuki.cli.application import ask, open_application
from tsuzuki.cli.collector_services import commits_service
from tsuzuki.cli.invocation import Invocation
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.settings import SETTINGS

OFFERED_MAX = 200
RUNS_MAX = 50

Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completion(find: Callable[[Invocation], Iterable[tuple[str, str]]]) -> Complete:
    """Offer each word that `find` names, with a description, if it starts like the incomplete one."""

    def complete(
        context: click.Context, _parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        invocation = replace(context.ensure_object(Invocation), quiet=True)
        try:
            found = [
                CompletionItem(word, help=about or None)
                for word, about in find(invocation)
                if word.startswith(incomplete)
            ]
        except Exception:  # noqa: BLE001 -- a shell has no place for an error while a word is typed
            return []
        return found[:OFFERED_MAX]

    return complete


def _jobs(invocation: Invocation, kind: str | None = None) -> list[Any]:
    views = ask(invocation, lambda source: source.jobs.find(), dry_run=True)
    return [view for view in views if kind is None or view.spec.handler == kind]


def job_names(kind: str | None = None) -> Complete:
    """Of all jobs, or of those of one kind."""
    return _completion(
        lambda invocation: [(view.name, view.schedule_words) for view in _jobs(invocation, kind)]
    )


def _runs(invocation: Invocation) -> list[tuple[str, str]]:
    newest = RunFilter(limit=RUNS_MAX)
    found = ask(invocation, lambda source: source.runs.find(newest), dry_run=True)
    return [(str(run.id), f"{run.job_name} {run.state}") for run in found]


def _settings(_invocation: Invocation) -> list[tuple[str, str]]:
    return [(setting.key, setting.description) for setting in SETTINGS.values()]


def _kinds(_invocation: Invocation) -> list[tuple[str, str]]:
    from tsuzuki.wiring.collectors import collector_records

    usable = collector_records().usable
    return [(name, usable[name].summary) for name in sorted(usable)]


def _zones(_invocation: Invocation) -> list[tuple[str, str]]:
    return [(name, "") for name in sorted(available_timezones())]


def _workers(invocation: Invocation) -> list[tuple[str, str]]:
    with open_application(invocation, dry_run=True) as application:
        return [(view.worker.id, view.worker.host) for view in application.workers.workers()]


def _feeds(invocation: Invocation) -> list[tuple[str, str]]:
    return [
        (name, view.name)
        for view in _jobs(invocation, "feeds")
        for name in view.spec.options.get("feeds", {})
    ]


def _projects(invocation: Invocation) -> list[tuple[str, str]]:
    with open_application(invocation, dry_run=True) as application:
        targets = commits_service(application).commits.targets()
        return [(name, "") for name in sorted({str(target.project) for target in targets})]


run_ids = _completion(_runs)
setting_names = _completion(_settings)
zone_names = _completion(_zones)
job_kinds = _completion(_kinds)
worker_ids = _completion(_workers)
feed_names = _completion(_feeds)
project_paths = _completion(_projects)
