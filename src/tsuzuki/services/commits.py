"""Commits: projects and targets, bulk collections and what they brought.

A collection that is asked for here and the run of the engine that works on it are stored in one
transaction; the schema lets one collection run at a time, and whoever asks for a second one is told which.
One that was left by a crash is taken over: its former run is cancelled first, so it can write no more.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

from tsuzuki.collectors.commits import ledger, projects, statistics, targets
from tsuzuki.collectors.commits.collect import chosen, named_project
from tsuzuki.collectors.commits.ledger import InWork, Result, Summary
from tsuzuki.collectors.commits.projects import NewProject, Project, ProjectChange
from tsuzuki.collectors.commits.repositories import described
from tsuzuki.collectors.commits.settings import CommitsSection
from tsuzuki.collectors.commits.sources import Sources
from tsuzuki.collectors.commits.statistics import Dimension
from tsuzuki.collectors.commits.tables import ResultStatus
from tsuzuki.collectors.commits.targets import Target
from tsuzuki.model.errors import Conflict, NotFound, UsageError
from tsuzuki.model.job import PRIORITY_MAX
from tsuzuki.model.run import RunRef
from tsuzuki.model.states import RunState
from tsuzuki.services.attendance import Attendance
from tsuzuki.services.jobs import Jobs
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store import audit, jobs, moves, notices, runs
from tsuzuki.store.database import Connection, Database

JOB = "commits-by-hand"
"""The job whose runs are asked for here; jobs of the file have names of their own."""

JOB_BODY = {"type": "commits", "description": "Collections that people asked for", "max_retries": 3}
PENDING_SECONDS = 10.0
"""So long a collection that nobody works on yet counts as begun by somebody else."""


@dataclass(frozen=True, kw_only=True)
class Begun:
    """A collection that is under way. `is_takeover` says that somebody else had begun it."""

    run_id: str
    job_run_id: int
    total_targets: int
    is_takeover: bool = False


@dataclass(frozen=True, kw_only=True)
class ProjectView:
    """A project, and how much of it is stored."""

    project: Project
    commits: int


@dataclass(frozen=True, kw_only=True)
class TargetView:
    """A branch that is followed, and how far it is collected."""

    project_id: int
    project: str
    branch: str
    last_collected: str | None
    head: str | None
    collected_at_utc: str | None
    under_way: bool


@dataclass(frozen=True, kw_only=True)
class BulkView:
    """One collection with the result of every target."""

    summary: Summary
    retry_of: str | None
    job_run_id: int | None
    results: list[Result]


@dataclass(frozen=True, kw_only=True)
class BulkProgress:
    """How far a collection is at this moment."""

    summary: Summary
    in_work: list[InWork]
    new_commits: int
    job_run_state: RunState | None
    error: str | None
    will_be_repeated: bool
    """Whether another run waits to go on with it, should this one have ended."""


class Commits:
    def __init__(
        self,
        *,
        database: Database,
        workspace: Path,
        section: Callable[[], BaseModel | None],
        job_service: Jobs,
        run_service: Runs,
        actor: str,
    ) -> None:
        self._database = database
        self._workspace = workspace
        self._section = section
        self._jobs = job_service
        self._runs = run_service
        self._actor = actor
        self.attendance = Attendance(database=database)

    # --- projects and targets -------------------------------------------------------------------

    def sync_projects(self) -> list[ProjectChange]:
        """Learn of every project the configured GitLab shows us. Nothing is ever taken away."""
        with closing(self._sources()) as sources:
            found = [sources.found(remote) for remote in sources.gitlab().projects()]
        with self._database.write() as connection:
            return [self._record(connection, one) for one in found]

    def add_repository(self, location: str, *, base: Path) -> ProjectChange:
        """Take in a repository of this machine or a git URL, after a look at it."""
        with closing(self._sources()) as sources:
            found = described(location, base=base, sources=sources)
        with self._database.write() as connection:
            return self._record(connection, found)

    def projects(self) -> list[ProjectView]:
        with self._database.read() as connection:
            counts = projects.commit_counts(connection)
            return [
                ProjectView(project=project, commits=counts.get(project.project_id, 0))
                for project in projects.find(connection)
            ]

    def add_target(self, reference: str, branch: str | None, *, base: Path) -> TargetView:
        """Follow a branch of a project, its default branch unless said. A path, a URL or a project
        of the configured GitLab that is not known yet is taken in first."""
        project = self._project(reference, base=base)
        is_default = branch is None
        name = branch or project.default_branch or self._default_of(project)
        target = Target(project.project_id, name)
        with self._database.write() as connection:
            if targets.follow(connection, target, is_default=is_default):
                self._note(connection, "commits.target.add", f"{project.path} {name}")
        return next(
            view
            for view in self.targets()
            if (view.project_id, view.branch) == (target.project_id, target.branch)
        )

    def remove_target(self, reference: str, branch: str) -> None:
        """Follow a branch no longer. What was collected stays."""
        with self._database.write() as connection:
            project = named_project(connection, reference)
            if not targets.unfollow(connection, Target(project.project_id, branch)):
                raise NotFound(
                    f"{branch!r} of {project.path} is not a target",
                    hint="See: tsuzuki commits targets",
                    code="target_unknown",
                )
            self._note(connection, "commits.target.remove", f"{project.path} {branch}")

    def targets(self) -> list[TargetView]:
        with self._database.read() as connection:
            paths = {p.project_id: p.path for p in projects.find(connection)}
            return [
                TargetView(
                    project_id=state.target.project_id,
                    project=paths[state.target.project_id],
                    branch=state.target.branch,
                    last_collected=targets.checkpoint(connection, state.target),
                    head=state.head,
                    collected_at_utc=state.collected_at_utc,
                    under_way=state.wanted is not None,
                )
                for state in targets.find(connection)
            ]

    # --- collections ----------------------------------------------------------------------------

    def start(self, references: Sequence[str] = (), *, branch: str | None = None) -> Begun:
        """Begin a collection of all targets, or of some; or take over one that was left.

        Raises `Conflict` with the running one's id if somebody works on it.
        """
        self._define_job()
        with self._database.write() as connection:
            left = self._left_or_refused(connection)
            if left is not None:
                return self._taken_over(connection, left)
            wanted = chosen(connection, references, branch=branch)
            if not wanted:
                raise NotFound(
                    "there is nothing to collect",
                    hint="Follow a branch first: tsuzuki commits add-target PROJECT [BRANCH]",
                    code="no_targets",
                )
            return self._begin(connection, wanted)

    def retry(self, reference: str) -> Begun:
        """A new collection of what failed, or was left pending, in an earlier one."""
        self._define_job()
        with self._database.write() as connection:
            run_id = self._id_of(connection, reference)
            left = self._left_or_refused(connection)
            if left is not None:
                return self._taken_over(connection, left)
            wanted = ledger.targets_of(
                connection, run_id, [ResultStatus.FAILED, ResultStatus.PENDING]
            )
            if not wanted:
                raise Conflict(
                    f"every target of {run_id} succeeded",
                    hint="There is nothing to repeat.",
                    code="nothing_failed",
                )
            return self._begin(connection, wanted, retry_of=run_id)

    def cancel(self, reference: str | None = None) -> Summary:
        """Stop the running collection. Finished results are kept, the rest stays pending."""
        with self._database.write() as connection:
            self._settle_canceled(connection)
            running = ledger.running(connection)
            run_id = self._id_of(connection, reference) if reference else running
            if run_id is None or run_id != running:
                raise Conflict(
                    f"the collection {run_id} has ended already"
                    if run_id
                    else "no collection is running",
                    hint="See: tsuzuki commits runs",
                    code="not_running",
                )
            ledger.cancel(connection, run_id, now=self._database.now(connection))
            self._cancel_owner(connection, run_id)
            self._note(connection, "commits.cancel", run_id)
            (summary,) = ledger.summaries(connection, run_id=run_id)
            return summary

    def runs(self, *, limit: int = 20) -> list[Summary]:
        """Collections, the newest first."""
        self._look_after()
        with self._database.read() as connection:
            return ledger.summaries(connection, limit=limit)

    def show(self, reference: str) -> BulkView:
        self._look_after()
        with self._database.read() as connection:
            run_id = self._id_of(connection, reference)
            (summary,) = ledger.summaries(connection, run_id=run_id)
            owner = ledger.owner(connection, run_id)
            return BulkView(
                summary=summary,
                retry_of=owner.retry_of if owner else None,
                job_run_id=owner.job_run_id if owner else None,
                results=ledger.results(connection, run_id),
            )

    def progress(self, run_id: str) -> BulkProgress:
        with self._database.read() as connection:
            (summary,) = ledger.summaries(connection, run_id=run_id)
            owner = ledger.owner(connection, run_id)
            held = runs.get(connection, owner.job_run_id) if owner else None
            return BulkProgress(
                summary=summary,
                in_work=ledger.in_work(connection, run_id),
                new_commits=ledger.new_commits(connection, run_id),
                job_run_state=held.state if held else None,
                error=held.error if held else None,
                will_be_repeated=held is not None
                and self._live_successor(connection, held.id) is not None,
            )

    # --- what it brought ------------------------------------------------------------------------

    def statistics(
        self,
        by: Sequence[Dimension],
        *,
        references: Sequence[str] = (),
        since_month: str | None = None,
        until_month: str | None = None,
    ) -> list[dict[str, Any]]:
        with self._database.read() as connection:
            return statistics.totals(
                connection,
                by,
                project_ids=self._ids(connection, references),
                since_month=since_month,
                until_month=until_month,
            )

    def export(
        self, *, references: Sequence[str] = (), branch: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Every stored commit, a piece at a time."""
        with self._database.read() as connection:
            ids = self._ids(connection, references)
            yield from statistics.export(connection, project_ids=ids, branch=branch)

    # --- inside ---------------------------------------------------------------------------------

    def _begin(
        self, connection: Connection, wanted: Sequence[Target], *, retry_of: str | None = None
    ) -> Begun:
        run_id = ledger.new_id()
        now = self._database.now(connection)
        opened = ledger.open_run(
            connection, run_id, wanted, job_run_id=0, now=now, retry_of=retry_of
        )
        if opened is None:
            raise already_running(ledger.running(connection))
        job_run_id = self._submit(connection, run_id)
        return Begun(run_id=run_id, job_run_id=job_run_id, total_targets=len(wanted))

    def _submit(self, connection: Connection, run_id: str) -> int:
        request = Request(job=JOB, arguments={"run_id": run_id}, priority=PRIORITY_MAX)
        submission = self._runs.submit(request, connection=connection)
        ledger.give(connection, run_id, job_run_id=submission.run_id)
        return submission.run_id

    def _left_or_refused(self, connection: Connection) -> str | None:
        """A running collection that nobody works on any more. Raises `Conflict` if somebody does."""
        self._settle_canceled(connection)
        running = ledger.running(connection)
        if running is None:
            return None
        owner = ledger.owner(connection, running)
        held = runs.get(connection, owner.job_run_id) if owner else None
        if held is not None and self.attendance.is_attended(
            connection, held, pending_seconds=PENDING_SECONDS
        ):
            raise already_running(running)
        return running

    def _taken_over(self, connection: Connection, run_id: str) -> Begun:
        """Give a collection that was left to a new run, or to the retry that waits for it."""
        owner = ledger.owner(connection, run_id)
        waiting = self._live_successor(connection, owner.job_run_id) if owner else None
        if waiting is None:
            self._cancel_owner(connection, run_id)
            waiting = self._submit(connection, run_id)
        ledger.give(connection, run_id, job_run_id=waiting)
        (summary,) = ledger.summaries(connection, run_id=run_id)
        return Begun(
            run_id=run_id,
            job_run_id=waiting,
            total_targets=summary.total_targets,
            is_takeover=True,
        )

    def _live_successor(self, connection: Connection, job_run_id: int) -> int | None:
        """The run itself if it still waits, or the one that repeats it and has not ended."""
        run = runs.get(connection, job_run_id)
        while run is not None and run.state.is_final:
            run = runs.get_by_key(connection, f"retry:{run.id}")
        waits = run is not None and run.state in (RunState.PENDING, RunState.ORPHANED)
        return run.id if run is not None and waits else None

    def _cancel_owner(self, connection: Connection, run_id: str) -> None:
        owner = ledger.owner(connection, run_id)
        held = runs.get(connection, owner.job_run_id) if owner else None
        if held is not None and not held.state.is_final:
            ref = RunRef(id=held.id, version=held.version)
            moves.cancel(connection, operator=self._actor, runs=[ref])
            notices.notify(connection, notices.Audience.WORKERS)

    def _look_after(self) -> None:
        """A collection whose run was cancelled with `tsuzuki run cancel` is cancelled too."""
        with self._database.read() as connection:
            running = ledger.running(connection)
            if running is None or not self._is_canceled(connection, running):
                return
        with self._database.write() as connection:
            self._settle_canceled(connection)

    def _settle_canceled(self, connection: Connection) -> None:
        running = ledger.running(connection)
        if running is not None and self._is_canceled(connection, running):
            ledger.cancel(connection, running, now=self._database.now(connection))

    def _is_canceled(self, connection: Connection, run_id: str) -> bool:
        owner = ledger.owner(connection, run_id)
        held = runs.get(connection, owner.job_run_id) if owner else None
        return held is not None and held.state is RunState.CANCELED

    def _define_job(self) -> None:
        with self._database.read() as connection:
            found = jobs.get_by_name(connection, JOB)
        if found is None:
            self._jobs.define(JOB, JOB_BODY)
        elif not found.spec.enabled:
            raise Conflict(
                f"the job {JOB!r} is switched off",
                hint=f"Switch it on with: tsuzuki job enable {JOB}",
                code="job_disabled",
            )

    def _record(self, connection: Connection, found: NewProject) -> ProjectChange:
        change = projects.record(connection, found, now=self._database.now(connection))
        moved, default = change.default_moved_from, found.default_branch
        if moved is not None and default is not None:
            self._move_default(connection, change.project.project_id, moved, default)
        if change.is_new:
            self._note(connection, "commits.project.add", change.project.path)
        return change

    def _move_default(self, connection: Connection, project_id: int, old: str, new: str) -> None:
        """Who follows a project's default branch follows where it moved, and the old one too."""
        state = targets.get(connection, Target(project_id, old))
        if state is not None and state.is_followed and state.is_default:
            targets.follow(connection, Target(project_id, new), is_default=True)
            targets.follow(connection, Target(project_id, old))

    def _project(self, reference: str, *, base: Path) -> Project:
        with self._database.read() as connection:
            if projects.named(connection, reference):
                return named_project(connection, reference)
        with closing(self._sources()) as sources:
            found = described(reference, base=base, sources=sources, or_remote=True)
        with self._database.write() as connection:
            return self._record(connection, found).project

    def _default_of(self, project: Project) -> str:
        with closing(self._sources()) as sources, closing(sources.open(project)) as source:
            default = source.default_branch()
        if default is None:
            raise UsageError(
                f"{project.path} has no default branch yet", hint="Say which branch to follow."
            )
        return default

    def _ids(self, connection: Connection, references: Sequence[str]) -> list[int] | None:
        if not references:
            return None
        return [named_project(connection, text).project_id for text in references]

    def _id_of(self, connection: Connection, reference: str) -> str:
        found = ledger.ids_beginning(connection, reference)
        if len(found) == 1:
            return found[0]
        raise NotFound(
            f"there is no collection {reference!r}"
            if not found
            else f"more than one collection begins with {reference!r}",
            hint="See: tsuzuki commits runs",
            code="collection_unknown",
        )

    def _sources(self) -> Sources:
        return Sources(
            section=cast("CommitsSection", self._section()),
            workspace=self._workspace,
            clock=self._database.clock,
        )

    def _note(self, connection: Connection, action: str, name: str) -> None:
        audit.record(
            connection,
            actor=self._actor,
            action=action,
            object_type="commits",
            object_id=name,
        )


def already_running(run_id: str | None) -> Conflict:
    return Conflict(
        f"a collection is running already: {run_id}",
        hint="Watch it with: tsuzuki commits watch; stop it with: tsuzuki commits cancel",
        code="already_running",
    )
