"""What requests at the same time share: one transaction for their runs, one look at their credentials."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tsuzuki.model.errors import NotFound
from tsuzuki.model.run import Run
from tsuzuki.services.runs import Request
from tsuzuki.web.run_intake import RunIntake
from tsuzuki.web.security.shared_lookup import SharedLookup
from tsuzuki.wiring.application import Application, opened


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Application]:
    with opened(environ={}, cwd=tmp_path) as application:
        application.jobs.define("hello", {"command": ["true"]})
        yield application


def submitted(application: Application, requests: list[Request]) -> list[Run | BaseException]:
    async def submit_all() -> list[Run | BaseException]:
        intake = RunIntake(application.runs)
        asked = (intake.start(request, actor=f"token:{n}") for n, request in enumerate(requests))
        return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(submit_all())


def test_runs_asked_for_at_once_are_stored_together_each_with_its_answer(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []
    real = application.runs.submit_each
    monkeypatch.setattr(
        type(application.runs),
        "submit_each",
        lambda _runs, requests: (batches.append(len(requests)), real(requests))[1],
    )
    requests = [Request(job="hello", arguments={"number": n}) for n in range(20)]
    stored = submitted(application, requests)
    assert [run.arguments for run in stored if isinstance(run, Run)] == [
        {"number": n} for n in range(20)
    ]
    assert sum(batches) == 20
    assert len(batches) <= 2
    audited = application.audit.find(object_type="run", limit=100)
    assert {entry.actor for entry in audited} == {f"token:{n}" for n in range(20)}


def test_what_is_wrong_with_one_request_does_not_touch_the_others(
    application: Application,
) -> None:
    jobs = ["hello", "helo", "hello", "hello"]
    stored = submitted(application, [Request(job=job) for job in jobs])
    assert [isinstance(answer, Run) for answer in stored] == [True, False, True, True]
    assert isinstance(stored[1], NotFound)


def test_the_same_key_in_one_batch_is_one_run(application: Application) -> None:
    stored = submitted(application, [Request(job="hello", idempotency_key="k")] * 5)
    assert len({run.id for run in stored if isinstance(run, Run)}) == 1


def test_a_request_never_has_the_answer_of_a_look_that_started_before_it_came() -> None:
    """So a token that is revoked by then is refused."""
    looks: list[str] = []
    state = ["valid"]
    started, go_on = threading.Event(), threading.Event()

    def look() -> str:
        found = state[0]
        looks.append(found)
        started.set()
        assert go_on.wait(120)
        return found

    async def ask() -> list[str]:
        lookups = SharedLookup()
        first = asyncio.create_task(lookups.ask("token", look))
        await asyncio.to_thread(started.wait, 60)
        state[0] = "revoked"
        later = [asyncio.create_task(lookups.ask("token", look)) for _ in range(5)]
        await asyncio.sleep(0)
        go_on.set()
        return await asyncio.gather(first, *later)

    assert asyncio.run(ask()) == ["valid", *["revoked"] * 5]
    assert looks == ["valid", "revoked"]


def test_a_look_that_fails_fails_for_all_who_wait_for_it() -> None:
    def look() -> None:
        raise NotFound("no such token")

    async def ask() -> list[BaseException | None]:
        lookups = SharedLookup()
        asked = (lookups.ask("token", look) for _ in range(3))
        return await asyncio.gather(*asked, return_exceptions=True)

    assert [type(answer) for answer in asyncio.run(ask())] == [NotFound] * 3
