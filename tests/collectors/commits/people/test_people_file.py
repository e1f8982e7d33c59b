"""The file of people: read as written, and every mistake told at its place."""

from pathlib import Path

import pytest

from tsuzuki.collectors.commits.people.identity import NO_TEAM, People
from tsuzuki.collectors.commits.people.mailmap import Mailmap
from tsuzuki.collectors.commits.people.people_file import directory_of, read_people
from tsuzuki.config import InvalidFile
from tsuzuki.config.yaml.document import parse_document
from tsuzuki.config.yaml.source import YamlSource
from tsuzuki.model.errors import ConfigurationError

FILE = """\
people:
  Ann Abe: [Ann@Example.org, ann@old.example.org, A. Abe]
  Bob: bob@example.org
  Cat: [Catherine]
teams:
  Platform: [Ann Abe, Bob]
  Web: [Ann Abe]
bots:
  include: ["ci-*@example.org", "* (robot)"]
  exclude: ["renovate*"]
"""


def people(text: str = FILE, mailmap: str = "") -> People:
    directory = directory_of(parse_document(YamlSource(file="people.yaml", text=text)))
    return People(directory, {1: Mailmap(mailmap)} if mailmap else {})


def test_addresses_and_names_are_joined_without_case() -> None:
    known = people()
    same = [
        known.person_of(1, "ann", "ANN@example.ORG"),
        known.person_of(2, "x", "ann@old.example.org"),
        known.person_of(1, "a. abe", "unknown@example.org"),
    ]
    assert {person.key for person in same} == {"ann@example.org"}
    assert {person.name for person in same} == {"Ann Abe"}
    assert known.person_of(1, "Catherine", "c@x")[:3] == ("Cat", "", "Cat")
    assert known.person_of(1, "Dan", "Dan@X")[:3] == ("dan@x", "dan@x", None)


def test_as_written_each_name_and_address_is_an_author_in_the_teams_of_the_person() -> None:
    directory = directory_of(parse_document(YamlSource(file="people.yaml", text=FILE)))
    known = People(directory, is_joined=False)
    found = [
        known.person_of(1, "ann", "ANN@example.ORG"),
        known.person_of(2, "x", "ann@old.example.org"),
    ]
    assert [person.key for person in found] == ["ann <ANN@example.ORG>", "x <ann@old.example.org>"]
    assert {person.teams for person in found} == {("Platform", "Web")}


def test_teams_of_a_person_are_all_teams() -> None:
    known = people()
    assert known.person_of(1, "", "ann@example.org").teams == ("Platform", "Web")
    assert known.person_of(1, "Catherine", "c@x").teams == (NO_TEAM,)
    assert known.person_of(1, "Dan", "dan@x").teams == (NO_TEAM,)


def test_the_file_wins_over_the_mailmap_which_leads_to_it() -> None:
    known = people(mailmap="Robert <robert@z> <bob@example.org>\nBob B <bob@example.org> <b@old>\n")
    assert known.person_of(1, "x", "bob@example.org").name == "Bob"
    assert known.person_of(1, "x", "B@OLD").name == "Bob"
    assert known.person_of(2, "x", "b@old")[:3] == ("b@old", "b@old", None)
    plain = People(None, {1: Mailmap("Robert <robert@Z> <b@old>")})
    assert plain.person_of(1, "x", "b@old")[:3] == ("robert@z", "robert@z", "Robert")


def test_bots_of_the_file_are_added_and_exceptions_hold() -> None:
    known = people()
    assert known.person_of(1, "CI", "CI-7@example.org").is_bot
    assert known.person_of(1, "Deploy (Robot)", "d@x").is_bot
    assert not known.person_of(1, "renovate[bot]", "r@x").is_bot
    assert known.person_of(1, "dependabot[bot]", "d@x").is_bot
    assert not known.person_of(1, "dependabot", "bob@example.org").is_bot


@pytest.mark.parametrize(
    ("text", "line", "column", "code", "said"),
    [
        ("peple: {}\n", 1, 1, "unknown_key", 'Did you mean "people"?'),
        ("people:\n  Ann: 3\n", 2, 8, "configuration", ""),
        ("people:\n  Ann: []\n", 2, 8, "configuration", ""),
        ("people:\n  Ann: [a@x, '']\n", 2, 14, "configuration", ""),
        ("people:\n  Ann: [a@x]\n  Bob: [b@x, A@X]\n", 3, 14, "person_twice", "either Ann or Bob"),
        (
            "people:\n  Ann Abe: [a@x]\nteams:\n  T: [Ann Abi]\n",
            4,
            7,
            "person_unknown",
            'Did you mean "Ann Abe"?',
        ),
        ("teams:\n  (no team): [x]\n", 2, 3, "configuration", ""),
        ("bots: [a]\n", 1, 7, "configuration", ""),
        ("bots:\n  exclud: [a]\n", 2, 3, "unknown_key", 'Did you mean "exclude"?'),
        ("- a\n", 1, 1, "configuration", ""),
        ("people: [\n", 2, 1, "yaml", ""),
    ],
)
def test_a_mistake_is_told_at_its_place(
    text: str, line: int, column: int, code: str, said: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        people(text)
    error = raised.value.problems[0] if isinstance(raised.value, InvalidFile) else raised.value
    assert error.place is not None
    assert (error.place.file, error.place.line, error.place.column) == ("people.yaml", line, column)
    assert error.specific_code == code
    assert said in (error.hint or "")


def test_all_mistakes_are_told_together() -> None:
    with pytest.raises(InvalidFile) as raised:
        people("people:\n  Ann: [a@x]\n  Bob: [a@x]\nteams:\n  T: [Cat]\nbot: {}\n")
    assert len(raised.value.problems) == 3


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"people\.yaml.* does not exist") as raised:
        read_people(tmp_path / "people.yaml")
    assert raised.value.specific_code == "people_file"


def test_an_empty_file_is_a_file_without_people() -> None:
    assert people("").person_of(1, "Ann", "A@x").key == "a@x"
