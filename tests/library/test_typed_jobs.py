"""Jobs of functions: still plain functions, submitted with checked arguments, with typed results."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict
from typing_extensions import TypedDict  # pydantic needs it before Python 3.12

from tsuzuki import RunContext, Tsuzuki, current_run
from tsuzuki.model.errors import NotFound, RunFailed, UsageError

TIMEOUT_SECONDS = 60.0


class Size(Enum):
    SMALL = "S"
    LARGE = "L"


class Address(TypedDict):
    city: str


@dataclass
class Item:
    name: str
    price: Decimal


class Order(BaseModel):
    model_config = ConfigDict(strict=True)
    id: UUID
    at: datetime
    items: list[Item]


@pytest.fixture
def app(database_url: str, tmp_path: Path) -> Iterator[Tsuzuki]:
    with Tsuzuki(database_url, environ={}, cwd=tmp_path) as app:
        yield app


def add(left: int, right: int = 1) -> int:
    return left + right


def total(order: Order, size: Size, to: Address, file: Path, wait: timedelta) -> Item:
    assert isinstance(order.items[0], Item)
    assert (size, to["city"], file, wait.days) == (Size.LARGE, "Kyoto", Path("/a"), 2)
    return Item("total", sum((item.price for item in order.items), Decimal(0)))


async def greet(run: RunContext, name: str) -> str:
    run.log(f"greeting {name}")
    return f"{name}, as {current_run().id == run.id}"


def without_context() -> int:
    return current_run().id


def wrong_result() -> int:
    return SimpleNamespace()  # type: ignore[return-value]


def later(day: Later) -> int:  # type: ignore[name-defined]  # noqa: F821
    return day.day


ORDER = Order(
    id=UUID(int=7),
    at=datetime(2026, 11, 19, tzinfo=UTC),
    items=[Item("a", Decimal("1.10")), Item("b", Decimal("2.20"))],
)


def test_a_job_is_still_the_function_it_was(app: Tsuzuki) -> None:
    job = app.job(add)
    assert job(1, right=2) == 3
    assert job.__name__ == "add"
    assert job.name == "add"


def test_typed_values_reach_the_function_and_come_back(app: Tsuzuki) -> None:
    job = app.job(total)
    with app.running():
        handle = job.submit(ORDER, Size.LARGE, {"city": "Kyoto"}, Path("/a"), wait=timedelta(2))
        assert handle.result(timeout_seconds=TIMEOUT_SECONDS) == Item("total", Decimal("3.30"))
    assert handle.info().result == {"name": "total", "price": "3.30"}
    assert job.run(handle.id).result() == Item("total", Decimal("3.30"))
    assert app.run(handle.id).result() == Item("total", Decimal("3.30"))


def test_the_run_of_a_function_is_its_first_parameter_or_the_current_run(app: Tsuzuki) -> None:
    greeting, asking = app.job(greet), app.job(without_context)
    with app.running():
        first, second = greeting.submit("Ada"), asking.submit()
        assert first.result(timeout_seconds=TIMEOUT_SECONDS) == "Ada, as True"
        assert second.result(timeout_seconds=TIMEOUT_SECONDS) == second.id
    assert first.log() == ["greeting Ada"]
    with pytest.raises(UsageError) as refused:
        current_run()
    assert refused.value.specific_code == "no_current_run"


@pytest.mark.parametrize(
    "call",
    [
        lambda job: job.submit(),
        lambda job: job.submit(1, 2, 3),
        lambda job: job.submit(left="one"),
        lambda job: job.submit(1, rihgt=2),
        lambda job: job.options(priority=1).call(left=[1]),
        lambda job: job.submit_many([job.call(1), job.call()]),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_stored(app: Tsuzuki, call: Any) -> None:
    with pytest.raises(UsageError) as refused:
        call(app.job(add))
    assert refused.value.specific_code == "arguments_invalid"
    assert app._opened is None


def test_arguments_by_name_are_checked_for_a_job_of_this_program(app: Tsuzuki) -> None:
    app.job(add)
    with pytest.raises(UsageError) as refused:
        app.submit("add", {"left": 1, "rihgt": 2})
    assert refused.value.hint == 'Did you mean "right"?'


def test_a_stored_argument_that_does_not_fit_any_more_fails_its_run_for_good(
    app: Tsuzuki, database_url: str
) -> None:
    """It was submitted by a program that does not have the function."""
    app.job("add", max_retries=3)(add)
    app.emit("now")
    with Tsuzuki(database_url, environ={}) as other, app.running():
        handle = other.submit("add", {"left": "one"})
        with pytest.raises(RunFailed) as failed:
            handle.result(timeout_seconds=TIMEOUT_SECONDS)
    assert failed.value.reason == "arguments_invalid"
    assert len(failed.value.attempts) == 1


def test_a_result_of_another_type_fails_the_run(app: Tsuzuki) -> None:
    job = app.job(wrong_result)
    with app.running(), pytest.raises(RunFailed) as failed:
        job.submit().result(timeout_seconds=TIMEOUT_SECONDS)
    assert "result_invalid" in str(failed.value)


def test_a_result_that_is_read_is_of_the_declared_type(app: Tsuzuki) -> None:
    adding = app.job("number", arguments={"left": 1})(add)
    with app.running():
        handle = adding.options(idempotency_key="k").submit(left=2)
        handle.wait(timeout_seconds=TIMEOUT_SECONDS)
    again = app.job("greeting")(greet).run(handle.id)
    with pytest.raises(UsageError) as refused:
        again.result()
    assert refused.value.specific_code == "result_invalid"


def test_many_calls_are_stored_together(app: Tsuzuki) -> None:
    job = app.job(max_concurrent=4)(add)
    calls = [job.call(n) for n in range(5)]
    handles = [*job.submit_many(calls[:3]), *app.submit_many(calls[3:])]
    with app.running():
        assert [one.result(timeout_seconds=TIMEOUT_SECONDS) for one in handles] == [1, 2, 3, 4, 5]


def test_the_arguments_of_the_job_itself_need_not_be_given(app: Tsuzuki) -> None:
    job: Any = app.job(arguments={"left": 40})(add)
    with app.running():
        assert job.submit(right=2).result(timeout_seconds=TIMEOUT_SECONDS) == 42


def test_options_apply_to_one_submit(app: Tsuzuki) -> None:
    job = app.job(add)
    first = job.options(idempotency_key="k", delay_seconds=3600, priority=5).submit(1)
    again = job.options(idempotency_key="k").submit(1)
    assert (first.is_new, again.is_new, again.id) == (True, False, first.id)
    assert first.info().priority == 5
    assert not job.options(delay_seconds=60).submit(1).state().is_final


def test_durations_may_be_timedeltas(app: Tsuzuki) -> None:
    app.job(timeout=timedelta(minutes=2), backoff={"initial": timedelta(seconds=3)})(add)
    app.emit("now")
    spec = app._application.jobs.get("add").spec
    assert (spec.timeout_seconds, spec.retry.initial_seconds) == (120, 3)


def test_an_annotation_may_name_what_is_defined_later(app: Tsuzuki) -> None:
    job: Any = app.job(later)
    with pytest.raises(UsageError) as refused:
        job.submit(day=ORDER.at)
    assert refused.value.specific_code == "annotation_unresolved"
    globals()["Later"] = datetime
    try:
        assert job.call(day=ORDER.at).request.arguments == {"day": "2026-11-19T00:00:00Z"}
    finally:
        del globals()["Later"]


class Together:
    both_run = threading.Barrier(2)


def meet() -> None:
    Together.both_run.wait(TIMEOUT_SECONDS)


def test_submitted_runs_are_limited_by_capacity_only(app: Tsuzuki) -> None:
    job = app.job(meet)
    with app.running(capacity=2):
        for handle in [job.submit(), job.submit()]:
            handle.result(timeout_seconds=TIMEOUT_SECONDS)


def test_a_scheduled_job_runs_once_at_a_time_and_a_submitted_run_waits(app: Tsuzuki) -> None:
    app.job("ticks", schedule="every 1h")(add)
    app.job("limited", max_concurrent=3)(add)
    app.job("free", schedule="every 1h", concurrency_policy="allow")(add)
    app.emit("now")
    limits = {
        name: app._application.jobs.get(name).spec.concurrency_limit
        for name in ("ticks", "limited", "free")
    }
    assert limits == {"ticks": 1, "limited": 3, "free": None}


def with_rest(**rest: int) -> None: ...


def context_last(name: str, run: RunContext) -> None: ...


def not_storable(app: Tsuzuki) -> None: ...


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (with_rest, "parameter_kind"),
        (context_last, "context_not_first"),
        (not_storable, "type_not_storable"),
    ],
)
def test_a_function_that_cannot_be_a_job_is_refused_where_it_is_written(
    app: Tsuzuki, function: Any, code: str
) -> None:
    with pytest.raises(UsageError) as refused:
        app.job(function)
    assert refused.value.specific_code == code


def test_nothing_is_opened_before_it_is_needed(tmp_path: Path) -> None:
    app = Tsuzuki(f"sqlite:///{tmp_path}/work.db", environ={}, cwd=tmp_path)
    job = app.job(schedule="every 1h")(add)
    app.define("all", command=["make", "all"])
    job.call(1)
    app.close()
    assert [*tmp_path.iterdir()] == []
    assert job.submit(1).id == 1
    app.close()
    assert job.submit(1).id == 2, "opened again"
    app.close()


def test_the_handle_of_an_unknown_run_is_refused(app: Tsuzuki) -> None:
    with pytest.raises(NotFound):
        app.run(4711)
