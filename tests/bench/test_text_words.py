"""The words that the recall of references in Rust and Java is judged by."""

import pytest

from bench.codeindex.text_words import words

RUST = r"""// one
/* one /* one */ one */
fn one<'one>(a: &'one str) -> char { one!("one \" one", r#"one " one"#, b'"', '\'', $one); r#one }
"""
JAVA = r'''/** one */
@One("one \" one") char one = '"'; // one
String two = """
  one " one \""" one
  """ + one$ + one;
'''


@pytest.mark.parametrize(
    ("language", "text", "places"),
    [("rust", RUST, [(3, 3), (3, 37), (3, 93)]), ("java", JAVA, [(2, 24), (5, 15)])],
)
def test_words_of_comments_strings_and_other_names_are_left_out(
    language: str, text: str, places: list[tuple[int, int]]
) -> None:
    found = [(line, column) for word, line, column in words(text, language) if word == "one"]
    assert found == places
