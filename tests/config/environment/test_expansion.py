"""`${NAME}` in text."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsuzuki.config.environment.expansion import expand, literal_part
from tsuzuki.model.errors import ConfigurationError, FilePlace

ENVIRON = {"NAME": "value", "EMPTY": "", "NESTED": "${NAME}"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("plain", "plain"),
        ("${NAME}", "value"),
        ("a${NAME}b${NAME}c", "avaluebvaluec"),
        ("${NAME:-other}", "value"),
        ("${MISSING:-other}", "other"),
        ("${MISSING:-}", ""),
        ("${EMPTY}", ""),
        ("${EMPTY:-other}", "other"),
        ("${MISSING:-a:-b c}", "a:-b c"),
        ("$${NAME}", "${NAME}"),
        ("$$", "$"),
        ("$$$$", "$$"),
        ("$${${NAME}}", "${value}"),
        ("cost $5", "cost $5"),
        ("$NAME", "$NAME"),
        ("end$", "end$"),
        ("${NESTED}", "${NAME}"),
    ],
)
def test_variables_are_filled_in(text: str, expanded: str) -> None:
    assert expand(text, ENVIRON) == expanded


def test_a_missing_variable_is_named_with_its_place() -> None:
    place = FilePlace(file="tsuzuki.yaml", line=3, column=7)
    with pytest.raises(ConfigurationError, match="MISSING is not set") as caught:
        expand("${MISSING}", ENVIRON, place=place)
    assert caught.value.place == place
    assert caught.value.specific_code == "variable_missing"


@pytest.mark.parametrize("text", ["${", "${}", "${NAME", "${1A}", "${A-b}", "${A B}", "${A:b}"])
def test_a_malformed_reference_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a valid variable"):
        expand(text, ENVIRON)


def test_what_is_literal_part_leaves_variables_out_and_defaults_in() -> None:
    assert literal_part("a${NAME}b${OTHER:-c}") == "abc"


@given(st.text())
def test_any_text_survives_when_its_dollars_are_doubled(text: str) -> None:
    assert expand(text.replace("$", "$$"), {}) == text


@pytest.mark.parametrize(
    ("text", "environ", "expanded"),
    [
        ("${KEY}", {"KEY_FILE": "key"}, "hidden"),
        ("${KEY:-other}", {"KEY_FILE": "key"}, "hidden"),
        ("${KEY}", {"KEY": "", "KEY_FILE": "key"}, "hidden"),
        ("${KEY}", {"KEY": "open", "KEY_FILE": "key"}, "open"),
        ("${KEY:-other}", {"KEY_FILE": ""}, "other"),
    ],
)
def test_a_variable_may_be_given_as_a_file(
    text: str, environ: dict[str, str], expanded: str, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("hidden\n")
    assert expand(text, environ, cwd=tmp_path) == expanded


def test_a_file_that_is_not_there_is_told_by_its_variable(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="KEY_FILE"):
        expand("${KEY}", {"KEY_FILE": "key"}, cwd=tmp_path)
