"""What the annotations of a model say about a key."""

from enum import StrEnum
from typing import Annotated

import pytest
from pydantic import BaseModel, Field

from tsuzuki.config import Expects, VariableAlias
from tsuzuki.config.schema.annotations import expected_words, keys_of, model_at, variable_alias
from tsuzuki.config.yaml.nodes import KeyPath


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    limit: Annotated[int, VariableAlias("OLD_LIMIT"), Expects("a limit")] | None = None


class Outer(BaseModel):
    inner: Inner | None = None
    colour: Colour | None = None
    sender: str | None = Field(default=None, alias="from")
    names: list[Annotated[str, Expects("a name")]] = []


def test_keys_are_named_as_they_are_written() -> None:
    assert keys_of(Outer) == ["inner", "colour", "from", "names"]


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (("inner", "limit"), "a limit"),
        (("names", 0), "a name"),
        (("colour",), "red or blue"),
        (("from",), None),
        (("nothing",), None),
        (("inner", "nothing", "at", "all"), None),
    ],
)
def test_the_expected_words_of_a_key_are_found_at_any_depth(
    key: KeyPath, words: str | None
) -> None:
    assert expected_words(Outer, key) == words


def test_an_optional_model_is_found_inside_another() -> None:
    assert model_at(Outer, ("inner",)) is Inner
    assert model_at(Outer, ("colour",)) is None


def test_a_key_may_have_an_alias_among_the_variables() -> None:
    assert variable_alias(Outer, ("inner", "limit")) == "OLD_LIMIT"
    assert variable_alias(Outer, ("colour",)) is None
