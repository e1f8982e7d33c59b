"""`/commits`: followed branches, and their collections. Reports are in `api/reports.py`."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Path, Query, Response
from pydantic import Field

from tsuzuki.collectors.commits.service import CommitsService
from tsuzuki.collectors.commits.service.collections import (
    CollectionView,
    StartedCollection,
    Summary,
)
from tsuzuki.collectors.commits.service.commits import ProjectView, TargetView
from tsuzuki.model.access import Right
from tsuzuki.web.answers import Model
from tsuzuki.web.context import Context
from tsuzuki.web.paging import Page, PageQuery, count_of
from tsuzuki.web.route import ApiRouter

router = ApiRouter("commits")

CollectionId = Annotated[
    str,
    Path(
        min_length=1,
        max_length=100,
        description="ID of the collection, or an unambiguous beginning of it.",
    ),
]
ProjectReference = Annotated[
    str, Field(min_length=1, max_length=500, description="Number, path or name of the project.")
]
BranchName = Annotated[str, Field(min_length=1, max_length=500, examples=["main"])]
LOCATION_HEADER = {
    "headers": {"Location": {"description": "ID of the collection.", "schema": {"type": "string"}}}
}


class ProjectOut(Model):
    """A project, and how many of its commits are stored."""

    project_id: int
    kind: str
    path: str
    name: str
    url: str
    default_branch: str | None
    commits: int


class TargetOut(Model):
    """A branch that is followed. `head` is the commit up to which it is collected, `last_collected` the date of
    its newest commit; `why_default` says how the default branch was found when the target was added."""

    project_id: int
    project: str
    branch: str
    last_collected: str | None
    head: str | None
    collected_at_utc: str | None
    under_way: bool
    why_default: str | None


class NewTarget(Model):
    project: ProjectReference
    branch: BranchName | None = Field(
        None, description="Branch to follow (default: the project's default branch)."
    )


class MatchingTargets(Model):
    """Which branches; of every known project if none is named."""

    project: ProjectReference | None = None
    patterns: list[BranchName] = Field(
        default_factory=list,
        max_length=50,
        description="`*` matches any characters. Without a pattern: the default branch.",
        examples=[["main", "release/*"]],
    )
    dry_run: bool = Field(False, description="Return what would be added without adding it.")


class TargetAdditionOut(Model):
    """What became of one branch: added, would_add, present, no_match or failed (`reason`)."""

    project_id: int | None
    project: str
    branch: str | None
    outcome: str
    reason: str | None


class TargetAdditionsOut(Model):
    items: list[TargetAdditionOut]


class CollectCommitsRequest(Model):
    """Which targets; all of them if nothing is said."""

    projects: list[ProjectReference] = Field([], max_length=1000)
    branch: BranchName | None = None


class CollectionStarted(Model):
    """`job_run_id` is the run that works on it; `is_takeover` if another process had started it."""

    collection_id: str
    job_run_id: int
    total_targets: int
    is_takeover: bool


class CollectionOut(Model):
    collection_id: str
    started_at_utc: str
    completed_at_utc: str | None
    run_status: str
    total_targets: int
    success_count: int
    failed_count: int
    pending_count: int


class NoteOut(Model):
    kind: str
    sentence: str


class TargetResult(Model):
    """How one target went."""

    project_id: int
    path: str
    branch_name: str
    status: str
    new_commits_count: int | None
    error_message: str | None
    processed_at_utc: str | None
    notes: list[NoteOut]


class CollectionDetails(CollectionOut):
    retry_of: str | None
    job_run_id: int | None
    results: list[TargetResult]


class SyncedOut(Model):
    """How many projects the GitLab shows us, the paths of new ones, and how many have another path or another
    default branch than before."""

    known: int
    added: list[str]
    renamed: int
    default_moved: int


def commits_service(context: Context) -> CommitsService:
    service: CommitsService = context.application.service("commits")
    return service


def project_out(context: Context, view: ProjectView) -> ProjectOut:
    values = {**asdict(view.project), "commits": view.commits}
    shown = {name: values[name] for name in ProjectOut.model_fields}
    return ProjectOut.model_validate(context.mask(shown))


def target_out(context: Context, view: TargetView) -> TargetOut:
    return TargetOut.model_validate(context.mask(asdict(view)))


def details_out(context: Context, view: CollectionView) -> CollectionDetails:
    details = {
        **asdict(view.summary),
        "retry_of": view.retry_of,
        "job_run_id": view.job_run_id,
        "results": [asdict(result) for result in view.results],
    }
    return CollectionDetails.model_validate(context.mask(details))


@router.get("/commits/projects", right=Right.COLLECTORS_READ)
def list_projects(context: Context, query: PageQuery) -> Page[ProjectOut]:
    """List the projects that are known, by number."""
    found = commits_service(context).commits.projects()
    return context.page_of_rows(
        query,
        found,
        position=_project_position,
        item=lambda view: project_out(context, view),
    )


@router.post("/commits/projects/sync", right=Right.COLLECTORS_OPERATE)
def sync_projects(context: Context) -> SyncedOut:
    """Learn of every project of the configured GitLab. Nothing is ever taken away."""
    changes = commits_service(context).commits.sync_projects()
    return SyncedOut(
        known=len(changes),
        added=[context.mask(one.project.path) for one in changes if one.is_new],
        renamed=sum(one.renamed_from is not None for one in changes),
        default_moved=sum(one.default_moved_from is not None for one in changes),
    )


def _project_position(view: ProjectView) -> str:
    return f"{view.project.project_id:020}"


@router.get("/commits/targets", right=Right.COLLECTORS_READ)
def list_targets(context: Context, query: PageQuery) -> Page[TargetOut]:
    """List the branches that are followed, and how far each is collected."""
    found = commits_service(context).commits.targets()
    return context.page_of_rows(
        query,
        found,
        position=_target_position,
        item=lambda view: target_out(context, view),
    )


def _target_position(view: TargetView) -> str:
    return f"{view.project_id:020} {view.branch}"


@router.post("/commits/targets", right=Right.COLLECTORS_OPERATE, refuses=[404], status_code=201)
def add_target(context: Context, body: NewTarget) -> TargetOut:
    """Follow a branch of a project that is known or is on the configured GitLab. A folder or a git URL is taken in
    by command only."""
    view = commits_service(context).commits.add_target(body.project, body.branch, base=None)
    return target_out(context, view)


@router.post("/commits/targets/matching", right=Right.COLLECTORS_OPERATE, refuses=[404])
def add_matching_targets(context: Context, body: MatchingTargets) -> TargetAdditionsOut:
    """Follow every branch whose name matches, of one project or of all that are known."""
    found = commits_service(context).commits.add_targets(
        body.project, tuple(body.patterns), base=None, dry_run=body.dry_run
    )
    return TargetAdditionsOut(
        items=[TargetAdditionOut.model_validate(context.mask(asdict(one))) for one in found]
    )


@router.delete("/commits/targets", right=Right.COLLECTORS_OPERATE, refuses=[404], status_code=204)
def remove_target(
    context: Context,
    project: Annotated[str, Query(min_length=1, max_length=500)],
    branch: Annotated[str, Query(min_length=1, max_length=500)],
) -> None:
    """Follow a branch no longer. What was collected stays."""
    commits_service(context).commits.remove_target(project, branch)


@router.get("/commits/collections", right=Right.COLLECTORS_READ)
def list_collections(context: Context, query: PageQuery) -> Page[CollectionOut]:
    """List collections, the newest first."""
    collections = commits_service(context).collections
    return context.page(
        query,
        find=lambda after, limit: collections.summaries(after=after, limit=limit),
        position=lambda summary: summary.collection_id,
        item=collection_out,
        count=lambda: count_of(collections.count()),
    )


def collection_out(summary: Summary) -> CollectionOut:
    return CollectionOut.model_validate(asdict(summary))


@router.post(
    "/commits/collections",
    right=Right.COLLECTORS_OPERATE,
    refuses=[404],
    status_code=202,
    responses={202: LOCATION_HEADER},
)
def start_collection(
    context: Context, response: Response, body: CollectCommitsRequest | None = None
) -> CollectionStarted:
    """Collect all targets, or some. While one collection runs, another is refused."""
    asked = body or CollectCommitsRequest(projects=[], branch=None)
    started = commits_service(context).collections.start(asked.projects, branch=asked.branch)
    return _started(response, started)


def _started(response: Response, started: StartedCollection) -> CollectionStarted:
    response.headers["Location"] = f"/api/v1/commits/collections/{started.collection_id}"
    return CollectionStarted.model_validate(asdict(started))


@router.get("/commits/collections/{collection_id}", right=Right.COLLECTORS_READ, refuses=[404])
def get_collection(context: Context, collection_id: CollectionId) -> CollectionDetails:
    """One collection with the result of each target."""
    return details_out(context, commits_service(context).collections.show(collection_id))


@router.post(
    "/commits/collections/{collection_id}/retry",
    right=Right.COLLECTORS_OPERATE,
    refuses=[404],
    status_code=202,
    responses={202: LOCATION_HEADER},
)
def retry_collection(
    context: Context, collection_id: CollectionId, response: Response
) -> CollectionStarted:
    """A new collection of what failed, or was left pending, in an earlier one."""
    return _started(response, commits_service(context).collections.retry(collection_id))


@router.post(
    "/commits/collections/{collection_id}/cancel", right=Right.COLLECTORS_OPERATE, refuses=[404]
)
def cancel_collection(context: Context, collection_id: CollectionId) -> CollectionOut:
    """Stop the running collection. What is done is kept, the rest stays pending."""
    return collection_out(commits_service(context).collections.cancel(collection_id))
