"""What the YAML parser complains about, in words for the person who wrote the file."""

from dataclasses import dataclass

from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError

from tsuzuki.config.yaml.source import Source
from tsuzuki.model.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class _Words:
    """`sign` is the part of the parser's sentence by which a complaint is recognised. `at_context`:
    the fault is where the construct began, not where the parser gave up."""

    sign: str
    message: str
    hint: str
    at_context: bool = False


_QUOTE = "Put the text in quotes."
_INDENTATION = "Give every key of one mapping, and every '-' of one list, the same indentation."

_COMPLAINTS = (
    _Words(
        sign="'\\t'",
        message="a tab is used for indentation",
        hint="Indent with spaces.",
    ),
    _Words(
        sign="that cannot start any token",
        message="text cannot begin with this character",
        hint=_QUOTE,
    ),
    _Words(
        sign="mapping values are not allowed here",
        message="a ': ' is not expected here",
        hint=f"If the colon belongs to the text: {_QUOTE.lower()} Otherwise check the indentation.",
    ),
    _Words(
        sign="could not find expected ':'",
        message="this line is neither a key with a colon nor part of what stands above it",
        hint="Add the colon, or indent the line.",
        at_context=True,
    ),
    _Words(
        sign="expected <block end>",
        message="this line does not fit what stands above it",
        hint=_INDENTATION,
    ),
    _Words(
        sign="sequence entries are not allowed here",
        message="a list cannot begin here",
        hint=_INDENTATION,
    ),
    _Words(
        sign="found unexpected end of stream",
        message="the quote that opens here is never closed",
        hint="Close it with the same kind of quote.",
        at_context=True,
    ),
    _Words(
        sign="found unexpected document separator",
        message="the quote that opens here is never closed",
        hint="Close it with the same kind of quote.",
        at_context=True,
    ),
    _Words(
        sign="expected ',' or",
        message="the bracket that opens here is not closed properly",
        hint="Put commas between the parts and close it with the same kind of bracket.",
        at_context=True,
    ),
    _Words(
        sign="expected the node content",
        message="a value is missing here",
        hint="Close every bracket, and put something between two commas.",
    ),
    _Words(
        sign="found unknown escape character",
        message="this backslash sequence is unknown",
        hint="Write '\\\\' for a backslash, or use single quotes.",
    ),
)


def explain(problem: YAMLError, source: Source) -> ConfigurationError:
    """The parser's `problem` as an error that names the place and the remedy."""
    if isinstance(problem, ReaderError):
        return source.error(
            problem.position,
            f"the file holds a control character (0x{problem.character:02x})",
            hint='Remove it; in double quotes it can be written as an escape, like "\\x1b".',
            code="yaml",
        )
    complaint = str(getattr(problem, "problem", None) or problem)
    words = next((words for words in _COMPLAINTS if words.sign in complaint), None)
    offset = _offset(problem, at_context=words is not None and words.at_context)
    if words is None:
        message, hint = (
            f"this is not valid YAML: {complaint}",
            "Check the line and the one above it.",
        )
    else:
        message, hint = words.message, words.hint
    return source.error(min(offset, len(source.text)), message, hint=hint, code="yaml")


def _offset(problem: YAMLError, *, at_context: bool) -> int:
    if not isinstance(problem, MarkedYAMLError):
        return 0
    marks = (problem.problem_mark, problem.context_mark)
    mark = next((mark for mark in (reversed(marks) if at_context else marks) if mark), None)
    return mark.index if mark else 0
