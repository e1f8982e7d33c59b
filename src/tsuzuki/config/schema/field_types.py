"""Field types: how a value of a definition is read, checked, and named in a message.

`Expects` stands beside a type and completes the sentence "`key` must be …". A field without it gets
general words. A validator with a message of its own raises `InvalidValue`.
"""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from tsuzuki.config.environment.expansion import literal_part
from tsuzuki.config.environment.urls import holds_password
from tsuzuki.config.schema.problems import ConfigProblem
from tsuzuki.config.yaml.nodes import KeyPath
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.isolation import MEMORY_BYTES_MIN
from tsuzuki.model.schedule_words import read_interval
from tsuzuki.model.zones import zone_named

SECONDS_MAX = 3660 * 86_400.0
_FUNCTION = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_BYTE_SIZE = re.compile(r"(\d{1,9}) ?([KMGTkmgt])(?:i?B)?")
_SHELL_OPERATORS = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "<<", "2>", "2>&1", "&>"})


@dataclass(frozen=True)
class Expects:
    """What a value must be, in the words that follow "must be"."""

    words: str

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The words describe the value in the schema for editors."""
        return {**handler(core_schema), "description": self.words}


@dataclass(frozen=True)
class VariableAlias:
    """A second environment variable for a key of a section, such as an older name of it. The one
    that is named after the section has precedence."""

    variable: str


class InvalidValue(ValueError):
    """An invalid value, with message, hint and code. `path` leads from the field to the invalid part
    of its value; with `at_key` it is the key there that is invalid."""

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
        self._problem = ConfigProblem(
            path=path, message=message, hint=hint, code=code, at_key=at_key
        )

    def as_problem(self, path: KeyPath) -> ConfigProblem:
        """The problem, for a field at `path`."""
        return replace(self._problem, path=path + self._problem.path)


def _checked_by(check: Callable[[str], Any]) -> Callable[[str], str]:
    """A validator of text that fails with the `ConfigurationError` of `check`."""

    def validate(text: str) -> str:
        try:
            check(text)
        except ConfigurationError as problem:
            raise InvalidValue(
                problem.message, hint=problem.hint, code=problem.specific_code
            ) from problem
        return text

    return validate


def _parse_seconds(value: object) -> float:
    """A duration in seconds, from a number or from text like `30s`, `10m`, `1h30m`, `1d`."""
    try:
        return read_interval(value).total_seconds()
    except (ConfigurationError, OverflowError):
        raise ValueError("not a duration") from None


def _parse_bytes(value: object) -> int:
    """A size in bytes, from a number or from text like `512M` or `2G`, which count in 1024s."""
    if isinstance(value, str) and (found := _BYTE_SIZE.fullmatch(value.strip())):
        return int(found[1]) << 10 * (1 + "KMGT".index(found[2].upper()))
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError("not a size")


def duration_text(seconds: float) -> str:
    """A duration as it is written in the file: `30s`, `1h30m` or `30d`."""
    whole, written = int(seconds), ""
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        count, whole = divmod(whole, length)
        written += f"{count}{unit}" if count else ""
    left = whole + seconds % 1
    return f"{written}{left:g}s" if left or not written else written


def _split_command(value: object) -> object:
    """A command as a list of words. Text is split like a shell does, but no shell runs it."""
    if not isinstance(value, str):
        return value
    try:
        words = shlex.split(value)
        raw_words = shlex.split(value, posix=False)
    except ValueError:
        raise InvalidValue(
            "`command` has an unclosed quote",
            hint="Close it, or write the command as a list of words.",
        ) from None
    # Raw words keep their quotes: a quoted '|' is an ordinary argument.
    operator = next((word for word in raw_words if word in _SHELL_OPERATORS), None)
    if operator is not None:
        raise InvalidValue(
            f"`command` does not run in a shell, so `{operator}` would be an argument",
            hint='Call a shell yourself: command: [sh, -c, "…"]. If you mean it as an argument, '
            "write the command as a list of words.",
        )
    return words


def _scalar_to_text(value: object) -> object:
    """Integers and booleans as text. Other numbers are refused: 1.10 would become 1.1."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else value


def _refuse_password(text: str) -> None:
    if holds_password(literal_part(text)):
        raise ConfigurationError(
            "this URL contains a password",
            hint="Keep secrets out of the file: write ${NAME} instead and set that environment "
            "variable, or set TSUZUKI_DATABASE_URL_FILE or TSUZUKI_REDIS_URL_FILE to the path "
            "of a file that contains the whole URL.",
            code="secret_in_file",
        )


def _check_function(text: str) -> str:
    if not _FUNCTION.fullmatch(text):
        raise ValueError("not a function")
    return text


def _check_variable_names(environment: dict[str, str]) -> dict[str, str]:
    for name in environment:
        if "=" in name or "\0" in name:
            raise InvalidValue(
                f"invalid variable name {name!r}",
                hint="A variable name cannot contain '='.",
                path=(name,),
                at_key=True,
            )
    return environment


_WORD = "text (put it in quotes)"

Text = Annotated[StrictStr, Expects("text")]
Name = Annotated[StrictStr, Field(min_length=1, max_length=200), Expects("a name")]
Flag = Annotated[StrictBool, Expects("true or false")]
Zone = Annotated[
    StrictStr, AfterValidator(_checked_by(zone_named)), Expects("the name of a time zone")
]
Location = Annotated[
    StrictStr, Field(min_length=1), AfterValidator(_checked_by(_refuse_password)), Expects("a URL")
]
Contact = Annotated[
    StrictStr,
    Field(max_length=200, pattern=r"^(?:https?://[!-'*-:<-~]+|[!-'*-:<-~]+@[!-'*-:<-~]+)$"),
    Expects("an email address or a web address"),
]
"""It becomes part of a header's comment, which parentheses, semicolons and blanks would end."""

IS_DURATION = BeforeValidator(_parse_seconds, json_schema_input_type=float | str)
Seconds = Annotated[
    StrictFloat,
    Field(ge=0, le=SECONDS_MAX),
    IS_DURATION,
    Expects("a duration such as 30s, 10m, 1h30m or 1d, or a number of seconds"),
]
PositiveSeconds = Annotated[
    StrictFloat,
    Field(gt=0, le=SECONDS_MAX),
    IS_DURATION,
    Expects("a duration above 0, such as 30s, 10m, 1h30m or 1d, or a number of seconds"),
]
ByteSize = Annotated[
    StrictInt,
    Field(ge=MEMORY_BYTES_MIN, le=2**53),
    BeforeValidator(_parse_bytes, json_schema_input_type=int | str),
    Expects("a size of at least 16M, such as 512M or 2G, or a number of bytes"),
]
Count = Annotated[StrictInt, Field(ge=1, le=100_000), Expects("a whole number from 1 to 100000")]
Word = Annotated[
    StrictStr,
    BeforeValidator(_scalar_to_text, json_schema_input_type=str | int | bool),
    Expects(_WORD),
]
Argv = Annotated[
    list[Word],
    Field(min_length=1),
    BeforeValidator(_split_command, json_schema_input_type=list[str | int | bool] | str),
    Expects("a list of words, or text to be split into words"),
]
Environment = Annotated[
    dict[Name, Annotated[Word, AfterValidator(_checked_by(literal_part)), Expects(_WORD)]],
    AfterValidator(_check_variable_names),
    Expects("a mapping of variables to text"),
]
Function = Annotated[
    StrictStr, AfterValidator(_check_function), Expects('text like "package.module:function"')
]
