"""Addresses of our pages: the filters of the one that is shown, changed one at a time."""

import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import quote, urlencode, urlsplit

NO_FLAGS: Mapping[str, str] = MappingProxyType({})
CURSOR = "cursor"
"""Where a list continues: of no use once its filters change."""


@dataclass(frozen=True, kw_only=True)
class PageLink:
    """A path with its parameters, in their order. Each method gives another address; this one stays."""

    path: str
    parameters: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.path}?{urlencode(self.parameters)}" if self.parameters else self.path

    def having(self, name: str, value: object) -> "PageLink":
        """With one more value of this parameter."""
        return self._of((*self._without_cursor(), (name, str(value))))

    def setting(self, name: str, value: object) -> "PageLink":
        """With this value of the parameter and no other; None: without it."""
        kept = [pair for pair in self._without_cursor() if pair[0] != name]
        return self._of([*kept, *([] if value is None else [(name, str(value))])])

    def without(self, name: str, value: object = None) -> "PageLink":
        """Without this value of the parameter; without any if none is given."""
        gone = None if value is None else str(value)
        return self._of(
            pair
            for pair in self._without_cursor()
            if pair[0] != name or (gone is not None and pair[1] != gone)
        )

    def swapping(self, name: str, value: object, other_name: str) -> "PageLink":
        """With this value under another parameter: from wanted to excluded and back."""
        return self.without(name, value).having(other_name, value)

    def at_cursor(self, cursor: str) -> "PageLink":
        return self._of((*self._without_cursor(), (CURSOR, cursor)))

    @property
    def query_text(self) -> str:
        """The filters alone, without the position in the list."""
        return urlencode(self._without_cursor())

    def command(
        self, words: str, options: Mapping[str, str], flags: Mapping[str, str] = NO_FLAGS
    ) -> str:
        """The command that shows the same: `options` names the option of each parameter that has one; of an
        argument it is empty. `flags` names the option that stands for a parameter with one value: `exact=true`."""
        given: list[str] = []
        for name, value in self.parameters:
            if name in options:
                given += [part for part in (options[name], value) if part]
            elif f"{name}={value}" in flags:
                given.append(flags[f"{name}={value}"])
        return shlex.join(["tsuzuki", *words.split(), *given])

    def api_path(self, path: str, names: Collection[str]) -> str:
        """The path of the API with these of the parameters."""
        kept = [(name, value) for name, value in self.parameters if name in names]
        return f"{path}?{urlencode(kept)}" if kept else path

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.parameters if key == name]

    def has(self, name: str, value: object) -> bool:
        return (name, str(value)) in self.parameters

    def _without_cursor(self) -> list[tuple[str, str]]:
        return [pair for pair in self.parameters if pair[0] != CURSOR]

    def _of(self, parameters: Iterable[tuple[str, str]]) -> "PageLink":
        return PageLink(path=self.path, parameters=tuple(parameters))


def path_part(text: object) -> str:
    """A name as one part of a path."""
    return quote(str(text), safe="")


def local_path(text: str | None) -> str | None:
    """The address if it is one of this server, for a redirect; None if it would lead away."""
    if not text or not text.startswith("/") or text.startswith(("//", "/\\")):
        return None
    if any(ord(character) < 0x21 or character == "\\" for character in text):
        return None
    parts = urlsplit(text)
    return None if parts.scheme or parts.netloc else text
