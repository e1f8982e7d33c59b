"""A command that waits for a locked SQLite file says so, and goes on when the lock is given back."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from support.workspace import Workspace
from tsuzuki.cli import lock_notice
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.output import warn


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
