"""The body of a job from its `JobSpec`: what `parse_job` reads to the same spec again.

Keys that have their default are left out, so that a person sees what was said and no more.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined, to_jsonable_python

from tsuzuki.config.schema.job_keys import Backoff, CommonKeys
from tsuzuki.config.schema.job_kinds import COMMAND, PYTHON, JobKind, with_built_in
from tsuzuki.config.yaml.emitter import emit_entry
from tsuzuki.model.job import JobSpec


def body_of(spec: JobSpec, *, kinds: Mapping[str, JobKind]) -> dict[str, Any]:
    named = {} if spec.handler in (COMMAND.name, PYTHON.name) else {"type": spec.handler}
    kind = with_built_in(kinds).get(spec.handler)
    model = kind.options_model if kind and kind.refusal is None else None
    options = _said(model, spec.options) if model else dict(spec.options)
    return {**named, **options, **_said(CommonKeys, _common(spec))}


def body_text(body: Mapping[str, Any]) -> str:
    """As it is written in the file, below the name of the job."""
    lines = [line for key in body for line in emit_entry(key, body[key], indent="", step="  ")]
    return "\n".join(lines)


def _common(spec: JobSpec) -> dict[str, Any]:
    retry = spec.retry
    backoff = {
        "initial": retry.initial_seconds,
        "factor": retry.factor,
        "cap": retry.cap_seconds,
        "jitter": retry.jitter,
    }
    return {
        "description": spec.description,
        "arguments": dict(spec.arguments),
        "schedule": spec.schedule.as_mapping() if spec.schedule else None,
        "spread": spec.spread_seconds,
        "on_event": spec.on_event,
        "enabled": spec.enabled,
        "misfire": spec.misfire.value,
        "catchup_window": spec.catchup_window_seconds,
        "concurrency_policy": spec.concurrency_policy.value,
        "max_concurrent": spec.max_concurrent,
        "concurrency_key": spec.concurrency_key,
        "max_concurrent_per_key": spec.max_concurrent_per_key,
        "priority": spec.priority,
        "timeout": spec.timeout_seconds,
        "max_retries": retry.max_retries,
        "backoff": backoff,
        "tags": sorted(spec.tags),
    }


def _said(model: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are not the default of their key, under the names of the file."""
    said: dict[str, Any] = {}
    for name, value in values.items():
        field = model.model_fields.get(name)
        default = field.get_default(call_default_factory=True) if field else PydanticUndefined
        if default is PydanticUndefined or to_jsonable_python(default) != value:
            said[(field.alias if field else None) or name] = _shortest(value)
    return said


def _shortest(value: Any) -> Any:
    """`600` for 600.0."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict) and value.keys() == Backoff.model_fields.keys():
        return {name: _shortest(part) for name, part in value.items()}
    return value
