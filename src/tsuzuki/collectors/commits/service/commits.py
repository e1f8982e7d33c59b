"""Commits: the projects they come from, and the branches that are followed."""

from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from tsuzuki.collectors.commits.options import CommitsSection
from tsuzuki.collectors.commits.queries import projects, targets
from tsuzuki.collectors.commits.queries.named_projects import named_project, named_projects
from tsuzuki.collectors.commits.queries.projects import NewProject, Project, ProjectChange
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.service.audit import record_change
from tsuzuki.collectors.commits.service.former_projects import FormerProjects
from tsuzuki.collectors.commits.service.remote_heads import RemoteHead, remote_heads
from tsuzuki.collectors.commits.service.target_additions import (
    BranchSelection,
    TargetAddition,
    TargetAdditions,
    Tell,
    tell_nothing,
)
from tsuzuki.collectors.commits.sources.factory import (
    SourceFactory,
    described,
    is_path,
    is_url,
    same_repository,
)
from tsuzuki.collectors.commits.sources.source import Absence, CommitSource
from tsuzuki.model.errors import NotFound, UsageError
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.store.sql.database import Connection
from tsuzuki.wiring.collector import ServiceContext

__all__ = ["Commits", "ProjectChange", "ProjectView", "TargetView"]

BRANCHES_COMPARED = 1000
"""How many names are looked through for one that may have been meant."""


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
    why_default: str | None = None
    """How the default branch was found, once it was chosen."""


