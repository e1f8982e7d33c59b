"""The application a command acts on, found from the current folder.

Looking never makes anything: where there is neither a file nor a database, a command says so
instead of leaving a stray database behind.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.output import warn
from tsuzuki.model.errors import ConfigurationError

if TYPE_CHECKING:
    from tsuzuki.services.configuration import ConfigurationView
    from tsuzuki.wiring.application import Application


@contextmanager
def open_application(invocation: Invocation, *, dry_run: bool = False) -> "Iterator[Application]":
    """Everything joined, and the database at this version; a `dry_run` does not bring it there."""
    with open_as_it_is(invocation) as application:
        if application.configuration.file is None and not application.maintenance.exists():
            raise ConfigurationError(
                "there is no tsuzuki.yaml here or in a folder above, and no database either",
                hint="Begin with: tsuzuki init",
                code="no_workspace",
            )
        if dry_run:
            application.maintenance.require_existing()
            application.maintenance.require_current()
        else:
            application.maintenance.upgrade()
        yield application


@contextmanager
def open_as_it_is(invocation: Invocation) -> "Iterator[Application]":
    """Everything joined, and the database as it is: of another version, or not there."""
    from tsuzuki.wiring.application import opened

    _warn_of_refused_collectors(invocation)
    with opened(**invocation.sources, migrate=False) as application:
        yield application


def configuration_of(invocation: Invocation) -> "ConfigurationView":
    """What file, environment and flags say. No database is touched."""
    from tsuzuki.wiring.application import read_configuration

    _warn_of_refused_collectors(invocation)
    return read_configuration(**invocation.sources)


def _warn_of_refused_collectors(invocation: Invocation) -> None:
    """Before anything else: what follows may fail because one is missing."""
    from tsuzuki.wiring.collectors import installed_collectors

    for problem in installed_collectors().refused.values():
        warn(invocation, problem.message)
