"""The global options and surroundings of one call of `tsuzuki`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from tsuzuki.model.secrets import SecretMask, mask_secrets


class OutputFormat(StrEnum):
    """How data is printed on stdout."""

    TABLE = "table"
    """For people: aligned columns with headings."""

    JSON = "json"
    """One document with every field, printed when all of it is known."""

    JSONL = "jsonl"
    """One object with every field per line, printed as it comes."""

    PLAIN = "plain"
    """Tab-separated columns without headings, printed as they come."""

    @property
    def is_json(self) -> bool:
        return self in (OutputFormat.JSON, OutputFormat.JSONL)


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """The global options of a call, its environment and its folder. Every command is handed it as `obj`.

    Only what was typed is in here: the environment and the configuration file are weighed where
    the configuration is read. What may hold a secret stays out of `repr`.
    """

    config_file: Path | None = None
    database_url: str | None = field(default=None, repr=False)
    output: OutputFormat = OutputFormat.TABLE
    no_color: bool = False
    verbose: bool = False
    quiet: bool = False
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    cwd: Path = field(default_factory=Path)
    """Where relative names begin; relative itself unless another place is given."""
    masks: list[SecretMask] = field(default_factory=list, repr=False, compare=False)
    """Of the configurations that were read on the way: what they name as secret is in no error."""

    @property
    def sources(self) -> dict[str, Any]:
        """What the configuration is read from."""
        return {
            "config_file": self.config_file,
            "database_url": self.database_url,
            "environ": self.environ,
            "cwd": self.cwd,
        }

    def hide_secrets(self, text: str) -> str:
        for mask in self.masks:
            text = mask.text(text)
        return mask_secrets(text)

    @property
    def color(self) -> bool:
        """Whether a terminal may be coloured. What is not a terminal never is."""
        return not (
            self.no_color or self.environ.get("NO_COLOR") or self.environ.get("TERM") == "dumb"
        )

    @property
    def show_traceback(self) -> bool:
        return self.verbose or self.environ.get("TSUZUKI_TRACEBACK", "0") not in ("", "0")
