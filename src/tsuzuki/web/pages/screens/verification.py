"""Verification: the newest result in full, earlier results, and a button to start a run."""

import secrets
from typing import Annotated, ClassVar

from fastapi import Form, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.model.access import Right
from tsuzuki.model.verification import FaultKind
from tsuzuki.web.answers import Model
from tsuzuki.web.api.verifications import VerificationOut, verification_out
from tsuzuki.web.pages.context import Page
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.pages.words import Word
from tsuzuki.web.paging import PageRequest

screen = Screen()

COMPLETE = Word(message("Complete"), "succeeded", "good")
FAULTY = Word(message("Discrepancies found"), "failed", "bad")
KINDS = {
    FaultKind.MISSING: message("Missing"),
    FaultKind.REPEATED: message("Duplicate"),
    FaultKind.CHANGED: message("Different"),
    FaultKind.UNKNOWN: message("Not found at the source"),
}


class VerificationView(Model):
    """`latest` is the newest run with a result, of those that are listed."""

    complete: ClassVar = COMPLETE
    faulty: ClassVar = FAULTY
    kinds: ClassVar = KINDS

    latest: VerificationOut | None
    runs: list[VerificationOut]
    next_cursor: str | None
    parts: list[str]
    once: str


class StartVerificationForm(BaseModel):
    """`part` is empty for all. `once` is of the page that was shown: sent twice, it is the same run."""

    model_config = ConfigDict(extra="forbid")

    part: Annotated[str, Field(max_length=100)] = ""
    once: str = Field(min_length=8, max_length=100)


@screen.page("/verification", right=Right.RUNS_READ, template="screens/verification.html")
def verification(context: Page, query: Annotated[PageRequest, Query()]) -> VerificationView:
    runs = context.application.verification_runs
    page = context.page(
        query,
        find=lambda after, limit: runs.find(before_id=after, limit=limit),
        position=lambda run: run.id,
        item=lambda run: verification_out(context, run),
    )
    return VerificationView(
        latest=next((one for one in page.items if one.parts), None),
        runs=page.items,
        next_cursor=page.next_cursor,
        parts=[*runs.parts],
        once=secrets.token_urlsafe(12),
    )


@screen.form("/verification/start", right=Right.JOBS_OPERATE)
def start(context: Page, form: Annotated[StartVerificationForm, Form()]) -> Response:
    runs = context.application.verification_runs
    parts = [form.part] if form.part else []
    run_id = runs.start(parts, idempotency_key=f"verification-{form.once}").run_id
    return context.redirect(f"/runs/{run_id}", message("Run %(run)s started."), run=run_id)
