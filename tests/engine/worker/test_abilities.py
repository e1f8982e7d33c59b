"""A worker's abilities: which packages it answers for, and when they are stored."""

import pytest

from support.factories import WORKER, add_job, add_worker, spec
from support.statement_recorder import recorded
from tsuzuki.engine.worker.abilities import WorkerAbilities
from tsuzuki.model.abilities import Abilities
from tsuzuki.store import jobs, workers
from tsuzuki.store.sql.database import Database


class Installed(set[str]):
    """The packages that could be imported."""

    def abilities(self, packages: object) -> Abilities:
        return Abilities(kinds=frozenset({"python"}), packages=frozenset(self & set(packages)))  # type: ignore[call-overload]


@pytest.fixture
def installed() -> Installed:
    return Installed({"shop", "numpy"})


@pytest.fixture
def abilities(database: Database, installed: Installed) -> WorkerAbilities:
    return WorkerAbilities(database=database, find=installed.abilities)


def stored_packages(database: Database, worker_id: str = WORKER) -> set[str]:
    with database.read() as connection:
        worker = workers.get(connection, worker_id)
    assert worker is not None
    assert worker.abilities is not None
    return set(worker.abilities.packages)


def add_function(database: Database, name: str, function: str) -> int:
    return add_job(database, spec(name, handler="python", options={"function": function}))


def test_it_answers_for_the_packages_that_jobs_name_and_no_others(
    database: Database, abilities: WorkerAbilities
) -> None:
    add_function(database, "one", "shop.jobs.mail:send")
    add_function(database, "two", "elsewhere:work")
    add_job(database, spec("three"))
    assert abilities.refresh().packages == {"shop"}
    assert abilities.current is not None


def test_what_changes_is_stored_and_nothing_is_written_otherwise(
    database: Database, abilities: WorkerAbilities, installed: Installed
) -> None:
    add_worker(database)
    abilities.tick(WORKER)
    assert stored_packages(database) == set()
    job_id = add_function(database, "one", "shop.jobs:send")
    add_function(database, "two", "elsewhere:work")
    abilities.tick(WORKER)
    assert stored_packages(database) == {"shop"}
    with recorded(database) as sent:
        abilities.tick(WORKER)
    assert not [statement for statement in sent if statement.startswith(("UPDATE", "BEGIN I"))]
    installed.add("elsewhere")
    abilities.tick(WORKER)
    assert stored_packages(database) == {"elsewhere", "shop"}
    with database.write() as connection:
        job = jobs.get(connection, job_id)
        assert job is not None
        jobs.remove(connection, job=job)
    abilities.tick(WORKER)
    assert stored_packages(database) == {"elsewhere"}


def test_a_worker_that_came_back_under_another_id_is_stored_with_it_too(
    database: Database, abilities: WorkerAbilities
) -> None:
    add_function(database, "one", "shop.jobs:send")
    for worker_id in (WORKER, "again"):
        add_worker(database, worker_id)
        abilities.tick(worker_id)
        assert stored_packages(database, worker_id) == {"shop"}
