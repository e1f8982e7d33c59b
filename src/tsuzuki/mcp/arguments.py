"""The arguments of a call, checked against the tool's definition.

An argument that the tool does not have is an error that names those it has. Common aliases are understood, and so are
values that only their type is wrong of: `"20"` for 20, one text for a list of texts.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tsuzuki.mcp.tokens import compact_json
from tsuzuki.mcp.tool import Tool, ToolParameter
from tsuzuki.model.errors import UsageError
from tsuzuki.model.suggestion import closest

SHOWN_LENGTH_MAX = 60
_MISSING: tuple[object, ...] = (None, "", [])


def checked_arguments(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments under their own names, of their own types; those that say nothing are left out."""
    names = _names_of(tool)
    found: dict[str, Any] = {}
    for name, value in given.items():
        parameter = names.get(name) or names.get(_normal(name))
        if parameter is None:
            raise _refusal(tool, f'{tool.name} has no argument "{name[:SHOWN_LENGTH_MAX]}".', name)
        if value in _MISSING:
            continue
        if parameter.name in found:
            raise _refusal(tool, f'"{parameter.name}" and its alias "{name}" cannot be combined.')
        found[parameter.name] = _value(tool, parameter, value)
    for parameter in tool.parameters:
        if parameter.required and parameter.name not in found:
            raise _refusal(tool, f'{tool.name} requires "{parameter.name}".')
    return found


def _normal(name: str) -> str:
    """`maxTokens` and `max-tokens` are `max_tokens`."""
    spaced = "".join(f"_{one}" if one.isupper() else one for one in name)
    return spaced.replace("-", "_").strip("_").lower()


def _names_of(tool: Tool) -> dict[str, ToolParameter]:
    """Every name that a parameter may be given by. A real name is never an alias of another."""
    aliases = {alias: one for one in tool.parameters for alias in one.aliases}
    return {**aliases, **{one.name: one for one in tool.parameters}}


def _refusal(tool: Tool, what: str, misspelt: str = "") -> UsageError:
    guess = closest(_normal(misspelt), [one.name for one in tool.parameters]) if misspelt else None
    suggestion = f' Did you mean "{guess}"?' if guess else ""
    known = ", ".join(
        f"{one.name}{' (required)' if one.required else ''}" for one in tool.parameters
    )
    return UsageError(
        f"{what}{suggestion}",
        hint=f"Arguments: {known}.\nNext: {next_call(tool)}",
        code="bad_arguments",
    )


def next_call(tool: Tool, arguments: Mapping[str, Any] | None = None) -> str:
    """A call in words: `code_search {"query":"Server"}`."""
    return call_words(tool.name, arguments or tool.example)


def call_words(tool: str, arguments: Mapping[str, Any]) -> str:
    return f"{tool} {compact_json(dict(arguments))}"


def _value(tool: Tool, parameter: ToolParameter, value: Any) -> Any:
    wanted = parameter.schema.get("type")
    types = [wanted] if isinstance(wanted, str) else list(wanted or ())
    for one in types:
        read = _READERS[one](value)
        if read is not None and _is_within(parameter, read):
            return read
    raise _refusal(
        tool,
        f'"{parameter.name}" of {tool.name} must be {_wanted_words(parameter, types)},'
        f" not {compact_json(value)[:SHOWN_LENGTH_MAX]}.",
    )


def _is_within(parameter: ToolParameter, value: Any) -> bool:
    schema = parameter.schema
    if "enum" in schema and value not in schema["enum"]:
        return False
    is_number = isinstance(value, int) and not isinstance(value, bool)
    least, most = schema.get("minimum"), schema.get("maximum")
    return not is_number or ((least is None or value >= least) and (most is None or value <= most))


def _wanted_words(parameter: ToolParameter, types: Sequence[str]) -> str:
    schema = parameter.schema
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    words = " or ".join(
        {"array": "a list of strings", "string": "a text"}.get(one, one) for one in types
    )
    if "minimum" in schema and "maximum" in schema:
        return f"{words} from {schema['minimum']} to {schema['maximum']}"
    return f"{words} of at least {schema['minimum']}" if "minimum" in schema else words


def _text(value: Any) -> str | None:
    if isinstance(value, list) and len(value) == 1:
        return _text(value[0])
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else None


def _integer(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str):
        return int(value) if value.strip().isascii() and value.strip().isdigit() else None
    return value if isinstance(value, int) else None


def _boolean(value: Any) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def _texts(value: Any) -> list[str] | None:
    if isinstance(value, str):
        return _texts_in_json(value) or [value]
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        return None
    return value


def _texts_in_json(value: str) -> list[str] | None:
    """Some clients write a list as text."""
    if not value.startswith("["):
        return None
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return None
    is_list = isinstance(found, list) and found and all(isinstance(one, str) for one in found)
    return found if is_list else None


def _object(value: Any) -> dict[str, Any] | None:
    """Some clients write an object as text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


_READERS: dict[str, Callable[[Any], Any]] = {
    "string": _text,
    "integer": _integer,
    "boolean": _boolean,
    "array": _texts,
    "object": _object,
}
