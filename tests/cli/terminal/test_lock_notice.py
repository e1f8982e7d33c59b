"""A command that waits for a locked SQLite file says so, and goes on when the lock is given back."""

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from support.forked_program import ForkedProgram
from support.workspace import Workspace, process_environment
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal import lock_notice
from tsuzuki.cli.terminal.output import warn
from tsuzuki.store.sql.sqlite import LOCK_TIMEOUT_SECONDS


@pytest.fixture
def other(workspace: Workspace) -> Iterator[sqlite3.Connection]:
    """Another writer of the workspace's file."""
    file = workspace.folder / "tsuzuki.db"
    with closing(sqlite3.connect(file, check_same_thread=False)) as connection:
        yield connection


def test_a_command_says_that_it_waits_and_for_which_process(
    workspace: Workspace, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def give_back_when_told(invocation: Invocation, text: str) -> None:
        warn(invocation, text)
        other.rollback()

    monkeypatch.setattr(lock_notice, "NOTICE_AFTER_SECONDS", 0.05)
    monkeypatch.setattr(lock_notice, "CHECK_SECONDS", 0.01)
    monkeypatch.setattr(lock_notice, "warn", give_back_when_told)
    other.execute("BEGIN IMMEDIATE")
    said = workspace.ok("job", "disable", "hello").err
    assert f"tsuzuki.db is locked by process {os.getpid()}" in said
    assert said.count("is locked by") == 1


def test_a_command_that_need_not_wait_says_nothing(workspace: Workspace) -> None:
    assert "is locked by" not in workspace.ok("job", "disable", "hello").err


def test_a_command_that_waits_for_the_lock_answers_an_interrupt_at_once(
    workspace: Workspace, other: sqlite3.Connection
) -> None:
    """It waited on inside SQLite, up to a minute, as if the key had not been pressed."""
    other.execute("BEGIN IMMEDIATE")
    reading, writing = os.pipe()
    with os.fdopen(reading) as told, os.fdopen(writing, "w") as stderr:
        command = ForkedProgram(
            ("job", "disable", "hello"),
            cwd=workspace.folder,
            env=process_environment({}),
            stderr=stderr,
        )
        assert "is locked by" in told.readline()
        command.send_signal(signal.SIGINT)
        assert command.wait(LOCK_TIMEOUT_SECONDS / 2) == 130
    other.rollback()
