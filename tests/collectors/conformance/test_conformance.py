"""What every collector promises: each rule holds for all of them, on both databases."""

import itertools
import json
import traceback
from concurrent.futures import Future
from typing import Any

import pytest

from support.databases import SqliteFolder, opened
from support.observed_run_io import Killed, kill_at
from support.threads import TIMEOUT_SECONDS, in_background
from support.waiting import wait_until
from tsuzuki.engine.run_context import RunStopped
from tsuzuki.model.errors import Fenced, TsuzukiError

from .case import Case
from .harness import Harness, Rows

FIRST_PAGES = 3
"""Transactions after which a run is in the middle of its pages."""


def test_killed_after_each_page_and_continued_the_rows_are_those_of_one_run(
    harness: Harness, undisturbed: Rows
) -> None:
    killed = harness.kill_until(undisturbed, after=kill_at(harness.case.first_page))
    assert killed >= harness.case.pages
    assert harness.rows() == undisturbed


def test_killed_before_the_commit_of_each_page_and_continued_the_rows_are_those_of_one_run(
    harness: Harness, undisturbed: Rows
) -> None:
    killed = harness.kill_until(undisturbed, before=kill_at(harness.case.first_page + 1))
    assert killed >= harness.case.pages - 1
    assert harness.rows() == undisturbed


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_once_at_any_commit_and_continued_the_rows_are_those_of_one_run(
    case: Case, sqlite_folder: SqliteFolder, undisturbed: Rows, moment: str
) -> None:
    for number in itertools.count(1):
        with opened(sqlite_folder.create(case.components)) as database:
            harness = Harness(case, database)
            try:
                harness.start().collect(**{moment: kill_at(number)})
            except Killed:
                if harness.rows() != undisturbed:
                    harness.start().collect()
                assert harness.rows() == undisturbed, f"killed {moment} commit {number}"
            else:
                break  # it had fewer commits
    assert number > case.pages


def test_a_page_whose_transaction_was_interrupted_left_nothing(harness: Harness) -> None:
    run, before = harness.start(), Rows()

    def remember(number: int) -> None:
        if number == FIRST_PAGES:
            before.update(harness.rows())

    with pytest.raises(Killed):
        run.collect(before=kill_at(FIRST_PAGES + 1), after=remember)
    assert harness.rows() == before


def test_cancelled_it_stops_within_one_page_and_is_continued(
    harness: Harness, undisturbed: Rows
) -> None:
    run = harness.start()

    def cancel(number: int) -> None:
        if number == FIRST_PAGES:
            run.stop_signal.set()

    with pytest.raises(RunStopped):
        run.collect(after=cancel)
    assert run.commits <= FIRST_PAGES + 1
    assert harness.rows() != undisturbed
    harness.start().collect()
    assert harness.rows() == undisturbed


def test_fenced_between_two_pages_it_writes_nothing_more_and_is_continued(
    harness: Harness, undisturbed: Rows
) -> None:
    run, before = harness.start(), Rows()

    def fence(number: int) -> None:
        if number == FIRST_PAGES:
            run.take_away()
            before.update(harness.every_row())

    with pytest.raises(Fenced):
        run.collect(after=fence)
    assert harness.every_row() == before
    harness.start().collect()
    assert harness.rows() == undisturbed


def test_fenced_while_it_writes_a_page_that_page_is_whole_and_nothing_follows(
    harness: Harness, undisturbed: Rows
) -> None:
    run, before, page = harness.start(), Rows(), Rows()
    fencing: list[Future[None]] = []

    def fence(number: int) -> None:
        if number == FIRST_PAGES:
            if not harness.database.is_sqlite:  # there a cancel waits for the one writer
                assert not in_background(run.cancel).result(30)
            fencing.append(in_background(run.take_away))

    def remember(number: int) -> None:
        if number == FIRST_PAGES - 1:
            before.update(harness.rows())
        if number == FIRST_PAGES:
            page.update(harness.rows())
            fencing[0].result()

    with pytest.raises(Fenced):
        run.collect(before=fence, after=remember)
    assert page != before
    assert harness.rows() == page
    harness.start().collect()
    assert harness.rows() == undisturbed


def test_cancelled_while_a_request_hangs_it_stops_within_one_page(
    case: Case, harness: Harness
) -> None:
    case.hang()
    run = harness.start()
    collecting = in_background(run.collect)
    wait_until(case.is_hanging, "a request hangs")
    commits = run.commits
    run.stop_signal.set()
    case.release()
    with pytest.raises(RunStopped):
        collecting.result(TIMEOUT_SECONDS)
    assert run.commits <= commits + 1


def test_progress_is_stored_with_its_page(harness: Harness) -> None:
    run = harness.start()
    run.collect()
    processed, total = harness.progress(run)
    assert processed > 0
    assert processed == total


def test_a_secret_is_in_no_log_result_or_row(
    case: Case, harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    case.use_every_secret()
    caplog.set_level("DEBUG")
    run = harness.start()
    result = run.collect()
    said = [*run.log, json.dumps(result, default=str), *program_log(caplog)]
    assert_absent([*case.secrets, *case.private], said)
    assert_absent(case.secrets, harness.every_row())


def test_a_secret_that_the_source_repeats_is_in_no_log_error_or_row(
    case: Case, harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    case.use_every_secret()
    case.fail_with_secrets()
    caplog.set_level("DEBUG")
    run = harness.start()
    try:
        said = [json.dumps(run.collect(), default=str)]
    except TsuzukiError as error:
        said = [*traceback.format_exception(error), str(error.hint), str(error.code)]
    assert_absent([*case.secrets, *case.private], [*said, *run.log, *program_log(caplog)])
    assert_absent([*case.secrets, *case.private], harness.every_row())


def program_log(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the program and its libraries logged; the mail server is a stand-in in this process."""
    return [one.getMessage() for one in caplog.records if one.name != "mail.log"]


def assert_absent(secrets: Any, said: Any) -> None:
    words = repr(said)
    for secret in secrets:
        assert secret not in words
