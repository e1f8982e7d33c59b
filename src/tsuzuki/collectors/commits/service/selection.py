"""Which commits a person means, and the same in the words of the database."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum

from tsuzuki.collectors.commits.path_patterns import DEFAULT_PATTERNS, matcher
from tsuzuki.collectors.commits.people.identity import People, Person, folded
from tsuzuki.collectors.commits.queries.commit_filter import CommitFilter
from tsuzuki.collectors.commits.queries.named_projects import named_project
from tsuzuki.collectors.commits.queries.statistics import Author, Merges
from tsuzuki.collectors.commits.service.report import CommitRules, Reporter
from tsuzuki.model.errors import NotFound, UsageError
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.store.sql.database import Connection

__all__ = ["EVERYTHING", "CommitSelection", "Identities", "Merges", "filter_of", "rules_of"]


class Identities(StrEnum):
    """Who counts as one author."""

    JOINED = "joined"
    """A person, as the file of people and the mailmaps say."""

    WRITTEN = "written"
    """Each name and address as they are written in the commits."""


@dataclass(frozen=True, kw_only=True)
class CommitSelection:
    """Projects by any reference, authors by address or name, teams by name. Nothing said is everything, but
    for merges and bots; both days are days of UTC, and both are included."""

    projects: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    since: date | None = None
    until: date | None = None
    merges: Merges = Merges.EXCLUDE
    bots: bool = False
    """Whether the commits of bots count."""
    exclude_paths: tuple[str, ...] = ()
    generated: bool = True
    """Whether changes of lock files, vendored and generated code count."""
    identities: Identities = Identities.JOINED

    def __post_init__(self) -> None:
        if self.since and self.until and self.until < self.since:
            raise UsageError(
                f"the last day {self.until} is before the first day {self.since}",
                code="days_reversed",
                hint=f"Swap them: --since {self.until} --until {self.since}",
            )

    @property
    def path_patterns(self) -> tuple[str, ...]:
        return (*self.exclude_paths, *(() if self.generated else DEFAULT_PATTERNS))


EVERYTHING = CommitSelection()


def filter_of(
    connection: Connection, selection: CommitSelection, reporter: Reporter
) -> CommitFilter:
    """Raises `NotFound` for a project that is not known."""
    projects = [named_project(connection, text).project_id for text in selection.projects]
    found = CommitFilter(
        project_ids=projects or None,
        branches=selection.branches or None,
        since=selection.since,
        until=selection.until,
    )
    patterns = selection.path_patterns
    if not patterns:
        return found
    return replace(found, excluded_path_ids=reporter.excluded_paths(matcher(patterns)))


def rules_of(selection: CommitSelection, reporter: Reporter, people: People) -> CommitRules:
    """Raises `NotFound` for an author or a team that is not known."""
    teams = _known_teams(selection.teams, people.team_names)
    keys = _keys(selection.authors, reporter) if selection.authors else None
    return CommitRules(
        merges=selection.merges,
        with_bots=selection.bots,
        is_asked=None if keys is None and not teams else _asked(keys, teams),
    )


def _asked(
    keys: Collection[str] | None, teams: Collection[str]
) -> Callable[[Author, Person], bool]:
    def is_asked(_author: Author, person: Person) -> bool:
        return (keys is None or person.key in keys) and (
            not teams or not {*teams}.isdisjoint(person.teams)
        )

    return is_asked


def _known_teams(wanted: tuple[str, ...], known: list[str]) -> tuple[str, ...]:
    for team in wanted:
        if team not in known:
            guess = did_you_mean(team, known)
            raise NotFound(
                f"there is no team {team!r}",
                code="team_unknown",
                hint=f"{guess}Define teams in the file named by `people` under `commits:`.",
            )
    return wanted


def _keys(wanted: tuple[str, ...], reporter: Reporter) -> set[str]:
    """The people that are meant. A name stands for everyone who used it."""
    keys: set[str] = set()
    for text in wanted:
        word = folded(text)
        found = {
            person.key
            for author_id, person in reporter.persons.items()
            if word in _words(reporter.authors[author_id], person)
        }
        if not found:
            # Names only: an address is not shown to a person who did not type it.
            known = {author.author_name for author in reporter.authors.values()}
            guess = did_you_mean(text, known | {p.name or "" for p in reporter.persons.values()})
            raise NotFound(
                f"no stored commit has the author {text!r}",
                code="author_unknown",
                hint=f"{guess}List authors with: tsuzuki commits stats --by author --bots",
            )
        keys |= found
    return keys


def _words(author: Author, person: Person) -> set[str]:
    """What an author may be called: as written, and as the person is known."""
    used = (author.author_email, author.author_name, person.email, person.name or "")
    return {folded(word) for word in used if word}
