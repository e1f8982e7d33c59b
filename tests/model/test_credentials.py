"""Credentials: a token is known by its form, and one that was changed is not one."""

from hypothesis import given
from hypothesis import strategies as st

from tsuzuki.model.credentials import (
    hash_of,
    is_same,
    new_session_secret,
    new_setup_code,
    new_token,
    normalise_setup_code,
    public_part,
    token_id_of,
)


def test_each_is_new_and_long_enough() -> None:
    assert len({new_token().text for _ in range(100)}) == 100
    assert len({new_session_secret() for _ in range(100)}) == 100
    assert len(new_session_secret()) >= 43  # 256 bits
    assert len(new_setup_code().replace("-", "")) == 20


def test_a_token_says_its_id_and_hides_its_secret() -> None:
    made = new_token()
    assert token_id_of(made.text) == made.id
    assert public_part(made.text) == f"tsz_{made.id}"
    assert public_part("ci") == "ci"
    assert made.text not in repr(made)


@given(place=st.integers(0, 51), letter=st.characters(codec="ascii", categories=["L", "N"]))
def test_one_changed_letter_makes_it_no_token(place: int, letter: str) -> None:
    text = new_token().text
    changed = text[:place] + letter + text[place + 1 :]
    assert (token_id_of(changed) is None) == (changed != text)


@given(st.text())
def test_any_text_can_be_asked_about(text: str) -> None:
    assert token_id_of(text) is None
    assert is_same(text, text)
    assert len(hash_of(text)) == 64


@given(st.text())
def test_a_setup_code_is_the_same_however_it_is_typed(text: str) -> None:
    code = new_setup_code()
    assert normalise_setup_code(f" {code.lower().replace('-', ' ')}\n") == code
    assert normalise_setup_code(normalise_setup_code(text)) == normalise_setup_code(text)
