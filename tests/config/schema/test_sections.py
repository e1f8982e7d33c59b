"""What an installation says for a whole kind of job: file, variables, and what is missing when."""

from pathlib import Path
from typing import Annotated

import pytest
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from tsuzuki.config import Configuration, InvalidFile, JobKind, VariableAlias, load_configuration
from tsuzuki.config.schema.field_types import Location
from tsuzuki.model.errors import ConfigurationError


class Post(BaseModel):
    model_config = ConfigDict(extra="forbid")

    host: str = "localhost"
    password: str | None = None


class Part(BaseModel):
    name: str = "new"
    key: str | None = None


class Library(BaseModel):
    model_config = ConfigDict(extra="forbid")

    url: str = "https://books.example"
    key: str | None = None
    calls_per_day: Annotated[int, VariableAlias("CALLS_OF_OLD")] = Field(default=100, ge=1)
    post: Post = Post()
    parts: dict[str, Part] = Field(default_factory=dict)
    is_open: StrictBool = Field(default=True, alias="open")
    door: Location | None = None


class Nothing(BaseModel):
    model_config = ConfigDict(extra="forbid")


KINDS = {
    "library": JobKind(name="library", options_model=Nothing, section_model=Library),
    "plain": JobKind(name="plain", options_model=Nothing),
}


def load(folder: Path, text: str = "", **environ: str) -> Configuration:
    (folder / "tsuzuki.yaml").write_text(text)
    return load_configuration(environ=environ, cwd=folder, kinds=KINDS)


def test_a_section_is_read_from_the_file_over_its_defaults(tmp_path: Path) -> None:
    found = load(tmp_path, "library:\n  calls_per_day: 7\n  post:\n    host: mail\n")
    assert found.section("library") == Library(calls_per_day=7, post=Post(host="mail"))
    assert found.section("plain") is None


def test_a_variable_goes_before_the_file_and_reaches_inner_keys(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        "library:\n  key: ${KEY}\n  url: https://${HOST:-here}/v1\n",
        KEY="from-file",
        TSUZUKI_LIBRARY_CALLS_PER_DAY="9",
        TSUZUKI_LIBRARY_POST_PASSWORD="hidden",
    )
    assert found.section("library") == Library(
        key="from-file", url="https://here/v1", calls_per_day=9, post=Post(password="hidden")
    )


def test_a_key_may_have_a_second_variable_which_the_first_one_wins_over(tmp_path: Path) -> None:
    found = load(tmp_path, "library:\n  calls_per_day: 7\n", CALLS_OF_OLD="8")
    assert found.section("library") == Library(calls_per_day=8)
    both = load(tmp_path, "", CALLS_OF_OLD="8", TSUZUKI_LIBRARY_CALLS_PER_DAY="9")
    assert both.section("library") == Library(calls_per_day=9)


def test_a_secret_may_stand_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    found = load(tmp_path, "", TSUZUKI_LIBRARY_KEY_FILE="secret")
    assert found.section("library") == Library(key="s3cret")
    assert "s3cret" not in repr(found)


def test_a_missing_variable_is_missed_only_by_who_reads_the_section(tmp_path: Path) -> None:
    found = load(tmp_path, "library:\n  key: ${BOOKS_KEY}\n")
    with pytest.raises(ConfigurationError, match="BOOKS_KEY is not set") as caught:
        found.section("library")
    assert (caught.value.place.line, caught.value.place.column) == (2, 8)


def test_what_a_variable_will_say_is_checked_when_the_section_is_read(tmp_path: Path) -> None:
    text = "library:\n  calls_per_day: ${CALLS}\n"
    assert load(tmp_path, text, CALLS="7").section("library") == Library(calls_per_day=7)
    with pytest.raises(ConfigurationError, match="`calls_per_day` must be at least 1") as caught:
        load(tmp_path, text, CALLS="0").section("library")
    assert (caught.value.place.line, caught.value.place.column) == (2, 18)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("open: ${NAME}", "`open` must be true or false, not '${NAME}'"),
        ("calls_per_day: $many", "`calls_per_day` must be a whole number, not '$many'"),
        ("post: ${NAME}", "`post` must be a mapping, not '${NAME}'"),
        ("kay: ${NAME}", "unknown key `kay`"),
        ("door: https://ann:secret@${NAME}", "this URL contains a password"),
    ],
)
def test_what_no_variable_can_make_right_is_found_at_once(
    tmp_path: Path, line: str, message: str
) -> None:
    with pytest.raises(InvalidFile) as caught:
        load(tmp_path, f"library:\n  {line}\n")
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        (("url",), Library(url="u")),
        (("post.host",), Library(post=Post(host="mail"))),
        (("parts.*.name",), Library(parts={"a": Part(name="A"), "b": Part(name="B")})),
        (("parts.a", "calls_per_day"), None),
    ],
)
def test_of_a_section_only_some_keys_may_be_read(
    tmp_path: Path, only: tuple[str, ...], expected: Library | None
) -> None:
    found = load(
        tmp_path,
        "library:\n  url: u\n  key: ${KEY}\n  post: {host: mail, password: '${PASSWORD}'}\n"
        "  parts: {a: {name: A, key: '${A}'}, b: {name: B, key: '${B}'}}\n",
    )
    if expected is not None:
        assert found.section("library", only=only) == expected
    else:
        with pytest.raises(ConfigurationError, match="environment variable A is not set"):
            found.section("library", only=only)


def test_a_variable_of_a_key_that_is_not_asked_for_is_not_read(tmp_path: Path) -> None:
    found = load(
        tmp_path, "", TSUZUKI_LIBRARY_POST_HOST="mail", TSUZUKI_LIBRARY_POST_PASSWORD="hidden"
    )
    assert found.section("library", only=("post.host",)) == Library(post=Post(host="mail"))


def test_a_wrong_key_of_a_section_is_found_with_all_that_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile) as caught:
        load(tmp_path, "librery: {}\nlibrary:\n  calls: 1\n  calls_per_day: 0\n")
    assert [(p.message, p.place.line) for p in caught.value.problems] == [
        ("unknown key `librery`", 1),
        ("unknown key `calls`", 3),
        ("`calls_per_day` must be at least 1, not 0", 4),
    ]
    assert "library" in caught.value.problems[0].hint


def test_a_section_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="`library` must be a mapping with the keys url, key"):
        load(tmp_path, "library: 5\n")


def test_a_wrong_variable_is_told_when_the_section_is_read(tmp_path: Path) -> None:
    found = load(tmp_path, "", TSUZUKI_LIBRARY_CALLS_PER_DAY="many")
    with pytest.raises(ConfigurationError, match="`calls_per_day` must be a whole number"):
        found.section("library")


def test_the_variables_of_sections_and_urls_are_secrets(tmp_path: Path) -> None:
    text = "database_url: sqlite:///${DB:-a.db}\nlibrary: {key: '${KEY}', post: {host: '$${X}'}}\n"
    assert load(tmp_path, text).secret_variables == {"DB", "KEY"}


def test_a_variable_of_a_section_may_be_given_as_a_file_and_stays_secret(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hunter2\n")
    text = "database_url: sqlite:///${DB}\nlibrary: {key: '${KEY}'}\n"
    environ = {"KEY_FILE": "secret", "DB_FILE": "secret"}
    found = load(tmp_path, text, **environ)
    assert found.section("library") == Library(key="hunter2")
    assert found.database_url.endswith("/hunter2")
    assert found.unset_variables == ()
    assert found.withheld_variables == {"DB", "DB_FILE", "KEY", "KEY_FILE"}
    assert set(found.secrets(environ)) == {"hunter2"}
