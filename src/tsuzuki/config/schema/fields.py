"""The kinds of values a definition is made of: how each is read, and what messages call it.

`Expects` goes beside a type and completes the sentence "`key` must be …". A field without it gets
general words. A validator that has more to say raises a `Refusal`.
"""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
)

from tsuzuki.config.environment.expansion import written_out
from tsuzuki.config.environment.urls import holds_password
from tsuzuki.config.yaml.nodes import KeyPath
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.schedule_words import read_interval
from tsuzuki.model.zones import zone_named

SECONDS_MAX = 3660 * 86_400.0
_FUNCTION = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_SHELL_ONLY = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "<<", "2>", "2>&1", "&>"})


@dataclass(frozen=True)
class Expects:
    """What a value must be, in words that follow "must be"."""

    words: str


@dataclass(frozen=True)
class AlsoCalled:
    """Another environment variable that gives a key of a section its value, after the one that is
    named for the section: what the variable was called before there was a section."""

    variable: str


class Refusal(ValueError):
    """A value that is refused for a reason of its own. `path` leads on from the field to what is
    to blame; `at_key` says that it is the key there."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        code: str = ConfigurationError.code,
        path: KeyPath = (),
        at_key: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code
        self.path = path
        self.at_key = at_key


def _refusing(check: Callable[[str], Any]) -> Callable[[str], str]:
    """A validator that lets `check` look at a text, and speaks of its `ConfigurationError`."""

    def validate(text: str) -> str:
        try:
            check(text)
        except ConfigurationError as problem:
            raise Refusal(
                problem.message, hint=problem.hint, code=problem.specific_code
            ) from problem
        return text

    return validate


def seconds_of(value: object) -> float:
    """A duration: a number of seconds, or text like `30s`, `10m`, `1h30m`, `1d`."""
    try:
        return read_interval(value).total_seconds()
    except (ConfigurationError, OverflowError):
        raise ValueError("not a duration") from None


def argv_of(value: object) -> object:
    """A command as a list of words; text is split the way a shell would, without being one."""
    if not isinstance(value, str):
        return value
    try:
        words = shlex.split(value)
        raw_words = shlex.split(value, posix=False)
    except ValueError:
        raise Refusal(
            "`command` has a quote that is never closed",
            hint="Close it, or write the command as a list of words.",
        ) from None
    # The quotes are still on the raw words: a quoted '|' is an argument like any other.
    operator = next((word for word in raw_words if word in _SHELL_ONLY), None)
    if operator is not None:
        raise Refusal(
            f"`command` is not run by a shell, so `{operator}` would be an argument",
            hint='Call a shell yourself: command: [sh, -c, "…"]. '
            "To really pass it, write the command as a list of words.",
        )
    return words


def word_of(value: object) -> object:
    """An argument or a variable as text. Whole numbers and true/false are text beyond doubt; other
    numbers are not: 1.10 would come out as 1.1."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else value


def _no_password(text: str) -> None:
    if holds_password(written_out(text)):
        raise ConfigurationError(
            "a password is written out in this URL",
            hint="Keep secrets out of the file: write ${NAME} in its place and set that "
            "environment variable, or set TSUZUKI_DATABASE_URL_FILE or TSUZUKI_REDIS_URL_FILE "
            "to the path of a file that holds the whole URL.",
            code="secret_in_file",
        )


def _function(text: str) -> str:
    if not _FUNCTION.fullmatch(text):
        raise ValueError("not a function")
    return text


def _variable_names(environment: dict[str, str]) -> dict[str, str]:
    for name in environment:
        if "=" in name or "\0" in name:
            raise Refusal(
                f"{name!r} cannot be the name of a variable",
                hint="Names of variables hold no '='.",
                path=(name,),
                at_key=True,
            )
    return environment


_WORD = "text (put it in quotes)"

Text = Annotated[StrictStr, Expects("text")]
Name = Annotated[StrictStr, Field(min_length=1, max_length=200), Expects("a name")]
Flag = Annotated[StrictBool, Expects("true or false")]
Zone = Annotated[
    StrictStr, AfterValidator(_refusing(zone_named)), Expects("the name of a time zone")
]
Location = Annotated[
    StrictStr, Field(min_length=1), AfterValidator(_refusing(_no_password)), Expects("a URL")
]
Seconds = Annotated[
    StrictFloat,
    Field(ge=0, le=SECONDS_MAX),
    BeforeValidator(seconds_of),
    Expects("a duration such as 30s, 10m, 1h30m or 1d, or a number of seconds"),
]
PositiveSeconds = Annotated[
    StrictFloat,
    Field(gt=0, le=SECONDS_MAX),
    BeforeValidator(seconds_of),
    Expects("a duration above 0, such as 30s, 10m, 1h30m or 1d, or a number of seconds"),
]
Count = Annotated[StrictInt, Field(ge=1, le=100_000), Expects("a whole number from 1 to 100000")]
Word = Annotated[StrictStr, BeforeValidator(word_of), Expects(_WORD)]
Argv = Annotated[
    list[Word],
    Field(min_length=1),
    BeforeValidator(argv_of),
    Expects("a list of words, or text to be split into words"),
]
Environment = Annotated[
    dict[Name, Annotated[Word, AfterValidator(_refusing(written_out)), Expects(_WORD)]],
    AfterValidator(_variable_names),
    Expects("a mapping of variables to text"),
]
Function = Annotated[
    StrictStr, AfterValidator(_function), Expects('text like "package.module:function"')
]
