"""The pages of the reference are what the code says now."""

from pathlib import Path

import pytest

from tools.reference.pages import PAGES

FOLDER = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_reference_is_what_the_code_says(name: str) -> None:
    written = (FOLDER / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), f"{name} is old: run `make reference`"


def test_there_is_no_other_page_in_the_reference() -> None:
    assert {path.name for path in FOLDER.glob("*.md")} == set(PAGES)
