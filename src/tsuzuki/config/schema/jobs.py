"""Read the definition of a job: from its body to a `JobSpec`, or to all problems of it."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from tsuzuki.config.schema.job_keys import COMMON_KEYS, CommonKeys
from tsuzuki.config.schema.job_kinds import JobKind, find_kind, nothing_to_run, with_built_in
from tsuzuki.config.schema.problems import ConfigProblem, invalid
from tsuzuki.config.schema.validation import validate
from tsuzuki.config.yaml.nodes import KeyPath
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.job import NAME_PATTERN, JobSpec
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.schedule import Schedule, parse_schedule

DEFAULT_TIMEZONE = "UTC"


def parse_job(
    name: str,
    body: Mapping[str, Any],
    *,
    kinds: Mapping[str, JobKind],
    default_timezone: str = DEFAULT_TIMEZONE,
) -> JobSpec:
    """A job that is not in a file, by the same rules as one that is. Raises `InvalidFile`."""
    problems: list[ConfigProblem] = []
    job = read_job(
        name,
        body,
        path=(),
        kinds=kinds,
        default_timezone=default_timezone,
        problems=problems,
    )
    if job is None:
        raise invalid(problems)
    return job


def problem_at(
    name: str, body: Mapping[str, Any], key: KeyPath, *, kinds: Mapping[str, JobKind]
) -> ConfigurationError | None:
    """What is wrong with one key of a job; an empty `key` is the name. What else is wrong or missing does not
    count."""
    problems: list[ConfigProblem] = []
    read_job(name, body, path=(), kinds=kinds, default_timezone=DEFAULT_TIMEZONE, problems=problems)
    found = (
        problem
        for problem in problems
        if (problem.path[: len(key)] == key if key else problem.code == "job_name")
    )
    problem = next(found, None)
    return problem.as_error(None) if problem else None


def read_job(
    name: str,
    body: object,
    *,
    path: KeyPath,
    kinds: Mapping[str, JobKind],
    default_timezone: str,
    problems: list[ConfigProblem],
) -> JobSpec | None:
    """The job `name` with the `body` at `path`. If invalid: None, and its `problems` are added."""
    before = len(problems)
    if not NAME_PATTERN.fullmatch(name):
        problems.append(_invalid_name(name, path))
    if not isinstance(body, Mapping) or not body:
        problems.append(nothing_to_run(name, path))
        return None
    kind = find_kind(name, body, path=path, kinds=with_built_in(kinds), problems=problems)
    schedule = _read_schedule(body.get("schedule"), path, default_timezone, problems)
    common = validate(CommonKeys, _part(body, COMMON_KEYS), path=path, problems=problems)
    if kind is None:
        return None
    options = validate(kind.options_model, _part(body, kind.keys), path=path, problems=problems)
    if common is None or options is None or len(problems) > before:
        return None
    return _spec(name, kind, common, options, schedule)


def _invalid_name(name: str, path: KeyPath) -> ConfigProblem:
    return ConfigProblem(
        path=path,
        message=f"invalid job name {name!r}",
        hint="Use up to 100 letters, digits, '.', '_' and '-', starting with a letter or digit.",
        code="job_name",
        at_key=True,
    )


def _read_schedule(
    value: object, path: KeyPath, default_timezone: str, problems: list[ConfigProblem]
) -> Schedule | None:
    if value is None:
        return None
    try:
        return parse_schedule(value, default_timezone=default_timezone)
    except ConfigurationError as error:
        invalid_part, at_key = _invalid_part(value)
        problems.append(
            ConfigProblem(
                path=(*path, "schedule", *invalid_part),
                message=error.message,
                hint=error.hint,
                code=error.specific_code,
                at_key=at_key,
            )
        )
        return None


def _invalid_part(schedule: object) -> tuple[KeyPath, bool]:
    """The path to the invalid part of a `schedule`, and whether the key itself is invalid. It is the
    part without which the rest is valid."""
    if not isinstance(schedule, Mapping):
        return (), False
    for key in reversed(schedule):
        rest = {other: value for other, value in schedule.items() if other != key}
        if _schedule_error(rest) is None:
            return (key,), key not in ("timezone", "anchor")
    if len(schedule) != 1:
        return (), False
    (key,) = schedule
    # An unknown key fails with the same message for every value.
    return (key,), _schedule_error(schedule) == _schedule_error({key: None})


def _schedule_error(schedule: Mapping[str, Any]) -> str | None:
    try:
        parse_schedule(schedule)
    except ConfigurationError as error:
        return error.message
    return None


def _part(body: Mapping[str, Any], keys: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key in keys}


def _spec(
    name: str, kind: JobKind, common: CommonKeys, options: BaseModel, schedule: Schedule | None
) -> JobSpec:
    backoff = common.backoff
    return JobSpec(
        name=name,
        handler=kind.name,
        options=options.model_dump(mode="json", by_alias=False),
        arguments=common.arguments,
        description=common.description,
        enabled=common.enabled,
        schedule=schedule,
        spread_seconds=common.spread,
        on_event=common.on_event,
        misfire=common.misfire,
        catchup_window_seconds=common.catchup_window,
        concurrency_policy=common.concurrency_policy,
        max_concurrent=common.max_concurrent,
        concurrency_key=common.concurrency_key,
        max_concurrent_per_key=common.max_concurrent_per_key,
        priority=common.priority,
        timeout_seconds=common.timeout,
        retry=RetryPolicy(
            max_retries=common.max_retries,
            initial_seconds=backoff.initial,
            factor=backoff.factor,
            cap_seconds=backoff.cap,
            jitter=backoff.jitter,
        ),
        tags=frozenset(common.tags),
    )
