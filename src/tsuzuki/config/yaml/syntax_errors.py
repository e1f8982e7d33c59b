"""Syntax errors: the YAML parser's messages, translated into our own with a place and a hint."""

import re
from dataclasses import dataclass

from yaml import MarkedYAMLError, YAMLError
from yaml.reader import ReaderError

from tsuzuki.config.yaml.source import YamlSource
from tsuzuki.model.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class _Translation:
    """Our message for a parser message that matches `pattern`. With `at_context` the error is where
    the construct began, not where the parser stopped."""

    pattern: str
    message: str
    hint: str
    at_context: bool = False


_QUOTE = "Put the text in quotes."
_INDENTATION = "Give every key of one mapping, and every '-' of one list, the same indentation."

_TRANSLATIONS = (
    _Translation(
        pattern="found a tab character",
        message="a tab is used for indentation",
        hint="Indent with spaces.",
    ),
    _Translation(
        pattern="that cannot start any token",
        message="text cannot begin with this character",
        hint=_QUOTE,
    ),
    _Translation(
        pattern="mapping values are not allowed",
        message="unexpected ': '",
        hint=f"If the colon belongs to the text: {_QUOTE.lower()} Otherwise check the indentation.",
    ),
    _Translation(
        pattern="could not find expected ':'",
        message="this line is neither a key with a colon nor part of the value above",
        hint="Add the colon, or indent the line.",
        at_context=True,
    ),
    _Translation(
        pattern="found no key before ':'",
        message="no key before this colon",
        hint="Write the key, or put the text in quotes if the colon belongs to it.",
    ),
    _Translation(
        pattern=r"did not find expected (key|'-' indicator)",
        message="this line does not fit the lines above",
        hint=_INDENTATION,
    ),
    _Translation(
        pattern="sequence entries are not allowed",
        message="a list cannot begin here",
        hint=_INDENTATION,
    ),
    _Translation(
        pattern=r"found unexpected (end of stream|document separator)",
        message="the quote that opens here is not closed",
        hint="Close it with the same kind of quote.",
        at_context=True,
    ),
    _Translation(
        pattern="did not find expected ',' or",
        message="the bracket that opens here is not closed properly",
        hint="Put commas between the parts and close it with the same kind of bracket.",
        at_context=True,
    ),
    _Translation(
        pattern="did not find expected node content",
        message="missing value",
        hint="Close every bracket, and put something between two commas.",
    ),
    _Translation(
        pattern="found unknown escape character",
        message="unknown backslash sequence",
        hint="Write '\\\\' for a backslash, or use single quotes.",
    ),
)


def syntax_error(problem: YAMLError, source: YamlSource) -> ConfigurationError:
    """Translate the parser's `problem` into an error with message, place and hint."""
    if isinstance(problem, ReaderError):
        before = source.text.encode()[: problem.position].decode()  # libyaml counts bytes here
        return source.error(
            len(before),
            f"the file contains a control character (0x{problem.character:02x})",
            hint='Remove it; in double quotes it can be written as an escape, like "\\x1b".',
            code="yaml",
        )
    found = _translate(_message(problem, source))
    offset = min(_offset(problem, at_context=found.at_context), len(source.text))
    return source.error(offset, found.message, hint=found.hint, code="yaml")


def _message(problem: YAMLError, source: YamlSource) -> str:
    """The parser's message, made exact where the next character says more than the parser does."""
    message = str(getattr(problem, "problem", None) or problem)
    following = source.text[_offset(problem, at_context=False) :][:1]
    if following == "\t":
        return "found a tab character"
    if following == ":" and "expected key" in message:
        return "found no key before ':'"
    return message


def _translate(message: str) -> _Translation:
    for translation in _TRANSLATIONS:
        if re.search(translation.pattern, message):
            return translation
    return _Translation(
        pattern=message,
        message=f"invalid YAML: {message}",
        hint="Check this line and the one above.",
    )


def _offset(problem: YAMLError, *, at_context: bool) -> int:
    if not isinstance(problem, MarkedYAMLError):
        return 0
    marks = (problem.problem_mark, problem.context_mark)
    mark = next((mark for mark in (reversed(marks) if at_context else marks) if mark), None)
    return mark.index if mark else 0
