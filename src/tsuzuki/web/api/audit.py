"""`/audit`: who changed what, and when."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from tsuzuki.model.access import Right
from tsuzuki.services.audit import AuditEntry
from tsuzuki.web.answers import GivenMoment, Model, Moment
from tsuzuki.web.context import Context
from tsuzuki.web.paging import COUNT_MAX, Page, PageRequest, count_of
from tsuzuki.web.route import ApiRouter

router = ApiRouter("audit")


class AuditOut(Model):
    """One change. Secrets in `before` and `after` are masked."""

    id: int
    at: Moment
    actor: str
    action: str
    object_type: str
    object_id: str
    before: Any
    after: Any
    job: str | None = Field(description="The job, if a run was changed.")


class AuditQuery(PageRequest):
    object_type: str | None = Field(None, max_length=50, examples=["job"])
    object_id: str | None = Field(None, max_length=500)
    actor: str | None = Field(None, max_length=200, examples=["cli:ada"])
    since: GivenMoment | None = None


@router.get("/audit", right=Right.AUDIT_READ)
def list_audit(context: Context, query: Annotated[AuditQuery, Query()]) -> Page[AuditOut]:
    """List changes, the newest first."""
    audit = context.application.audit
    filters = {
        name: getattr(query, name) for name in ("object_type", "object_id", "actor", "since")
    }

    def find(after: Any, limit: int) -> list[AuditEntry]:
        return audit.find(**filters, before_id=after, limit=limit)

    def item(entry: AuditEntry) -> AuditOut:
        return AuditOut(**context.mask(asdict(entry)))

    return context.page(
        query,
        find=find,
        position=lambda entry: entry.id,
        item=item,
        count=lambda: count_of(audit.count(**filters, at_most=COUNT_MAX + 1)),
    )
