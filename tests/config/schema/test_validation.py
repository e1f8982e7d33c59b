"""From a fault in a file to its exact place, in words that say what to write instead."""

import pytest

from config.book_kind import read
from tsuzuki.config import InvalidFile


def faults(text: str) -> list[str]:
    with pytest.raises(InvalidFile) as caught:
        read(text)
    return [f"{problem.place}: {problem.message}" for problem in caught.value.problems]


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
        ('environment: {A: "${"}', "4:22", "`${` is not a variable"),
        ('environment: {"A=B": x}', "4:19", "'A=B' cannot be the name of a variable"),
        ("schedule: 5", "4:15", "5 is not a schedule"),
        ("schedule: {every: soon}", "4:23", "'soon' is not an interval"),
        ("schedule: {evry: 10m}", "4:16", "a schedule has no 'evry' here"),
        ("schedule: {every: 10m, at: x}", "4:28", "a schedule has no 'at' here"),
        ("schedule: {daily_at: '09:00', timezone: Mars/X}", "4:45", "'Mars/X' is not a time zone"),
        ("schedule: {every: 10m, anchor: x}", "4:36", "the anchor 'x' is not a time"),
        ("retries: 3", "4:5", "`retries` is not a key we know"),
        ("backoff: {inital: 5s}", "4:15", "`backoff.inital` is not a key we know"),
        ("python: a:b", "4:5", "`python` does not go together with `command`"),
        ("type: python", "3:5", "`command` does not go together with `type: python`"),
        ("type: boks", "4:11", "`type` must be one of books, command, python, not 'boks'"),
        ("query: {text: x}", "4:5", "`query` has no meaning for a job of type command"),
    ],
)  # fmt: skip
def test_a_fault_in_a_job_is_told_at_its_place(line: str, place: str, message: str) -> None:
    assert fault(line)[:2] == (place, message)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("max_retry: 3", "max_retries"),
        ("backoff: {inital: 5s}", "initial"),
        ("type: boks", "books"),
        ("schedule: {evry: 10m}", "every"),
        ("schedule: {daily_at: '09:00', timezone: Asia/Tokio}", "Asia/Tokyo"),
    ],
)
def test_a_slip_is_answered_with_what_was_probably_meant(line: str, meant: str) -> None:
    assert f'Did you mean "{meant}"?' in (fault(line)[2] or "")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("[]", "`command` must be a list of words, or text to be split into words, not an empty list"),
        ('""', "`command` must be a list of words, or text to be split into words, not ''"),
        ("5", "`command` must be a list of words, or text to be split into words, not 5"),
        ("[sleep, 0.5]", "`command[1]` must be text (put it in quotes), not 0.5"),
        ("[a, [b]]", "`command[1]` must be text (put it in quotes), not a list"),
        ("echo 'a", "`command` has a quote that is never closed"),
        ("cat a | sort", "`command` is not run by a shell, so `|` would be an argument"),
        ("make && make install", "`command` is not run by a shell, so `&&` would be an argument"),
    ],
)  # fmt: skip
def test_a_command_that_cannot_run_is_refused(command: str, message: str) -> None:
    (told,) = faults(f"jobs:\n  it:\n    command: {command}\n")
    assert told.endswith(message)


