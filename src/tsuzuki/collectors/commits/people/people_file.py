"""The file of people: who has which addresses and names, which teams there are, which authors are bots.

    people:
      Ann Abe: [ann@example.org, ann@old.example.org, A. Abe]
    teams:
      Platform: [Ann Abe]
    bots:
      include: ["ci-*@example.org"]
      exclude: [robot@example.org]

Of a person, what has an @ is an address, anything else a name. Every mistake in the file is told at its
place, all of them together.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tsuzuki.collectors.commits.people.bots import BotRule
from tsuzuki.collectors.commits.people.identity import NO_TEAM, Directory, folded
from tsuzuki.config.schema.problems import ConfigProblem, invalid
from tsuzuki.config.schema.validation import unknown_key, wrong_value
from tsuzuki.config.yaml.document import YamlDocument, parse_document
from tsuzuki.config.yaml.nodes import KeyPath
from tsuzuki.config.yaml.source import decode_source, read_bytes
from tsuzuki.model.errors import ConfigurationError, FilePlace
from tsuzuki.model.suggestion import did_you_mean

KEYS = ("people", "teams", "bots")
BOT_KEYS = ("include", "exclude")


def read_people(path: Path) -> Directory:
    """Raises `ConfigurationError`, or `FileUnusable`."""
    if not path.exists():
        raise ConfigurationError(
            f"the people file {path} does not exist",
            hint="Create it, or remove `people` under `commits:`.",
            place=FilePlace(file=str(path)),
            code="people_file",
        )
    return directory_of(parse_document(decode_source(read_bytes(path), file=str(path))))


def directory_of(document: YamlDocument) -> Directory:
    """Raises `InvalidFile` with all problems of the file."""
    return _Reader(document).read()


class _Reader:
    """One pass over a document; collects problems as it goes."""

    def __init__(self, document: YamlDocument) -> None:
        self._document = document
        self._problems: list[ConfigProblem] = []

    def read(self) -> Directory:
        data = {} if self._document.data is None else self._document.data
        if not isinstance(data, dict):
            message = f"the file must be a mapping with the keys {', '.join(KEYS)}"
            raise invalid([ConfigProblem(path=(), message=message)], self._document)
        self._refuse_unknown(data, (), KEYS)
        people = dict(self._lists(data, "people", "a mapping of people to addresses and names"))
        owners = self._owners(people)
        teams = dict(self._lists(data, "teams", "a mapping of teams to people"))
        self._check_members(teams, people)
        bots = self._bots(data)
        if self._problems:
            raise invalid(self._problems, self._document)
        return Directory(
            emails={
                name: tuple(folded(text) for text in texts if "@" in text)
                for name, texts in people.items()
            },
            by_address={text: person for text, person in owners.items() if "@" in text},
            by_name={text: person for text, person in owners.items() if "@" not in text},
            teams={team: tuple(members) for team, members in teams.items()},
            bots=bots,
        )

    def _lists(
        self, data: Mapping[str, Any], key: str, expected: str
    ) -> Iterator[tuple[str, list[str]]]:
        """The lists of texts under a key, by their names."""
        body = data.get(key)
        if body is None:
            return
        if not isinstance(body, dict):
            self._problems.append(wrong_value((key,), (key,), expected, body))
            return
        for name, value in body.items():
            yield name, self._texts(value, (key, name))

    def _texts(self, value: Any, path: KeyPath) -> list[str]:
        """A list of texts; a single text stands for a list of one."""
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not values:
            self._problems.append(wrong_value(path, path, "a list of strings", value))
            return []
        texts: list[str] = []
        for index, one in enumerate(values):
            if isinstance(one, str) and one.strip():
                texts.append(one.strip())
            else:
                at = (*path, index)
                self._problems.append(wrong_value(at, at, "text", one))
        return texts

    def _owners(self, people: Mapping[str, list[str]]) -> dict[str, str]:
        """Whose each address and name is. One that two people have is a problem."""
        owners: dict[str, str] = {}
        for person, texts in people.items():
            for index, text in enumerate(texts):
                other = owners.setdefault(folded(text), person)
                if other != person:
                    self._problems.append(
                        ConfigProblem(
                            path=("people", person, index),
                            message=f"`{text}` already belongs to {other}",
                            hint=f"Keep it with either {other} or {person}.",
                            code="person_twice",
                        )
                    )
        return owners

    def _check_members(self, teams: Mapping[str, list[str]], people: Mapping[str, Any]) -> None:
        for team, members in teams.items():
            if team == NO_TEAM:
                problem = "is reserved for people without a team"
                self._problems.append(
                    ConfigProblem(path=("teams", team), message=f"`{team}` {problem}", at_key=True)
                )
            for index, member in enumerate(members):
                if member not in people:
                    guess = did_you_mean(member, people)
                    self._problems.append(
                        ConfigProblem(
                            path=("teams", team, index),
                            message=f"`{member}` of team {team} is missing under `people`",
                            hint=f"{guess}Add the person under `people`, with an address or a name.",
                            code="person_unknown",
                        )
                    )

    def _bots(self, data: Mapping[str, Any]) -> BotRule:
        body = data.get("bots")
        if body is None:
            return BotRule()
        if not isinstance(body, dict):
            expected = f"a mapping with the keys {', '.join(BOT_KEYS)}"
            self._problems.append(wrong_value(("bots",), ("bots",), expected, body))
            return BotRule()
        self._refuse_unknown(body, ("bots",), BOT_KEYS)
        known = {key: body[key] for key in BOT_KEYS if key in body}
        return BotRule(**{key: self._texts(known[key], ("bots", key)) for key in known})

    def _refuse_unknown(
        self, body: Mapping[str, Any], path: KeyPath, known: tuple[str, ...]
    ) -> None:
        for key in body:
            if key not in known:
                at = (*path, key)
                self._problems.append(unknown_key(at, at, known))
