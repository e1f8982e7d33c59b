"""Text from outside: what a database cannot store becomes U+FFFD, everything else stays."""

import pytest

from tsuzuki.model.storable_text import storable


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("plain\n", "plain\n"),
        ("é 続き 𠮷", "é 続き 𠮷"),
        ("a\x00b", "a\ufffdb"),
        ("é\x00", "é\ufffd"),
        ("a\ud83db\udc00", "a\ufffdb\ufffd"),
    ],
)
def test_only_what_no_database_can_store_is_replaced(text: str, stored: str) -> None:
    assert storable(text) == stored
