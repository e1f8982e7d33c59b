"""Shell completion for names and IDs of this workspace. Commands of collectors add more with `completion`.

Completion changes nothing and never fails: what cannot be looked up is not offered.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeAlias
from zoneinfo import available_timezones

import click
from click.shell_completion import CompletionItem

from tsuzuki.cli.application import ask, open_application
from tsuzuki.cli.invocation import Invocation
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.settings import SETTINGS

OFFERED_MAX = 200
RUNS_MAX = 50

Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completion(find: Callable[[Invocation], Iterable[tuple[str, str]]]) -> Complete:
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


def find_jobs(invocation: Invocation, kind: str | None = None) -> list[Any]:
    """Views of all jobs, or of those of one kind."""
    views = ask(invocation, lambda source: source.jobs.find(), dry_run=True)
    return [view for view in views if kind is None or view.spec.handler == kind]


def job_names(kind: str | None = None) -> Complete:
    """Complete the name of a job, or of a job of one kind."""
    return completion(
        lambda invocation: [
            (view.name, view.schedule_words) for view in find_jobs(invocation, kind)
        ]
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


def _rights(_invocation: Invocation) -> list[tuple[str, str]]:
    from tsuzuki.wiring.collectors import installed_collectors

    rights = installed_collectors().rights
    return [(name, f"from {right.role}") for name, right in sorted(rights.items())]


def _zones(_invocation: Invocation) -> list[tuple[str, str]]:
    return [(name, "") for name in sorted(available_timezones())]


def _workers(invocation: Invocation) -> list[tuple[str, str]]:
    with open_application(invocation, dry_run=True) as application:
        return [(view.worker.id, view.worker.host) for view in application.workers.workers()]


run_ids = completion(_runs)
setting_names = completion(_settings)
zone_names = completion(_zones)
job_kinds = completion(_kinds)
right_names = completion(_rights)
worker_ids = completion(_workers)
