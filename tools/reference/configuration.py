"""The page of `tsuzuki.yaml`: each section and each key with its value, default and meaning."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import PydanticUndefined, to_jsonable_python

from tools.reference.field_meanings import meaning_of
from tools.reference.markdown import code, page, table
from tsuzuki.config.schema.annotations import expected_words, model_at
from tsuzuki.config.schema.config_file import FileKeys
from tsuzuki.config.schema.job_keys import CommonKeys
from tsuzuki.config.schema.job_kinds import COMMAND, PYTHON
from tsuzuki.config.schema.web import SECTION as WEB
from tsuzuki.config.schema.web import WebSection
from tsuzuki.config.schema.webhooks import WebhookKeys
from tsuzuki.model.jsontext import encode
from tsuzuki.wiring.collectors import installed_collectors

_HEAD = ("key", "value", "default", "meaning")
_DURATION = "a duration"
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def configuration_page() -> str:
    kinds = list(installed_collectors().kinds.values())
    return page(
        "tsuzuki.yaml",
        "Every key of the file. How file, environment and flags go together is in"
        " [the guide](../guide/configuration.md). A nested key is written with a dot: `backoff.initial` is `initial`"
        " in the mapping `backoff`, and `*` stands for a name that you give. A duration is a number of seconds, or"
        " words: `30s`, `10m`, `1h30m`, `1d`.",
        "## The file",
        _table(FileKeys),
        "## Every job",
        "Below `jobs:`, by the name of the job.",
        _table(CommonKeys),
        "## A command",
        _table(COMMAND.options_model),
        "## A Python function",
        _table(PYTHON.options_model),
        *(f"## A job of `type: {one.name}`\n\n{_table(one.options_model)}" for one in kinds),
        *(
            f"## The section `{one.name}`\n\n{_section(one.name)}\n\n{_table(one.section_model)}"
            for one in kinds
            if one.section_model
        ),
        f"## The section `{WEB}`\n\n{_section(WEB)}\n\n{_table(WebSection)}",
        "## The section `webhooks`",
        "By the name of the webhook.",
        _table(WebhookKeys),
    )


def _section(name: str) -> str:
    return (
        f"Each value is also read from the variable `TSUZUKI_{name.upper()}_` and its key in capitals, or from the file"
        " that the same name with `_FILE` at its end leads to. Keys with a `*` in them stand in the file only."
    )


def _table(model: type[BaseModel]) -> str:
    return table(_HEAD, _rows(model, "", None))


def _rows(model: type[BaseModel], lead: str, given: Any) -> Iterator[tuple[str, ...]]:
    """The keys of a model. Those of a nested one follow under their own path; `given` is its default."""
    for name, field in model.model_fields.items():
        key = field.alias or name
        default = _default(field.get_default(call_default_factory=True, validated_data={}))
        if isinstance(given, Mapping) and key in given:
            default = given[key]
        nested, path = _nested(model, key), f"{lead}{key}"
        words = "a mapping" if nested else _value(model, key, field.annotation)
        is_needed = field.is_required()
        shown = "" if nested else _shown(default, words)
        yield (
            code(path),
            words,
            "(needed)" if is_needed else shown,
            meaning_of(model, name),
        )
        if nested:
            inside, is_named = nested
            yield from _rows(inside, f"{path}.*." if is_named else f"{path}.", default)


def _nested(model: type[BaseModel], key: str) -> tuple[type[BaseModel], bool] | None:
    """The model of the mapping at a key, and whether it stands there once for each name."""
    inside = model_at(model, (key,))
    if inside is not None:
        return inside, False
    named = model_at(model, (key, "*"))
    return (named, True) if named is not None else None


def _default(value: object) -> Any:
    if value is PydanticUndefined:
        return None
    return to_jsonable_python(value, fallback=str, by_alias=True)


def _shown(default: Any, words: str) -> str:
    if default is None or default in ("", [], {}):
        return ""
    if _DURATION in words and isinstance(default, int | float):
        return code(_duration(default))
    if isinstance(default, str):
        return code(default.replace("\n", "\\n"))
    return code(encode(default))


def _duration(seconds: float) -> str:
    for unit, letter in _UNITS:
        if seconds and seconds % unit == 0:
            return f"{seconds / unit:g}{letter}"
    return f"{seconds:g}s"


def _value(model: type[BaseModel], key: str, annotation: Any) -> str:
    words = expected_words(model, (key,)) or _kind(annotation)
    return re.sub(r",? such as 30s.*", "", words)


def _kind(annotation: Any) -> str:
    """The words for a type that says nothing itself."""
    inside = [one for one in get_args(annotation) if one is not type(None)]
    name = getattr(annotation, "__name__", "")
    known = {
        "str": "text",
        "SecretStr": "a secret, written as `${NAME}`",
        "dict": "a mapping",
        "list": "a list",
    }
    return known.get(name) or (_kind(inside[0]) if inside else "")
