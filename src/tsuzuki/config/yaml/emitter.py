"""Values as YAML text, in the plainest form that every reader of YAML reads alike."""

import re
from collections.abc import Mapping
from typing import Any

from tsuzuki.config.yaml.nodes import resolve

WIDTH_MAX = 100

# Unquoted only what cannot be mistaken: words and paths, and durations like 1h30m. Anything else
# that begins with a digit or a dot might be a number or a date to somebody.
_PLAIN = re.compile(r"(?:[^\W\d]|\.{0,2}/)(?: ?[\w./+@%=-])*|(?:[0-9]{1,9}[smhd])+")
_OLD_BOOLEANS = frozenset({"y", "n", "yes", "no", "on", "off"})
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def inline(value: Any) -> str:
    """`value` on one line, good at any place where a value may stand."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        parts = [f"{_text(key)}: {inline(part)}" for key, part in value.items()]
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(inline(part) for part in value)}]"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def lines(key: str, value: Any, *, indent: str, step: str) -> list[str]:
    """`key` and `value` as lines of a block: one line if it fits, else one line for each part."""
    single = f"{indent}{_text(key)}: {inline(value)}"
    if len(single) <= WIDTH_MAX or not value or not isinstance(value, Mapping | list):
        return [single]
    return [f"{indent}{_text(key)}:", *_parts(value, indent=indent + step, step=step)]


def block(key: str, body: Mapping[str, Any], *, indent: str, step: str) -> list[str]:
    """`key` with each part of its `body` in a line of its own."""
    return [f"{indent}{_text(key)}:", *_parts(body, indent=indent + step, step=step)]


def _parts(value: Mapping[str, Any] | list[Any], *, indent: str, step: str) -> list[str]:
    if isinstance(value, Mapping):
        parts = value.items()
        return [line for key, part in parts for line in lines(key, part, indent=indent, step=step)]
    return [f"{indent}- {inline(part)}" for part in value]


def _text(text: str) -> str:
    is_plain = (
        _PLAIN.fullmatch(text) is not None
        and isinstance(resolve(text), str)
        and text.lower() not in _OLD_BOOLEANS
    )
    return text if is_plain else f'"{"".join(_escaped(character) for character in text)}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
