"""Sentences for people: English text that remembers the text with its places and the values that filled them.

An interface that speaks another language translates the text and fills it again; to every other reader it is a string.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Self


class CommandLine(str):
    """A line to type, inside a sentence."""

    __slots__ = ()


class Sentence(str):
    """`Sentence("Scheduled for %(when)s.", when=moment)`. A value is a text, a number, a moment, a word of an
    enum, another sentence, or several of them in a tuple."""

    template: str
    values: Mapping[str, Any]

    def __new__(cls, template: str, **values: Any) -> Self:
        filled = template % {name: _english(value) for name, value in values.items()}
        found = super().__new__(cls, filled if values else template)
        found.template, found.values = template, values
        return found

    def __reduce__(self) -> tuple[Callable[..., "Sentence"], tuple[str, Mapping[str, Any]]]:
        return _rebuilt, (self.template, self.values)

    def with_texts(self, change: Callable[[str], str]) -> "Sentence":
        """The same sentence with each text in it changed, such as one whose secrets are masked."""
        return Sentence(
            self.template, **{name: _changed(value, change) for name, value in self.values.items()}
        )


def _rebuilt(template: str, values: Mapping[str, Any]) -> Sentence:
    return Sentence(template, **values)


def _english(value: Any) -> str:
    match value:
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%SZ}"
        case tuple():
            return ", ".join(map(_english, value))
        case None:
            return "an unknown time"
        case _:
            return str(value)


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case Sentence():
            return value.with_texts(change)
        case tuple():
            return tuple(_changed(one, change) for one in value)
        case str() if type(value) in (str, CommandLine):
            return type(value)(change(value))
        case _:
            return value
