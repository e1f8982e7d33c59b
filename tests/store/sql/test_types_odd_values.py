"""What people and programs really put into a database comes back as it went in, or is refused."""

from typing import Any

import pytest

from support.factories import (
    WORKER,
    add_job,
    add_worker,
    create_run,
    read_run,
    ref,
    run_in_state,
    spec,
    take_lead,
)
from tsuzuki.model.errors import UsageError
from tsuzuki.model.run import RunRef, StartedRun
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.run_limits import RESULT_BYTES_MAX
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store import events, jobs
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.runs.moves import RunEnd
from tsuzuki.store.sql.database import Database

MEGABYTE = 1024 * 1024

TEXTS = {
    "empty": "",
    "quotes": 'it\'s "quoted" \\ and % and :name and ?',
    "lines": "one\r\ntwo\n\tthree",
    "emoji": "続き 🙂 👩‍👩‍👧",
    "controls": "\x01\x1b[31mred\x7f",
    "right to left": "\u202eabc",
    "long": "äx" * (MEGABYTE // 4),
    "JSON": '{"a": [1, null]}',
}
REPLACED = {
    "NUL": ("before\x00after", "before\ufffdafter"),
    "lone high surrogate": ("a\ud800b", "a\ufffdb"),
    "lone low surrogate": ("a\udfffb", "a\ufffdb"),
}
RESULTS: dict[str, Any] = {
    **TEXTS,
    "long": "äx" * (RESULT_BYTES_MAX // 4),
    "list": [1, 2, 3],
    "list of lists": [[1], [2, [3]]],
    "empty list": [],
    "object": {"b": 1, "a": {"c": [None, True, 1.5]}},
    "empty object": {},
    "NUL inside": {"text": "a\x00b"},
    "zero": 0,
    "false": False,
    "large": 2**70,
    "small": -1e-300,
    "NaN as text": "NaN",
}


@pytest.fixture
def term(database: Database) -> Term:
    add_worker(database)
    return take_lead(database)


def end(database: Database, term: Term, run: RunRef, **said: Any) -> frozenset[int]:
    ours = StartedRun(id=run.id, version=run.version, epoch=term.epoch)
    ending = RunEnd(run=ours, state=RunState.FAILED, reason=Reason.HANDLER_FAILED, **said)
    with database.write() as connection:
        return moves.finish(connection, worker_id=WORKER, ends=[ending])


def test_an_error_text_comes_back_as_it_was(database: Database, term: Term) -> None:
    for words in TEXTS.values():
        run = run_in_state(database, RunState.RUNNING, term)
        assert end(database, term, run, error=words)
        assert read_run(database, run.id).error == words


def test_what_no_database_can_hold_is_replaced_in_an_error_text(
    database: Database, term: Term
) -> None:
    for name, (words, kept) in REPLACED.items():
        run = run_in_state(database, RunState.RUNNING, term)
        assert end(database, term, run, error=words), name
        assert read_run(database, run.id).error == kept, name


def test_a_result_comes_back_as_it_was(database: Database, term: Term) -> None:
    for name, value in RESULTS.items():
        run = run_in_state(database, RunState.RUNNING, term)
        assert end(database, term, run, result=value), name
        found = read_run(database, run.id).result
        assert found == value, name
        assert type(found) is type(value), name


def test_results_of_different_shapes_share_a_batch(database: Database, term: Term) -> None:
    found = [run_in_state(database, RunState.RUNNING, term) for _ in RESULTS]
    ends = [
        RunEnd(
            run=StartedRun(id=run.id, version=run.version, epoch=term.epoch),
            state=RunState.SUCCEEDED,
            result=value,
        )
        for run, value in zip(found, RESULTS.values(), strict=True)
    ]
    with database.write() as connection:
        assert len(moves.finish(connection, worker_id=WORKER, ends=ends)) == len(found)
    assert [read_run(database, run.id).result for run in found] == list(RESULTS.values())


def test_halves_of_surrogate_pairs_are_replaced_in_a_result(database: Database, term: Term) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    assert end(database, term, run, result=["a\ud800b", {"\udfff": 1}])
    assert read_run(database, run.id).result == ["a\ufffdb", {"\ufffd": 1}]


NOT_JSON: list[Any] = [
    float("nan"),
    float("inf"),
    {1, 2},
    {(1, 2): 3},
    object(),
    b"bytes",
]


def test_a_result_that_json_cannot_hold_is_refused_in_our_words(
    database: Database, term: Term
) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    for value in NOT_JSON:
        with pytest.raises(UsageError, match="JSON") as refused:
            end(database, term, run, result=value)
        assert refused.value.specific_code == "not_json"
        assert ref(database, run.id) == run


def test_a_result_that_is_too_large_is_refused_in_our_words(database: Database, term: Term) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    with pytest.raises(UsageError) as refused:
        end(database, term, run, result="x" * RESULT_BYTES_MAX)
    assert refused.value.specific_code == "result_too_large"
    assert ref(database, run.id) == run


def test_halves_of_surrogate_pairs_in_a_result_are_replaced(database: Database, term: Term) -> None:
    run = run_in_state(database, RunState.RUNNING, term)
    assert end(database, term, run, result={"\udfff": "a\ud800b"})
    assert read_run(database, run.id).result == {"\ufffd": "a\ufffdb"}


def test_arguments_that_json_cannot_hold_are_refused_in_our_words(database: Database) -> None:
    job_id = add_job(database)
    with pytest.raises(UsageError, match="JSON"):
        create_run(database, job_id, arguments={"when": object()})
    with pytest.raises(UsageError, match="JSON"):
        add_job(database, spec("other", options={"x": {1}}))
    with database.read() as connection:
        assert jobs.get_by_name(connection, "other") is None


def test_a_key_comes_back_as_it_was(database: Database) -> None:
    job_id = add_job(database)
    for key in TEXTS.values():
        if len(key) < 1000:
            run = create_run(database, job_id, idempotency_key=key, concurrency_key=key)
            found = read_run(database, run.id)
            assert (found.idempotency_key, found.concurrency_key) == (key, key)
            with database.read() as connection:
                again = runs.get_by_key(connection, key)
            assert again is not None
            assert again.id == run.id


@pytest.mark.parametrize("name", REPLACED)
def test_a_key_that_would_not_come_back_is_refused(database: Database, name: str) -> None:
    key, _ = REPLACED[name]
    job_id = add_job(database)
    with pytest.raises(UsageError, match="cannot be a key"):
        create_run(database, job_id, idempotency_key=key)
    with pytest.raises(UsageError, match="cannot be a key"), database.write() as connection:
        events.emit(connection, event_type="x", payload={}, dedupe_key=key)
    with pytest.raises(UsageError, match="cannot be a key"), database.write() as connection:
        events.emit(connection, event_type=key, payload={})
    with database.read() as connection:
        assert runs.find(connection, RunFilter()) == []
        assert events.find(connection) == []


def test_whatever_stands_in_arguments_can_group_runs(database: Database) -> None:
    job_id = add_job(database)
    for name, (key, kept) in REPLACED.items():
        run = create_run(database, job_id, concurrency_key=key)
        assert read_run(database, run.id).concurrency_key == kept, name


def test_a_description_may_hold_anything(database: Database) -> None:
    for number, (words, kept) in enumerate(REPLACED.values()):
        job_id = add_job(database, spec(f"job-{number}", description=words))
        with database.read() as connection:
            job = jobs.get(connection, job_id)
        assert job is not None
        assert job.spec.description == kept