@pytest.mark.parametrize("function", ["module", "module:", ":f", "a b:c", "a.b:c d", "1a:b", "[x]"])
def test_a_function_is_named_by_module_and_name(function: str) -> None:
    (told,) = faults(f"jobs:\n  it:\n    python: '{function}'\n")
    assert '`python` must be text like "package.module:function", not ' in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("jobs:\n  it:\n", "2:3: job `it` does not say what to run"),
        ("jobs:\n  it: {}\n", "2:3: job `it` does not say what to run"),
        ("jobs:\n  it: echo\n", "2:3: job `it` does not say what to run"),
        ("jobs:\n  it:\n    timeout: 5m\n", "2:3: job `it` does not say what to run"),
        ("jobs:\n  it:\n    comand: x\n", "3:5: `comand` is not a key we know"),
        ("jobs:\n  it:\n    type: command\n", "2:3: `command` is missing"),
        ("jobs:\n  not this:\n    command: x\n", "2:3: 'not this' cannot be a job name"),
        ("jobs:\n  - it\n", "2:3: `jobs` must be a mapping of names to jobs, not a list"),
        ("version: 2\n", "1:10: `version` must be 1, the only version there is, not 2"),
        ("timezone: Asia/Tokio\n", "1:11: 'Asia/Tokio' is not a time zone"),
        ("timezone: 9\n", "1:11: `timezone` must be the name of a time zone, not 9"),
        ("job:\n  it: {command: x}\n", "1:1: `job` is not a key we know"),
        ("database_url: 5\n", "1:15: `database_url` must be a URL, not 5"),
        ("redis_url: ${\n", "1:12: `${` is not a variable"),
        ("- it\n", "1:1: the file must be a mapping with the keys version, database_url, "
         "redis_url, timezone, log_archive, jobs"),
        ("jobs:\n  it:\n    type: books\n", "2:3: `query` is missing"),
        ("jobs:\n  it:\n    type: books\n    query: {}\n", "4:5: `query.text` is missing"),
        ("jobs:\n  it: {type: books, query: {text: a, pages_max: 99}}\n",
         "2:49: `query.pages_max` must be at most 40, not 99"),
        ("jobs:\n  it: {type: books, query: {text: a, page_max: 9}}\n",
         "2:38: `query.page_max` is not a key we know"),
        ("jobs:\n  it: {type: books, query: {text: a}, language: fr}\n",
         "2:49: `language` must be one of 'en' or 'ja', not 'fr'"),
        ("jobs:\n  it: {type: books, query: {text: a}, shelf: 5}\n",
         "2:46: `shelf` must be the name of a shelf, not 5"),
        ("jobs:\n  it: {type: books, query: {text: a}, limit: many}\n",
         "2:46: `limit` must be a whole number, not 'many'"),
    ],
)  # fmt: skip
def test_a_fault_in_the_shape_of_the_file_is_told_at_its_place(text: str, told: str) -> None:
    assert faults(text) == [f"tsuzuki.yaml:{told}"]


@pytest.mark.parametrize(
    "line",
    [
        "database_url: postgresql://me:hunter2@host/db",
        "database_url: postgresql://host/db?password=hunter2",
        "database_url: ${URL:-postgresql://me:hunter2@host/db}",
        "database_url: postgresql://me:hunter${TWO}2@host/db",
        "redis_url: redis://:hunter2@host",
        "log_archive: s3://key:hunter2@bucket/logs",
    ],
)
def test_a_password_written_out_in_a_url_is_refused_and_not_repeated(line: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        read(line + "\n")
    error = caught.value
    assert error.specific_code == "secret_in_file"
    assert error.hint is not None
    assert "${NAME}" in error.hint
    assert "_FILE" in error.hint
    assert "hunter" not in f"{error.message} {error.hint} {error.place and error.place.text}"


def test_a_password_taken_from_a_variable_is_fine() -> None:
    url = "postgresql://me:${PASSWORD}@host/db"
    assert read(f"database_url: {url}\n").database_url == url


def test_all_problems_are_told_together_from_the_top_down() -> None:
    text = """\
        timezone: Nowhere
        jobs:
          b:
            command: x
            priority: high
          a:
            comand: x
            timeout: soon
        version: 3
        """
    with pytest.raises(InvalidFile) as caught:
        read(text)
    error = caught.value
    assert [str(problem.place) for problem in error.problems] == [
        f"tsuzuki.yaml:{place}" for place in ("1:11", "5:15", "7:5", "8:14", "9:10")
    ]
    assert error.message == f"{error.problems[0].message} (and 4 more)"
    assert error.place == error.problems[0].place
    assert [told["line"] for told in error.as_dict()["problems"]] == [1, 5, 7, 8, 9]


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
