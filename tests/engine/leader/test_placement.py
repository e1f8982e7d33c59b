"""Placement: each run goes to the least loaded worker that may have it, within the limits of job and key."""

from collections import Counter

import pytest

from support.assigning import (
    ALLOW,
    add_free_job,
    an_assigner,
    assigned_ids,
    assigned_runs,
    create_runs,
    finish,
)
from support.factories import (
    add_job,
    add_worker,
    create_run,
    read_run,
    spec,
)
from support.statement_recorder import recorded
from tsuzuki.model.abilities import Abilities
from tsuzuki.model.states import RunState
from tsuzuki.store import jobs, workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.usefixtures("history_is_valid")


def test_each_run_goes_to_the_least_loaded_worker_for_its_size(
    database: Database, term: Term
) -> None:
    add_worker(database, "big", capacity=6)
    add_worker(database, "small", capacity=2)
    create_runs(database, add_free_job(database), 4)
    assert an_assigner(database).tick(term) == 4
    assert Counter(run.assigned_worker_id for run in assigned_runs(database)) == {
        "big": 3,
        "small": 1,
    }


def test_what_a_worker_already_holds_counts_as_its_load(database: Database, term: Term) -> None:
    add_worker(database, "busy", capacity=4)
    assigner = an_assigner(database)
    job_id = add_free_job(database)
    create_runs(database, job_id, 2)
    assigner.tick(term)
    add_worker(database, "idle", capacity=4)
    create_runs(database, job_id, 2)
    assigner.tick(term)
    assert Counter(run.assigned_worker_id for run in assigned_runs(database)) == {
        "busy": 2,
        "idle": 2,
    }


def test_no_worker_gets_more_than_its_capacity_and_the_rest_waits(
    database: Database, term: Term
) -> None:
    add_worker(database, "a", capacity=2)
    add_worker(database, "b", capacity=1)
    add_worker(database, "none", capacity=0)
    ids = create_runs(database, add_free_job(database), 5)
    assigner = an_assigner(database)
    assert assigner.tick(term) == 3
    assert Counter(run.assigned_worker_id for run in assigned_runs(database)) == {"a": 2, "b": 1}
    assert assigned_ids(database) == ids[:3]
    assert assigner.tick(term) == 0
    finish(database, ids[0], str(read_run(database, ids[0]).assigned_worker_id))
    assert assigner.tick(term) == 1
    assert ids[3] in assigned_ids(database)


@pytest.mark.parametrize("workers_there", ["none", "only one without capacity"])
def test_without_capacity_nothing_is_written(
    database: Database, term: Term, workers_there: str
) -> None:
    if workers_there != "none":
        add_worker(database, "none", capacity=0)
    run_id = create_run(database, add_free_job(database)).id
    with recorded(database) as sent:
        assert an_assigner(database).tick(term) == 0
    assert not [statement for statement in sent if "UPDATE" in statement]
    assert read_run(database, run_id).version == 1


def test_a_run_goes_only_to_a_worker_that_has_all_of_its_tags(
    database: Database, term: Term
) -> None:
    add_worker(database, "plain", capacity=100)
    add_worker(database, "gpu", tags=frozenset({"gpu"}))
    add_worker(database, "both", tags=frozenset({"gpu", "eu"}))
    wants_gpu = create_runs(database, add_free_job(database, "gpu", tags=frozenset({"gpu"})), 2)
    wants_both = create_run(database, add_free_job(database, "both", tags=frozenset({"gpu", "eu"})))
    wants_unknown = create_run(database, add_free_job(database, "odd", tags=frozenset({"odd"})))
    assert an_assigner(database).tick(term) == 3
    assert {read_run(database, n).assigned_worker_id for n in wants_gpu} == {"gpu", "both"}
    assert read_run(database, wants_both.id).assigned_worker_id == "both"
    assert read_run(database, wants_unknown.id).state is RunState.PENDING


