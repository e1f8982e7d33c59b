"""From an invalid value to its exact place, in words that say what to write instead."""

import pytest

from config.schema.definitions import faults, read
from tsuzuki.config import InvalidFile


def fault(line: str) -> tuple[str, str, str | None]:
    """Where, what and hint of the one fault in a job with that one `line` beside its command."""
    with pytest.raises(InvalidFile) as caught:
        read(f"jobs:\n  it:\n    command: x\n    {line}\n")
    (problem,) = caught.value.problems
    return str(problem.place).removeprefix("tsuzuki.yaml:"), problem.message, problem.hint


SECONDS = "such as 30s, 10m, 1h30m or 1d, or a number of seconds"


@pytest.mark.parametrize(
    ("line", "place", "message"),
    [
        ("max_retries: three", "4:18", "`max_retries` must be a whole number from 0 to 1000, not 'three'"),
        ("max_retries: 1001", "4:18", "`max_retries` must be a whole number from 0 to 1000, not 1001"),
        ("max_retries: true", "4:18", "`max_retries` must be a whole number from 0 to 1000, not true"),
        ("max_retries: 1.0", "4:18", "`max_retries` must be a whole number from 0 to 1000, not 1.0"),
        ("max_retries:", "4:17", "`max_retries` must be a whole number from 0 to 1000, not empty"),
        ("priority: -1001", "4:15", "`priority` must be a whole number from -1000 to 1000, not -1001"),
        ("max_concurrent: 0", "4:21", "`max_concurrent` must be a whole number from 1 to 100000, not 0"),
        ("enabled: yes", "4:14", "`enabled` must be true or false, not 'yes'"),
        ("misfire: some", "4:14", "`misfire` must be one, skip or all, not 'some'"),
        ("concurrency_policy: [allow]", "4:25", "`concurrency_policy` must be forbid, allow or replace, not a list"),
        ("timeout: 5 parsecs", "4:14", f"`timeout` must be a duration above 0, {SECONDS}, not '5 parsecs'"),
        ("timeout: 0", "4:14", f"`timeout` must be a duration above 0, {SECONDS}, not 0"),
        ("timeout: true", "4:14", f"`timeout` must be a duration above 0, {SECONDS}, not true"),
        ("catchup_window: -1", "4:21", f"`catchup_window` must be a duration {SECONDS}, not -1"),
        ("catchup_window: 999999999d", "4:21", f"`catchup_window` must be a duration {SECONDS}, not '999999999d'"),
        ("tags: gpu", "4:11", "`tags` must be a list of names, not 'gpu'"),
        ("tags: [gpu, 5]", "4:17", "`tags[1]` must be a name, not 5"),
        ("arguments: [1]", "4:16", "`arguments` must be a mapping, not a list"),
        ("description: {}", "4:18", "`description` must be text, not an empty mapping"),
        ('on_event: ""', "4:15", "`on_event` must be a name, not ''"),
        ("cwd: 5", "4:10", "`cwd` must be text, not 5"),
        ("backoff: 5", "4:14", "`backoff` must be a mapping, not 5"),
        ("backoff: {jitter: 2}", "4:23", "`backoff.jitter` must be a number from 0 to 1, not 2"),
        ("backoff: {factor: 0.5}", "4:23", "`backoff.factor` must be a number from 1 to 100, not 0.5"),
        ("backoff: {initial: soon}", "4:24", f"`backoff.initial` must be a duration {SECONDS}, not 'soon'"),
        ("environment: [A]", "4:18", "`environment` must be a mapping of variables to text, not a list"),
        ("environment: {A: 1.10}", "4:22", "`environment.A` must be text (put it in quotes), not 1.1"),
        ('environment: {A: "${"}', "4:22", "`${` is not a valid variable reference"),
        ('environment: {"A=B": x}', "4:19", "invalid variable name 'A=B'"),
        ("schedule: 5", "4:15", "5 is not a schedule"),
        ("schedule: {every: soon}", "4:23", "'soon' is not an interval"),
        ("schedule: {evry: 10m}", "4:16", "unknown key 'evry' in a schedule"),
        ("schedule: {every: 10m, at: x}", "4:28", "unknown key 'at' in a schedule"),
        ("schedule: {daily_at: '09:00', timezone: Mars/X}", "4:45", "unknown time zone 'Mars/X'"),
        ("schedule: {every: 10m, anchor: x}", "4:36", "the anchor 'x' is not a time"),
        ("retries: 3", "4:5", "unknown key `retries`"),
        ("backoff: {inital: 5s}", "4:15", "unknown key `backoff.inital`"),
        ("python: a:b", "4:5", "`python` cannot be combined with `command`"),
        ("type: python", "3:5", "`command` cannot be combined with `type: python`"),
        ("type: boks", "4:11", "`type` must be one of books, command, python, verify, not 'boks'"),
        ("query: {text: x}", "4:5", "`query` does not apply to jobs of type command"),
    ],
)  # fmt: skip
def test_a_fault_in_a_job_is_told_at_its_place(line: str, place: str, message: str) -> None:
    assert fault(line)[:2] == (place, message)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("max_retry: 3", "max_retries"),
        ("retry: 3", "max_retries"),
        ("backoff: {inital: 5s}", "initial"),
        ("type: boks", "books"),
        ("schedule: {evry: 10m}", "every"),
        ("schedule: {daily_at: '09:00', timezone: Asia/Tokio}", "Asia/Tokyo"),
    ],
)
def test_a_slip_is_answered_with_what_was_probably_meant(line: str, meant: str) -> None:
    assert f'Did you mean "{meant}"?' in (fault(line)[2] or "")


def test_a_job_of_unknown_kind_is_suggested_no_key_of_another_one() -> None:
    with pytest.raises(InvalidFile) as caught:
        read("jobs: {it: {comand: x, retry: 3}}\n")
    (_, problem) = caught.value.problems
    assert "max_retries" in (problem.hint or "")


def test_nothing_of_the_validation_library_shows() -> None:
    told = " ".join(
        faults(
            """\
            jobs:
              a: {command: x, arguments: 5, tags: {}, priority: [], backoff: {cap: {}}}
              b: {type: books, query: 5, language: [], limit: {}}
            """
        )
    ).lower()
    for foreign in ("input", "valid", "dict", "pydantic", "field", "instance", "literal", "str "):
        assert foreign not in told
