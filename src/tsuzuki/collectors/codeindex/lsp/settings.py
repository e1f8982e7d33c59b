"""Which command is the language server of a language: given for a build, otherwise taken from the user's own file.

A tree never defines it, because indexing a downloaded tree must not run commands of its author.
"""

import os
import shlex
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import platformdirs
from pydantic import AfterValidator, Field

from tsuzuki.collectors.codeindex.languages import LANGUAGES
from tsuzuki.config import Expects, InvalidValue
from tsuzuki.config.schema.field_types import Argv, Text
from tsuzuki.config.schema.problems import ConfigProblem, invalid
from tsuzuki.config.schema.strict_model import StrictModel
from tsuzuki.config.schema.validation import validate
from tsuzuki.config.yaml.document import read_document
from tsuzuki.model.errors import UsageError
from tsuzuki.model.suggestion import did_you_mean

CONFIG_VARIABLE = "TSUZUKI_CODEINDEX_CONFIG"
CONFIG_NAME = "codeindex.yaml"
NONE = "none"
"""In place of a command: no server for this language, even if the user's file names one."""

LspCommands = dict[str, tuple[str, ...]]
"""The words of the command by language; no words mean no server."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerCommand:
    """The server of one language."""

    language: str
    words: tuple[str, ...]

    @property
    def extractor(self) -> str:
        """How the index names what it extracted: with another command, files are extracted again."""
        return f"lsp: {self}"

    def program(self, environ: Mapping[str, str]) -> str | None:
        """The full path of the program; None if there is none. A path below the current folder is refused: it
        would be one of the tree."""
        named = Path(self.words[0]).expanduser()
        if len(named.parts) > 1 and not named.is_absolute():
            return None
        return shutil.which(str(named), path=environ.get("PATH"))

    def __str__(self) -> str:
        return shlex.join(self.words)


def _known_languages(commands: dict[str, list[str]]) -> dict[str, list[str]]:
    for language in commands:
        if language not in LANGUAGES:
            message, hint = _unknown(language)
            raise InvalidValue(message, hint=hint, path=(language,), at_key=True)
    return commands


LspOption = Annotated[
    dict[Text, Argv],
    AfterValidator(_known_languages),
    Expects("a mapping of languages to commands"),
]
"""`lsp` in a job or in the user's file."""


class _UserFile(StrictModel):
    lsp: LspOption = Field(default_factory=dict)


def read_said(said: Iterable[str]) -> LspCommands:
    """The commands of `LANGUAGE=COMMAND` options."""
    commands: LspCommands = {}
    for text in said:
        language, equals, command = text.partition("=")
        if not equals:
            raise UsageError(
                f"{text!r} is not LANGUAGE=COMMAND",
                hint="For example: --lsp python='basedpyright-langserver --stdio'",
                code="bad_lsp",
            )
        if language not in LANGUAGES:
            message, hint = _unknown(language)
            raise UsageError(message, hint=hint, code="unknown_language")
        commands[language] = _words(text, command)
    return commands


def _words(text: str, command: str) -> tuple[str, ...]:
    try:
        words = shlex.split(command)
    except ValueError:
        raise UsageError(f"unclosed quote in {text!r}", code="bad_lsp") from None
    if not words:
        raise UsageError(
            f"missing command in {text!r}", hint=f"To use no server, write {NONE}.", code="bad_lsp"
        )
    return as_command(words)


def as_command(words: Iterable[str]) -> tuple[str, ...]:
    """The words of a command; none of them for `none`."""
    command = tuple(words)
    return () if command == (NONE,) else command


def _unknown(language: str) -> tuple[str, str]:
    guess = did_you_mean(language, LANGUAGES).strip()
    return f"unknown language {language!r}", guess or f"Known: {', '.join(LANGUAGES)}."


def config_path(environ: Mapping[str, str] = os.environ) -> Path:
    """The user's own file."""
    named = environ.get(CONFIG_VARIABLE)
    return Path(named) if named else platformdirs.user_config_path("tsuzuki") / CONFIG_NAME


def user_commands(environ: Mapping[str, str]) -> LspCommands:
    """The commands of the user's file; none without one. Raises `ConfigurationError` with the place."""
    path = config_path(environ)
    if CONFIG_VARIABLE not in environ and not path.is_file():
        return {}
    document = read_document(path)
    data = {} if document.data is None else document.data
    problems: list[ConfigProblem] = []
    if not isinstance(data, dict):
        raise invalid([ConfigProblem(path=(), message="the file must be a mapping: lsp")], document)
    read = validate(_UserFile, data, path=(), problems=problems)
    if read is None:
        raise invalid(problems, document)
    return {language: as_command(words) for language, words in read.lsp.items()}


def server_commands(said: LspCommands, environ: Mapping[str, str]) -> dict[str, ServerCommand]:
    """The server of each language that has one: as was said, else as in the user's file."""
    merged = {**user_commands(environ), **said}
    return {
        language: ServerCommand(language=language, words=words)
        for language, words in merged.items()
        if words
    }