def test_a_job_never_has_more_under_way_than_it_allows(database: Database, term: Term) -> None:
    add_worker(database, "w", capacity=100)
    limited = create_runs(database, add_job(database, spec("three", max_concurrent=3)), 10)
    single = create_runs(database, add_job(database, spec("one")), 10)
    assigner = an_assigner(database)
    assert assigner.tick(term) == 4
    assert assigned_ids(database) == [*limited[:3], single[0]]
    assert assigner.tick(term) == 0
    finish(database, limited[1], "w")
    assert assigner.tick(term) == 1
    assert assigned_ids(database) == [limited[0], limited[2], limited[3], single[0]]


def test_a_key_never_has_more_under_way_than_its_job_allows(database: Database, term: Term) -> None:
    add_worker(database, "w", capacity=100)
    job_id = add_free_job(database, concurrency_key="repo", max_concurrent_per_key=2)
    ids = {key: create_runs(database, job_id, 4, concurrency_key=key) for key in ("a", "b", None)}
    assigner = an_assigner(database)
    assert assigner.tick(term) == 8
    assert assigned_ids(database) == [*ids["a"][:2], *ids["b"][:2], *ids[None]]
    assert assigner.tick(term) == 0
    finish(database, ids["b"][0], "w")
    assert assigner.tick(term) == 1
    assert ids["b"][2] in assigned_ids(database)


def test_the_same_key_of_two_jobs_is_two_keys(database: Database, term: Term) -> None:
    add_worker(database)
    for name in ("first", "second"):
        job_id = add_free_job(database, name, concurrency_key="repo", max_concurrent_per_key=1)
        create_runs(database, job_id, 2, concurrency_key="same")
    assert an_assigner(database).tick(term) == 2


def test_the_limit_of_the_job_as_it_is_now_counts(database: Database, term: Term) -> None:
    add_worker(database)
    job_id = add_job(database, spec("grows"))
    create_runs(database, job_id, 5)
    assigner = an_assigner(database)
    assert assigner.tick(term) == 1
    with database.write() as connection:
        job = jobs.get(connection, job_id)
        assert job is not None
        jobs.change(connection, job=job, spec=spec("grows", max_concurrent=4))
    assert assigner.tick(term) == 3


@pytest.mark.parametrize("fate", ["disabled", "removed"])
def test_runs_of_a_job_that_is_off_or_removed_are_held(
    database: Database, term: Term, fate: str
) -> None:
    add_worker(database)
    job_id = add_free_job(database, "off")
    create_runs(database, job_id, 3, priority=5)
    other = create_run(database, add_free_job(database, "on")).id
    with database.write() as connection:
        job = jobs.get(connection, job_id)
        assert job is not None
        if fate == "removed":
            jobs.remove(connection, job=job)
        else:
            jobs.change(
                connection, job=job, spec=spec("off", enabled=False, concurrency_policy=ALLOW)
            )
    assigner = an_assigner(database)
    assert assigner.tick(term) == 1
    assert assigned_ids(database) == [other]
    if fate == "disabled":
        with database.write() as connection:
            job = jobs.get(connection, job_id)
            assert job is not None
            jobs.change(connection, job=job, spec=spec("off", concurrency_policy=ALLOW))
        assert assigner.tick(term) == 3


def test_a_worker_of_one_job_gets_no_run_of_another_from_any_leader(
    database: Database, term: Term
) -> None:
    add_worker(database, "foreground", only_job="mine", capacity=10)
    create_runs(database, add_free_job(database, "foreign"), 3)
    mine = create_runs(database, add_free_job(database, "mine"), 2)
    assert an_assigner(database).tick(term) == 2
    assert assigned_ids(database) == mine


def test_an_idle_leader_gives_a_worker_of_one_job_no_run_of_another(
    database: Database, term: Term
) -> None:
    add_worker(database, "foreground", only_job="mine")
    foreign = add_free_job(database, "foreign")
    assigner = an_assigner(database)
    create_runs(database, foreign, 1)
    assigner.tick(term)
    assert assigner.assign_first(term) == 0
    assert assigned_ids(database) == []


