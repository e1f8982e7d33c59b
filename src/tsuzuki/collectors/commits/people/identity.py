"""From an author as written in a commit to a person.

The file of people is asked first, with what the commit says; then the mailmap of the project; then the file
of people again, with what the mailmap made of it. An author that neither knows is known by the address, without
case.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tsuzuki.collectors.commits.people.bots import BotRule, is_known_bot
from tsuzuki.collectors.commits.people.mailmap import Mailmap

NO_TEAM = "(no team)"
"""Stands for the team of people who are in none."""


class Person(NamedTuple):
    """Who wrote a commit. Two authors with the same `key` are one person."""

    key: str
    email: str
    """Compared without case, so in lower case; empty for a person of whom the file knows names only."""
    name: str | None
    """As the file of people or the mailmap has it; None if the name used most is to be shown."""
    is_bot: bool
    teams: tuple[str, ...]
    """At least one: `NO_TEAM` if the person is in none."""


def folded(text: str) -> str:
    """An address, or a name, as it is compared."""
    return text.strip().lower()


@dataclass(frozen=True, kw_only=True)
class Directory:
    """What the file of people says. Addresses and names are folded, and each is of one person."""

    emails: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The addresses of each person, in the order of the file."""
    by_address: Mapping[str, str] = field(default_factory=dict)
    by_name: Mapping[str, str] = field(default_factory=dict)
    teams: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The members of each team."""
    bots: BotRule = field(default_factory=BotRule)

    def find(self, name: str, email: str) -> str | None:
        """The person that an author is; an address says more than a name."""
        return self.by_address.get(folded(email)) or self.by_name.get(folded(name))

    def teams_of(self, person: str) -> tuple[str, ...]:
        found = tuple(team for team, members in self.teams.items() if person in members)
        return found or (NO_TEAM,)


class People:
    """The people behind the authors of every project."""

    def __init__(
        self,
        directory: Directory | None = None,
        mailmaps: Mapping[int, Mailmap] | None = None,
        *,
        is_joined: bool = True,
    ) -> None:
        """Not `is_joined`: each name and address as written is a person, in the teams of the one behind it."""
        self._directory = directory or Directory()
        self._mailmaps = mailmaps or {}
        self._is_joined = is_joined

    @property
    def team_names(self) -> list[str]:
        return list(self._directory.teams)

    def person_of(self, project_id: int, name: str, email: str) -> Person:
        person = self._joined(project_id, name, email)
        if self._is_joined:
            return person
        return person._replace(key=f"{name} <{email}>", email=email, name=name)

    def _joined(self, project_id: int, name: str, email: str) -> Person:
        directory = self._directory
        mailmap = self._mailmaps.get(project_id)
        mapped = mailmap.lookup(name, email) if mailmap else None
        new_name = (mapped and mapped.name) or name
        new_email = (mapped and mapped.email) or email
        found = directory.find(name, email) or directory.find(new_name, new_email)
        authors = ((name, email), (new_name, new_email))
        is_bot = self._is_bot(authors, is_person=found is not None)
        if found is not None:
            email = next(iter(directory.emails[found]), "")
            return Person(email or found, email, found, is_bot, directory.teams_of(found))
        email = folded(new_email)
        return Person(email, email, mapped.name if mapped else None, is_bot, (NO_TEAM,))

    def _is_bot(self, authors: tuple[tuple[str, str], ...], *, is_person: bool) -> bool:
        rule = self._directory.bots
        if any(rule.is_excluded(*author) for author in authors):
            return False
        if any(rule.is_included(*author) for author in authors):
            return True
        return not is_person and any(is_known_bot(*author) for author in authors)
