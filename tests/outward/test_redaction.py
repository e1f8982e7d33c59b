"""What others said is kept without what must not be: tokens, passwords, addresses."""

import pytest

from tsuzuki.outward.redaction import WORDS_MAX, redacted


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("unable to access 'https://me:s3cret@h/x.git/'", "unable to access 'https://h/x.git/'"),
        ("Jo <jo@example.org> wrote", "Jo <***> wrote"),
        ("git@example.org:group/x.git denied", "***:group/x.git denied"),
        ("PRIVATE-TOKEN: glpat-abcdefgh1234", "PRIVATE-TOKEN: ***"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("?private_token=abc&page=2", "?private_token=***&page=2"),
        ("the token was hush-hush", "the token was ***"),
        ("two\nlines  and\ttabs", "two lines and tabs"),
    ],
)
def test_secrets_are_taken_out_and_the_rest_stays(said: str, kept: str) -> None:
    assert redacted(said, secrets=["hush-hush", None, ""]) == kept


def test_a_long_text_is_shortened() -> None:
    assert len(redacted("word " * 1000)) == WORDS_MAX
