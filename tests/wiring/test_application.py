"""An application that acts for another actor does so in each of its services."""

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from tsuzuki.services.acting import ActingService
from tsuzuki.services.local_engine import LocalEngine
from tsuzuki.wiring.application import Application, opened

OF_THE_PROCESS = (LocalEngine,)
"""These act for nobody: an engine is its process, whoever started it."""


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Application]:
    (tmp_path / "tsuzuki.yaml").write_text("version: 1\n")
    with opened(cwd=tmp_path, environ={}, actor="cli:ada") as application:
        yield application


def services(application: Application) -> dict[str, object]:
    return {
        name: value
        for name, value in vars(application).items()
        if type(value).__module__.startswith("tsuzuki.services")
        and not isinstance(value, OF_THE_PROCESS)
    }


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


def test_the_service_of_a_collector_acts_for_the_other_actor(application: Application) -> None:
    other = application.acting_as("token:ci")
    assert other.service("books")._context.actor == "token:ci"
    assert application.service("books")._context.actor == "cli:ada"
