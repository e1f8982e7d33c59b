"""Field types: commands, functions, and passwords in URLs."""

import pytest

from config.schema.definitions import faults, job, read
from tsuzuki.config import InvalidFile


@pytest.mark.parametrize(
    ("written", "argv"),
    [
        ("echo hello world", ["echo", "hello", "world"]),
        ("\"echo 'a b' c\\\\ d\"", ["echo", "a b", "c d"]),
        ("cut -d '|' -f 2", ["cut", "-d", "|", "-f", "2"]),
        ("[echo, '|']", ["echo", "|"]),
    ],
)
def test_a_command_may_be_text_that_is_split_like_a_shell_would(
    written: str, argv: list[str]
) -> None:
    assert job(f"command: {written}").options["argv"] == argv


def test_variables_of_a_job_are_not_filled_in_so_secrets_reach_no_database() -> None:
    assert job("command: x\nenvironment: {A: '${HOME}'}").options["environment"] == {"A": "${HOME}"}


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("[]", "`command` must be a list of words, or text to be split into words, not an empty list"),
        ('""', "`command` must be a list of words, or text to be split into words, not ''"),
        ("5", "`command` must be a list of words, or text to be split into words, not 5"),
        ("[sleep, 0.5]", "`command[1]` must be text (put it in quotes), not 0.5"),
        ("[a, [b]]", "`command[1]` must be text (put it in quotes), not a list"),
        ("echo 'a", "`command` has an unclosed quote"),
        ("cat a | sort", "`command` does not run in a shell, so `|` would be an argument"),
        ("make && make install", "`command` does not run in a shell, so `&&` would be an argument"),
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
