"""Parse text as if it were the file `tsuzuki.yaml`."""

import pytest

from tsuzuki.config.yaml.document import YamlDocument, parse_document
from tsuzuki.config.yaml.source import YamlSource
from tsuzuki.model.errors import ConfigurationError


def document(text: str) -> YamlDocument:
    return parse_document(YamlSource(file="tsuzuki.yaml", text=text))


def refused(text: str) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        document(text)
    assert caught.value.hint, "every refusal says what to do"
    return caught.value


def where(error: ConfigurationError) -> str:
    return str(error.place)


def assert_refused(text: str, place: str, words: str) -> None:
    """The error is at `place`, with the line in question, and its message contains `words`."""
    error = refused(text)
    assert where(error) == f"tsuzuki.yaml:{place}"
    assert words in error.message
    assert error.place is not None
    assert error.place.line is not None
    assert error.place.text == text.split("\n")[error.place.line - 1]
