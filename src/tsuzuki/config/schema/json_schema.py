"""The JSON Schema of `tsuzuki.yaml`, by which an editor completes keys and marks mistakes while they are typed.

It accepts every valid file. What only our own reading finds (times of a schedule, names of zones, secrets that are
written out) it lets pass: `tsuzuki config check` has the last word.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter

from tsuzuki.config.schema.config_file import FileKeys
from tsuzuki.config.schema.job_keys import CommonKeys
from tsuzuki.config.schema.job_kinds import COMMAND, PYTHON, JobKind, with_built_in
from tsuzuki.config.schema.sections import section_models
from tsuzuki.config.schema.webhooks import SECTION as WEBHOOKS
from tsuzuki.config.schema.webhooks import WebhookKeys
from tsuzuki.model.schedule import TRIGGER_KEYS

DIALECT = "http://json-schema.org/draft-07/schema#"
"""The newest that the language servers of editors know whole."""

Schema = dict[str, Any]

_TIMES: Schema = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_MINUTES: Schema = {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}
_WEEKLY: Schema = {
    "type": "object",
    "properties": {"day": {"type": "string"}, "days": _TIMES, "at": _TIMES},
    "additionalProperties": False,
}
_TRIGGERS: Mapping[str, Schema] = {
    "cron": {"type": "string", "description": "five fields, such as */5 * * * *"},
    "every": {"type": ["string", "number"], "description": "an interval, such as 10m"},
    "daily_at": {**_TIMES, "description": "a time in quotes, or a list of them"},
    "hourly_at_minute": {**_MINUTES, "description": "the minute of each hour"},
    "weekdays_at": {**_TIMES, "description": "a time in quotes, Monday to Friday"},
    "weekly": {**_WEEKLY, "description": "{day: monday, at: '09:00'}"},
    "anchor": {"type": "string", "description": "a time from which the interval is counted"},
}
_VARIABLE: Schema = {"type": "string", "pattern": r"\$\{", "description": "expanded from ${NAME}"}


def json_schema(kinds: Mapping[str, JobKind]) -> Schema:
    """The schema of a file with jobs of these kinds, beside commands and Python functions. A refused kind may have
    any keys."""
    definitions: Schema = {}
    known = {name: kind for name, kind in with_built_in(kinds).items() if kind.refusal is None}
    refused = [name for name, kind in kinds.items() if kind.refusal is not None]
    properties = _of_model(FileKeys, definitions)["properties"]
    properties["jobs"] = {
        "type": ["object", "null"],
        "additionalProperties": _job(known, refused, definitions),
    }
    properties[WEBHOOKS] = {
        "type": ["object", "null"],
        "additionalProperties": _of_model(WebhookKeys, definitions),
    }
    for name, model in section_models(known).items():
        properties[name] = _of_section(name, model, definitions)
    properties |= {name: {} for name in refused}
    return {
        "$schema": DIALECT,
        "title": "tsuzuki.yaml",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "definitions": definitions,
    }


def _job(kinds: Mapping[str, JobKind], refused: list[str], definitions: Schema) -> Schema:
    """A job has the keys of every job and those of its kind, which is named by `type`, `command` or `python`."""
    common = _of_model(CommonKeys, definitions)["properties"]
    common["type"] = {"enum": [*kinds, *refused], "description": "the job type"}
    common["schedule"] = _schedule()
    for name, kind in kinds.items():
        own = _of_model(kind.options_model, definitions)
        definitions[f"job.{name}"] = {
            **own,
            "properties": {**own["properties"], **common},
        }
    named = {name: {"$ref": f"#/definitions/job.{name}"} for name in kinds}
    return {
        "type": "object",
        "properties": {
            key: True for name in kinds for key in definitions[f"job.{name}"]["properties"]
        }
        | common,
        "anyOf": [{"required": [key]} for key in ("type", COMMAND.name, PYTHON.name)],
        "allOf": [
            *({"if": _has_type(name), "then": part} for name, part in named.items()),
            *(
                {"if": _has_key_and_no_type(name), "then": named[name]}
                for name in (COMMAND.name, PYTHON.name)
            ),
        ],
    }


def _has_type(name: str) -> Schema:
    return {"required": ["type"], "properties": {"type": {"const": name}}}


def _has_key_and_no_type(key: str) -> Schema:
    return {"required": [key], "not": {"required": ["type"]}}


def _schedule() -> Schema:
    if missing := set(TRIGGER_KEYS) - _TRIGGERS.keys():
        raise AssertionError(f"the schema does not know how to write {sorted(missing)}")
    zone = {"type": "string", "description": "a time zone name"}
    parts = {**_TRIGGERS, "timezone": zone}
    return {
        "description": "a phrase such as 'daily at 07:00', or a mapping",
        "anyOf": [
            {"type": "string"},
            {"type": "object", "properties": parts, "additionalProperties": False},
            {"type": "null"},
        ],
    }


def _of_section(name: str, model: type[BaseModel], definitions: Schema) -> Schema:
    """In a section every value may be a variable."""
    own: Schema = {}
    schema = _of_model(model, own, prefix=f"{name}.")
    definitions.update({key: _or_variable(part) for key, part in own.items()})
    return {"anyOf": [_or_variable(schema), {"type": "null"}]}


def _or_variable(node: Any) -> Any:
    """The same schema, in which a number, a flag or one of several words may also be a variable."""
    if isinstance(node, list):
        return [_or_variable(part) for part in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") in ("integer", "number", "boolean") or "enum" in node:
        return {"anyOf": [node, _VARIABLE]}
    return {
        key: {name: _or_variable(one) for name, one in part.items()}
        if key == "properties"
        else _or_variable(part)
        for key, part in node.items()
        if key != "default"
    }


def _of_model(model: type[BaseModel], definitions: Schema, *, prefix: str = "") -> Schema:
    """The schema of a model as it is written in the file. What it refers to is put into `definitions`, under names
    with the `prefix`."""
    template = f"#/definitions/{prefix}{{model}}"
    schema = TypeAdapter(model).json_schema(by_alias=True, ref_template=template)
    parts = schema.pop("$defs", {})
    definitions.update({f"{prefix}{name}": part for name, part in parts.items()})
    return schema
