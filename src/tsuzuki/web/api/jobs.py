"""`/jobs`: list jobs, and change those defined in the database."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import Header, Path, Query, Response
from pydantic import Field, JsonValue

from tsuzuki.model.access import Right
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.job import JobSource
from tsuzuki.model.misfire import Misfire
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.services.job_changes import ChangeKind
from tsuzuki.services.jobs import JobView, SyncState
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.api.explanations import JobExplanation, explanation_out
from tsuzuki.web.context import Context
from tsuzuki.web.paging import Page, PageRequest
from tsuzuki.web.preconditions import etag, matched_version, required_version
from tsuzuki.web.problems import InvalidRequest, PartProblem
from tsuzuki.web.route import ApiRouter

router = ApiRouter("jobs")

JOB_NAME_LENGTH_MAX = 100
JobName = Annotated[str, Path(min_length=1, max_length=JOB_NAME_LENGTH_MAX, examples=["hello"])]
IfMatch = Annotated[
    str | None, Header(description="ETag of the version to change.", examples=['"3"'])
]
Definition = Annotated[
    dict[str, JsonValue],
    Field(
        description="Keys of the job, as in tsuzuki.yaml.",
        examples=[{"command": ["echo", "hello"], "schedule": "every 10 minutes"}],
    ),
]
ETAG_HEADER = {
    "headers": {"ETag": {"description": "ETag of the version.", "schema": {"type": "string"}}}
}


class JobOut(Model):
    """A job. `definition` parts are as stored; `sync_state` says whether the database has what the file says."""

    name: str
    id: int | None
    version: int | None = Field(
        description="Version of the job, also its ETag. Null if the job is not applied yet."
    )
    source: JobSource
    sync_state: SyncState
    handler: str
    options: dict[str, Any]
    arguments: dict[str, Any]
    description: str
    enabled: bool
    schedule: dict[str, Any] | None
    spread_seconds: float
    schedule_words: str
    next_at: Moment | None
    on_event: str | None
    misfire: Misfire
    catchup_window_seconds: float
    concurrency_policy: ConcurrencyPolicy
    max_concurrent: int | None
    concurrency_key: str | None
    max_concurrent_per_key: int | None
    priority: int
    timeout_seconds: float | None
    retry: dict[str, Any]
    tags: list[str]


class ApplyRequest(Model):
    dry_run: bool = Field(False, description="Check the change without making it.")


class JobChange(Model):
    """A job that was, or would be, added, changed or removed; `keys` are those that differ."""

    kind: ChangeKind
    name: str
    keys: list[str]


class AppliedOut(Model):
    changes: list[JobChange]


class JobQuery(PageRequest):
    enabled: bool | None = Field(None, description="Filter by enabled or disabled jobs.")
    source: JobSource | None = None
    handler: str | None = Field(None, max_length=100, description="Job type, such as `command`.")
    tag: str | None = Field(None, max_length=200)
    search: str | None = Field(None, max_length=100, description="Part of the job name.")
    built_in: bool = Field(
        False, description="Include built-in jobs, such as the one for bulk actions."
    )


class NewJob(Model):
    name: str = Field(min_length=1, max_length=100, examples=["hello"])
    definition: Definition


class JobEdit(Model):
    definition: Definition


class NextTimes(Model):
    times: list[Moment]


def job_out(context: Context, view: JobView) -> JobOut:
    values = {**view.as_dict(), "version": view.job.version if view.job else None}
    masked = {key: context.mask(values[key]) for key in ("options", "arguments", "description")}
    return JobOut(**{**values, **masked})


def _answer(context: Context, view: JobView, response: Response) -> JobOut:
    if view.job is not None:
        response.headers["ETag"] = etag(view.job.version)
    return job_out(context, view)


@contextmanager
def definition_of_the_request(
    part: str = "body.definition", *, is_file_whole: bool = False
) -> Iterator[None]:
    """What is wrong with a definition that was sent is wrong with the request; a place is in the server's file,
    unless that was just read without a fault."""
    try:
        yield
    except ConfigurationError as error:
        if error.place is not None and not is_file_whole:
            raise
        problems: tuple[ConfigurationError, ...] = getattr(error, "problems", (error,))
        raise InvalidRequest(
            [
                PartProblem(
                    where="body.name" if problem.specific_code == "job_name" else part,
                    message=problem.message,
                    code=problem.specific_code,
                    hint=problem.hint,
                )
                for problem in problems
            ]
        ) from error


@router.get("/jobs", right=Right.JOBS_READ)
def list_jobs(context: Context, query: Annotated[JobQuery, Query()]) -> Page[JobOut]:
    """List the jobs of the file and of the database, by name."""
    wanted = [view for view in context.application.jobs.find() if is_wanted(view, query)]
    return context.page_of_rows(
        query,
        wanted,
        position=_name,
        item=lambda view: job_out(context, view),
    )


def _name(view: JobView) -> str:
    return view.name


def is_wanted(view: JobView, query: JobQuery) -> bool:
    spec = view.spec
    return (
        (query.built_in or not view.is_built_in)
        and (query.enabled is None or spec.enabled == query.enabled)
        and (query.source is None or view.source is query.source)
        and (query.handler is None or spec.handler == query.handler)
        and (query.tag is None or query.tag in spec.tags)
        and (query.search is None or query.search.casefold() in spec.name.casefold())
    )


@router.post(
    "/jobs", right=Right.JOBS_WRITE, refuses=[409], status_code=201, responses={201: ETAG_HEADER}
)
def create_job(context: Context, body: NewJob, response: Response) -> JobOut:
    """Make a job that lives in the database only."""
    with definition_of_the_request():
        view = context.application.jobs.create(body.name, body.definition)
    response.headers["Location"] = f"/api/v1/jobs/{view.name}"
    return _answer(context, view, response)


@router.post("/jobs/apply", right=Right.JOBS_WRITE)
def apply_file(context: Context, body: ApplyRequest | None = None) -> AppliedOut:
    """Make the database hold what the file of the server says; or only say what that would change."""
    dry_run = body is not None and body.dry_run
    changes = context.application.jobs.apply(dry_run=dry_run)
    return AppliedOut(
        changes=[JobChange(kind=one.kind, name=one.name, keys=one.keys) for one in changes]
    )


@router.get("/jobs/{name}", right=Right.JOBS_READ, refuses=[404], responses={200: ETAG_HEADER})
def get_job(context: Context, name: JobName, response: Response) -> JobOut:
    """One job, with its version as ETag."""
    return _answer(context, context.application.jobs.get(name), response)


@router.put(
    "/jobs/{name}",
    right=Right.JOBS_WRITE,
    refuses=[404, 409, 412, 428],
    responses={200: ETAG_HEADER},
)
def edit_job(
    context: Context, name: JobName, body: JobEdit, response: Response, if_match: IfMatch = None
) -> JobOut:
    """Replace the definition of a job of the database. One of the file answers 409 with file and line."""
    jobs = context.application.jobs
    with definition_of_the_request():
        version = required_version(if_match, _version(context, name))
        view = jobs.edit(name, body.definition, version=version)
    return _answer(context, view, response)


@router.delete("/jobs/{name}", right=Right.JOBS_WRITE, refuses=[404, 409, 412], status_code=204)
def delete_job(context: Context, name: JobName, if_match: IfMatch = None) -> None:
    """Remove a job of the database. Its runs and their history stay."""
    version = matched_version(if_match, _version(context, name))
    context.application.jobs.discard(name, version=version)


def _version(context: Context, name: str) -> int | None:
    job = context.application.jobs.get(name).job
    return job.version if job else None


@router.post(
    "/jobs/{name}/enable",
    right=Right.JOBS_OPERATE,
    refuses=[404, 409],
    responses={200: ETAG_HEADER},
)
def enable_job(context: Context, name: JobName, response: Response) -> JobOut:
    """Switch a job on; what it missed is not made up for. A job of the file is changed in the file."""
    return _answer(context, context.application.jobs.set_enabled(name, True), response)


@router.post(
    "/jobs/{name}/disable",
    right=Right.JOBS_OPERATE,
    refuses=[404, 409],
    responses={200: ETAG_HEADER},
)
def disable_job(context: Context, name: JobName, response: Response) -> JobOut:
    """Switch a job off; what is running goes on to its end. A job of the file is changed in the file."""
    return _answer(context, context.application.jobs.set_enabled(name, False), response)


@router.get("/jobs/{name}/next", right=Right.JOBS_READ, refuses=[404, 409])
def next_times(
    context: Context, name: JobName, count: Annotated[int, Query(ge=1, le=1000)] = 5
) -> NextTimes:
    """When a job will be due, if it stays as it is."""
    return NextTimes(times=context.application.jobs.next_times(name, count))


@router.get("/jobs/{name}/explain", right=Right.JOBS_READ, refuses=[404])
def explain_job(context: Context, name: JobName) -> JobExplanation:
    """Why a job is not running: its newest unfinished run, or its next time."""
    application = context.application
    view = application.jobs.get(name)
    waiting = application.runs.newest_live(name) if view.job else None
    if waiting is None:
        return JobExplanation(job=name, why=view.why_idle(), run=None)
    found = explanation_out(context, application.runs.explain(waiting.id))
    return JobExplanation(job=name, why=found.reasons[0].sentence, run=found)