class Commits:
    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._database = context.database

    # --- projects and targets -------------------------------------------------------------------

    def sync_projects(self) -> list[ProjectChange]:
        """Learn of every project the configured GitLab shows us. Nothing is ever taken away."""
        with closing(self._sources()) as sources:
            found = list(sources.gitlab().projects())
            former = FormerProjects(self._database, sources)
            continued = [former.of(one) for one in found]
        with self._database.write() as connection:
            return [
                self._record(connection, one, continues=number)
                for one, number in zip(found, continued, strict=True)
            ]

    def add_repository(self, location: str, *, base: Path) -> ProjectChange:
        """Take in a repository of this machine or a git URL, after a look at it."""
        with closing(self._sources()) as sources:
            found = described(location, base=base, sources=sources)
            known = self._same_repository(found)
            if known is not None:
                found = replace(known, default_branch=found.default_branch)
            number = FormerProjects(self._database, sources).of(found)
        with self._database.write() as connection:
            return self._record(connection, found, continues=number)

    def projects(self) -> list[ProjectView]:
        with self._database.read() as connection:
            counts = projects.commit_counts(connection)
            return [
                ProjectView(project=project, commits=counts.get(project.project_id, 0))
                for project in projects.find(connection)
            ]

    def add_target(self, reference: str, branch: str | None, *, base: Path | None) -> TargetView:
        """Follow a branch of a project, its default branch unless said. A path below `base`, a URL or a project
        of the configured GitLab that is not known yet is taken in first; without `base` neither a path nor a URL."""
        project = self._project(reference, base=base)
        name, why_default = self._branch_of(project, branch)
        target = Target(project.project_id, name)
        with self._database.write() as connection:
            if targets.follow(connection, target, is_default=branch is None):
                record_change(
                    connection, self._context, "commits.target.add", f"{project.path} {name}"
                )
        view = next(
            view
            for view in self.targets()
            if (view.project_id, view.branch) == (target.project_id, target.branch)
        )
        return replace(view, why_default=why_default)

    def add_targets(
        self,
        reference: str | None,
        patterns: tuple[str, ...],
        *,
        base: Path | None,
        dry_run: bool = False,
        tell: Tell = tell_nothing,
    ) -> list[TargetAddition]:
        """Follow the branches of a project, or of every known one, that match a pattern; without
        patterns the default branch of each. `base` as in `add_target`."""
        selection = BranchSelection(patterns=patterns)
        with closing(self._sources()) as sources:
            additions = TargetAdditions(
                self._context, sources, selection, dry_run=dry_run, tell=tell
            )
            if reference is not None:
                find = self._found if dry_run else self._project
                return additions.of_one(find(reference, base=base))
            with self._database.read() as connection:
                found = projects.find(connection)
            if not found:
                raise NotFound(
                    "no projects yet",
                    hint="Sync GitLab projects with: tsuzuki commits projects sync",
                    code="no_projects",
                )
            return additions.of_all(found)

    def preview_target(
        self, reference: str, branch: str | None, *, base: Path
    ) -> list[TargetAddition]:
        """What `add_target` would do."""
        project = self._found(reference, base=base)
        name, _why_default = self._branch_of(project, branch)
        with closing(self._sources()) as sources:
            additions = TargetAdditions(self._context, sources, BranchSelection(), dry_run=True)
            return additions.follow(project, [name])

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
            record_change(
                connection, self._context, "commits.target.remove", f"{project.path} {branch}"
            )

    def targets(
        self,
        *,
        words: str | None = None,
        after: tuple[int, str] | None = None,
        limit: int | None = None,
    ) -> list[TargetView]:
        """The branches that are followed, by project and name. `words` must stand in the path of the project or
        the name of the branch; `after` is the target to continue after."""
        with self._database.read() as connection:
            paths = {p.project_id: p.path for p in projects.find(connection)}
            found = [
                state
                for state in targets.find(connection)
                if _has_words(words, paths[state.target.project_id], state.target.branch)
                and (after is None or (state.target.project_id, state.target.branch) > after)
            ]
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
                for state in sorted(found, key=lambda state: state.target)[:limit]
            ]

    def count_targets(self, words: str | None = None) -> int:
        """How many branches are followed."""
        with self._database.read() as connection:
            paths = {p.project_id: p.path for p in projects.find(connection)}
            return sum(
                _has_words(words, paths[state.target.project_id], state.target.branch)
                for state in targets.find(connection)
            )

    def count_targets_by_project(self) -> Counter[int]:
        """How many branches of each project are followed."""
        with self._database.read() as connection:
            return Counter(state.target.project_id for state in targets.find(connection))

    def select_targets(
        self, references: Sequence[str], *, branch: str | None
    ) -> set[tuple[int, str]]:
        """The targets that are followed, by project and branch: of these projects, of all if none is named, and of
        one branch if it is said."""
        with self._database.read() as connection:
            wanted = {
                project.project_id
                for text in references
                for project in named_projects(connection, text)
            }
            return {
                (target.project_id, target.branch)
                for target in (state.target for state in targets.find(connection))
                if (not references or target.project_id in wanted)
                and branch in (None, target.branch)
            }

    def remote_heads(
        self, *, asked_max: int, only: Collection[tuple[int, str]] | None = None
    ) -> list[RemoteHead]:
        """Every target, or those of `only` by project and branch, with its stored head and where its source is
        now; the sources of the first `asked_max` are asked."""
        with self._database.read() as connection:
            states = [
                state
                for state in targets.find(connection)
                if only is None or (state.target.project_id, state.target.branch) in only
            ]
            known = {project.project_id: project for project in projects.find(connection)}
        return remote_heads(states, known, sources=self._sources, asked_max=asked_max)

    # --- inside ---------------------------------------------------------------------------------

    def _record(
        self, connection: Connection, found: NewProject, *, continues: int | None = None
    ) -> ProjectChange:
        if continues is not None:
            projects.locate(connection, continues, found)
        change = projects.record(connection, found, now=self._database.now(connection))
        moved, default = change.default_moved_from, found.default_branch
        if moved is not None and default is not None:
            self._move_default(connection, change.project.project_id, moved, default)
        self._record_changes(connection, change)
        return change

    def _record_changes(self, connection: Connection, change: ProjectChange) -> None:
        project, context = change.project, self._context
        if change.is_new:
            record_change(connection, context, "commits.project.add", project.path)
        if (old := change.renamed_from) is not None:
            action = "commits.project.rename"
            record_change(connection, context, action, project.path, before=old, after=project.path)
        if (old := change.default_moved_from) is not None:
            action, default = "commits.project.default_branch", project.default_branch
            record_change(connection, context, action, project.path, before=old, after=default)

    def _move_default(self, connection: Connection, project_id: int, old: str, new: str) -> None:
        """A followed default branch is followed to where it moved; the old one stays followed."""
        state = targets.get(connection, Target(project_id, old))
        if state is not None and state.is_followed and state.is_default:
            targets.follow(connection, Target(project_id, new), is_default=True)
            targets.follow(connection, Target(project_id, old))

    def _project(self, reference: str, *, base: Path | None) -> Project:
        """The project that is meant; it is stored if it is new."""
        found = self._found(reference, base=base)
        if isinstance(found, Project):
            return found
        with closing(self._sources()) as sources:
            number = FormerProjects(self._database, sources).of(found)
        with self._database.write() as connection:
            return self._record(connection, found, continues=number).project

    def _found(self, reference: str, *, base: Path | None) -> NewProject:
        """The project that is meant, stored or not."""
        with self._database.read() as connection:
            if projects.named(connection, reference):
                return named_project(connection, reference)
        with closing(self._sources()) as sources:
            if base is not None:
                found = described(reference, base=base, sources=sources, or_remote=True)
                return self._same_repository(found) or found
            if sources.has_gitlab and not is_url(reference) and not is_path(reference):
                return sources.gitlab().project(reference)
        raise NotFound(
            f"unknown project {reference!r}",
            hint="Add a folder or git URL with: tsuzuki commits projects add",
            code="project_unknown",
        )

    def _same_repository(self, found: NewProject) -> Project | None:
        with self._database.read() as connection:
            known = projects.find(connection)
        return same_repository(found, known)

    def _branch_of(self, project: NewProject, branch: str | None) -> tuple[str, str | None]:
        """The branch that is asked for, after a look whether it is there; else the default branch,
        with how it is known."""
        with closing(self._sources()) as sources, closing(sources.open_new(project)) as source:
            if branch is not None:
                _require_branch(source, project, branch)
                return branch, None
            default = source.default_branch()
            if default is None:
                raise UsageError(
                    f"{project.path} has no default branch yet", hint="Name the branch to follow."
                )
            return default, source.why_default()

    def _sources(self) -> SourceFactory:
        return SourceFactory(
            section=self._context.section(CommitsSection),
            workspace=self._context.workspace,
            clock=self._database.clock,
        )


def _has_words(words: str | None, *texts: str) -> bool:
    return words is None or any(words.casefold() in text.casefold() for text in texts)


def _require_branch(source: CommitSource, project: NewProject, branch: str) -> None:
    """Refuse a branch that is not there; a repository without commits may get it later."""
    if source.head(branch) is not Absence.NO_BRANCH:
        return
    known = list(islice(source.branches(), BRANCHES_COMPARED))
    default = source.default_branch()
    raise NotFound(
        f"{project.path} has no branch {branch!r}",
        hint=did_you_mean(branch, known)
        + (
            f"Its default branch is {default!r}."
            if default
            else "List the branches with: git branch --list"
        ),
        code="branch_unknown",
    )
