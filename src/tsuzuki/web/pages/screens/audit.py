"""The audit log: who changed what, from which value to which."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query

from tsuzuki.model.access import Right
from tsuzuki.model.differences import differences
from tsuzuki.services.audit import AuditEntry
from tsuzuki.web.answers import Model
from tsuzuki.web.api.audit import AuditOut, AuditQuery
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.links import path_part
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.paging import COUNT_MAX, Count, count_of
from tsuzuki.wiring.collectors import audited_types

screen = Screen()

CHANGES_SHOWN = 50
PLACES = {
    "run": "/runs/{}",
    "job": "/jobs/{}",
    "bulk": "/bulk/{}",
    "failure_group": "/failures/{}",
    "event": "/events/{}",
    "worker": "/runs?window=all&worker={}",
    "leader": "/workers",
    "setting": "/settings",
    "user": "/users",
    "token": "/tokens",
    "session": "/sessions",
}


class ChangeOut(Model):
    """A single value that differs, with the way to it."""

    key: str
    before: Any
    after: Any


class AuditRow(AuditOut):
    """`href` leads to the object, where it has a page. `job` is that of a run."""

    changes: list[ChangeOut]
    href: str | None
    job: str | None = None


class AuditView(Model):
    entries: list[AuditRow]
    next_cursor: str | None
    filters: dict[str, Any]
    count: Count | None
    object_types: list[str]


@screen.page("/audit", right=Right.AUDIT_READ, template="screens/audit.html")
def audit_page(context: Page, query: Annotated[AuditQuery, Query()]) -> AuditView:
    audit, filters = context.application.audit, query.filters()
    page = context.page(
        query.model_copy(update={"count": True}),
        find=lambda after, limit: audit.find(**filters, before_id=after, limit=limit),
        position=lambda entry: entry.id,
        item=lambda entry: _row(context, entry),
        count=lambda: count_of(audit.count(**filters, at_most=COUNT_MAX + 1)),
    )
    return AuditView(
        entries=_with_jobs(context, page.items),
        next_cursor=page.next_cursor,
        filters=page.filters,
        count=page.count,
        object_types=audited_types(),
    )


def _with_jobs(context: PageContext, rows: list[AuditRow]) -> list[AuditRow]:
    if not context.principal.may(Right.RUNS_READ):
        return rows
    ids = {int(row.object_id) for row in rows if row.object_type == "run"}
    names = context.application.runs.job_names(ids) if ids else {}
    return [
        row.model_copy(update={"job": names.get(int(row.object_id))})
        if row.object_type == "run"
        else row
        for row in rows
    ]


def _row(context: PageContext, entry: AuditEntry) -> AuditRow:
    values = context.mask(asdict(entry))
    found = list(differences(values["before"] or {}, values["after"] or {}))
    return AuditRow(
        **values,
        changes=[
            ChangeOut(key=key, before=before, after=after)
            for key, before, after in found[:CHANGES_SHOWN]
        ],
        href=_place(context, entry),
    )


def _place(context: PageContext, entry: AuditEntry) -> str | None:
    """The page of the object, if that page exists and the viewer may see it."""
    place = PLACES.get(entry.object_type)
    if place is None:
        return None
    root = "/" + place.split("/")[1].partition("?")[0]
    menu = {one.path for group in context.viewer.menu for one in group.entries}
    return place.format(path_part(entry.object_id)) if root in menu else None
