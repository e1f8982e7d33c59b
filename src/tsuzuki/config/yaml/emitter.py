"""Emit values as YAML text, in a form that YAML 1.1 and 1.2 parsers read alike."""

import re
from collections.abc import Mapping
from typing import Any

from tsuzuki.config.yaml.nodes import resolve_scalar

WIDTH_MAX = 100

# Unquoted is only unambiguous text: words, paths, and durations like 1h30m. Other text that begins
# with a digit or a dot could be a number or a date to another parser.
_PLAIN = re.compile(r"(?:[^\W\d]|\.{0,2}/)(?: ?[\w./+@%=-])*|(?:[0-9]{1,9}[smhd])+")
_YAML_1_1_BOOLEANS = frozenset({"y", "n", "yes", "no", "on", "off"})
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def emit_flow(value: Any) -> str:
    """`value` in flow style, on one line."""
    if isinstance(value, str):
        return _emit_text(value)
    if isinstance(value, Mapping):
        parts = [f"{_emit_text(key)}: {emit_flow(part)}" for key, part in value.items()]
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(emit_flow(part) for part in value)}]"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def emit_entry(key: str, value: Any, *, indent: str, step: str) -> list[str]:
    """The lines of one entry: in flow style if that fits the width, else in block style."""
    single = f"{indent}{_emit_text(key)}: {emit_flow(value)}"
    if len(single) <= WIDTH_MAX or not value or not isinstance(value, Mapping | list):
        return [single]
    return emit_block(key, value, indent=indent, step=step)


def emit_block(
    key: str, value: Mapping[str, Any] | list[Any], *, indent: str, step: str
) -> list[str]:
    """The lines of one entry in block style: the key, then each part of its value."""
    inner = indent + step
    if isinstance(value, Mapping):
        entries = (emit_entry(name, part, indent=inner, step=step) for name, part in value.items())
        parts = [line for entry in entries for line in entry]
    else:
        parts = [f"{inner}- {emit_flow(part)}" for part in value]
    return [f"{indent}{_emit_text(key)}:", *parts]


def _emit_text(text: str) -> str:
    is_plain = (
        _PLAIN.fullmatch(text) is not None
        and isinstance(resolve_scalar(text), str)
        and text.lower() not in _YAML_1_1_BOOLEANS
    )
    return text if is_plain else f'"{"".join(_escape(character) for character in text)}"'


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