def test_runs_of_its_job_go_to_any_other_worker_too(database: Database, term: Term) -> None:
    add_worker(database, "foreground", only_job="mine", capacity=1)
    add_worker(database, "any", capacity=4)
    create_runs(database, add_free_job(database, "foreign"), 2)
    create_runs(database, add_free_job(database, "mine"), 3)
    assert an_assigner(database).tick(term) == 5
    by_worker = Counter(run.assigned_worker_id for run in assigned_runs(database))
    assert by_worker == {"any": 4, "foreground": 1}


@pytest.mark.parametrize("leads", ["tick", "assign_first"])
def test_a_worker_of_one_run_gets_no_other_run_of_its_job_from_any_leader(
    database: Database, term: Term, leads: str
) -> None:
    *foreign, mine = create_runs(database, add_free_job(database, "mine"), 4)
    add_worker(database, "foreground", only_job="mine", only_run=mine)
    assigner = an_assigner(database)
    if leads == "assign_first":
        assigner.tick(term)
        assert assigner.assign_first(term) == 0
    else:
        assert assigner.tick(term) == 1
    assert assigned_ids(database) == [mine]
    assert assigner.tick(term) == 0
    add_worker(database, "any")
    assert assigner.tick(term) == 3
    assert assigned_ids(database) == [*foreign, mine]


def test_a_worker_of_one_run_gets_it_behind_a_long_backlog_that_no_worker_takes(
    database: Database, term: Term
) -> None:
    job_id = add_job(database, spec("mine", max_concurrent=2))
    *_, mine = create_runs(database, job_id, 1201)
    add_worker(database, "foreground", only_job="mine", only_run=mine)
    assert an_assigner(database).tick(term) == 1
    assert assigned_ids(database) == [mine]


def test_the_run_that_a_worker_was_started_for_is_within_the_limit_of_its_job(
    database: Database, term: Term
) -> None:
    add_worker(database, "any")
    job_id = add_job(database, spec("mine"))
    create_runs(database, job_id, 1)
    assigner = an_assigner(database)
    assert assigner.tick(term) == 1
    (mine,) = create_runs(database, job_id, 1)
    add_worker(database, "foreground", only_job="mine", only_run=mine)
    assert assigner.tick(term) == 0


ABLE = Abilities(kinds=frozenset({"test", "python"}), packages=frozenset({"shop"}))
SHOP, WEBAPP = {"function": "shop:work"}, {"function": "webapp:work"}


def add_function(database: Database, name: str, options: dict[str, str]) -> int:
    job = spec(name, handler="python", options=options, concurrency_policy=ALLOW)
    return add_job(database, job)


def test_a_worker_gets_no_run_that_it_cannot_execute(database: Database, term: Term) -> None:
    add_worker(database, "shop", abilities=ABLE)
    create_runs(database, add_function(database, "foreign", WEBAPP), 3)
    ours = create_runs(database, add_function(database, "ours", SHOP), 2)
    assert an_assigner(database).tick(term) == 2
    assert assigned_ids(database) == ours


def test_a_run_goes_to_the_worker_that_can_execute_it_however_busy_it_is(
    database: Database, term: Term
) -> None:
    add_worker(database, "shop", abilities=ABLE, capacity=100)
    webapp = Abilities(kinds=ABLE.kinds, packages=frozenset({"webapp"}))
    add_worker(database, "webapp", abilities=webapp, capacity=3)
    create_runs(database, add_function(database, "foreign", WEBAPP), 4)
    assert an_assigner(database).tick(term) == 3
    assert {run.assigned_worker_id for run in assigned_runs(database)} == {"webapp"}


def test_an_idle_leader_gives_a_worker_no_run_that_it_cannot_execute(
    database: Database, term: Term
) -> None:
    add_worker(database, "shop", abilities=ABLE)
    assigner = an_assigner(database)
    (waiting,) = create_runs(database, add_function(database, "foreign", WEBAPP), 1)
    assigner.tick(term)
    assert assigner.assign_first(term) == 0
    with database.write() as connection:
        able = Abilities(kinds=ABLE.kinds, packages=frozenset({"webapp"}))
        workers.set_abilities(connection, "shop", able)
    assert assigner.assign_first(term) == 1
    assert assigned_ids(database) == [waiting]
