"""Which commits a person means, and the same in the words of the database."""

from dataclasses import dataclass
from datetime import date

from tsuzuki.collectors.commits.collect import named_project
from tsuzuki.collectors.commits.queries import statistics
from tsuzuki.collectors.commits.queries.commit_filter import CommitFilter
from tsuzuki.model.errors import NotFound, UsageError
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.store.sql.database import Connection


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Projects by any reference, authors by address or name. Nothing said is everything; both days are
    days of UTC, and both are included."""

    projects: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    since: date | None = None
    until: date | None = None

    def __post_init__(self) -> None:
        if self.since and self.until and self.until < self.since:
            raise UsageError(
                f"the last day, {self.until}, is before the first day, {self.since}",
                code="days_reversed",
                hint=f"Write --since {self.until} --until {self.since}, or leave one of them out.",
            )


EVERYTHING = Selection()


def filter_of(connection: Connection, selection: Selection) -> CommitFilter:
    """Raises `NotFound` for a project or an author that is not known."""
    projects = [named_project(connection, text).project_id for text in selection.projects]
    return CommitFilter(
        project_ids=projects or None,
        branches=selection.branches or None,
        emails=_emails(connection, selection.authors) if selection.authors else None,
        since=selection.since,
        until=selection.until,
    )


def _emails(connection: Connection, wanted: tuple[str, ...]) -> list[str]:
    """Every spelling of the addresses that are meant. A name stands for each address it was used with."""
    known = statistics.authors(connection)
    folded: set[str] = set()
    for text in wanted:
        word = text.strip().lower()
        found = {email.lower() for email, name in known if word in (email.lower(), name.lower())}
        if not found:
            # Names only: an address is not shown to a person who did not type it.
            guess = did_you_mean(text, {name for _, name in known})
            raise NotFound(
                f"no commit of an author {text!r} is stored",
                code="author_unknown",
                hint=f"{guess}See them with: tsuzuki commits stats --by author",
            )
        folded |= found
    return sorted({email for email, _ in known if email.lower() in folded})
