"""An application that acts for another actor does so in each of its services."""

import inspect
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from tsuzuki.services.access.tokens import Tokens
from tsuzuki.services.acting import ActingService
from tsuzuki.services.local_engine import LocalEngine
from tsuzuki.wiring.application import Application, on_demand, opened

OF_THE_PROCESS = (LocalEngine,)
"""These act for nobody: an engine is its process, whoever started it."""


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Application]:
    (tmp_path / "tsuzuki.yaml").write_text("version: 1\n")
    with opened(cwd=tmp_path, environ={}, actor="cli:ada") as application:
        yield application


def services(application: Application) -> dict[str, object]:
    named = [name for name, value in vars(Application).items() if isinstance(value, on_demand)]
    every = {name: getattr(application, name) for name in named}
    return {name: value for name, value in every.items() if not isinstance(value, OF_THE_PROCESS)}


def test_every_service_that_needs_an_actor_can_act_for_another(application: Application) -> None:
    forgotten = [
        name
        for name, service in services(application).items()
        if not isinstance(service, ActingService)
        and (
            "actor" in inspect.signature(type(service)).parameters
            or any(isinstance(part, ActingService) for part in vars(service).values())
        )
    ]
    assert forgotten == []


def test_all_services_act_for_the_other_actor_and_the_first_ones_do_not(
    application: Application,
) -> None:
    other = application.acting_as("token:ci")
    acting = [one for one in services(other).values() if isinstance(one, ActingService)]
    assert len(acting) >= 8
    for service in acting:
        parts = [part for part in vars(service).values() if isinstance(part, ActingService)]
        assert {one._actor for one in (service, *parts)} == {"token:ci"}
    assert application.jobs._actor == "cli:ada"


def test_a_service_is_built_when_it_is_first_asked_for_and_then_shared(
    application: Application,
) -> None:
    other = application.acting_as("token:ci")
    assert "sessions" not in vars(application)
    assert other.sessions is application.sessions
    assert other.runs is other.runs
    assert other.runs is not application.runs


def test_threads_that_ask_for_a_service_at_once_share_one(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_build = Barrier(2, timeout=30)

    class SlowTokens(Tokens):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            both_build.wait()

    monkeypatch.setattr("tsuzuki.services.access.tokens.Tokens", SlowTokens)
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(lambda: application.tokens) for _ in range(2)]
    assert asked[0].result() is asked[1].result()


def test_the_service_of_a_collector_acts_for_the_other_actor(application: Application) -> None:
    other = application.acting_as("token:ci")
    assert other.service("books")._context.actor == "token:ci"
    assert application.service("books")._context.actor == "cli:ada"
