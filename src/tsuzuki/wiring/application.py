"""Joins configuration, database and services into what an interface calls.

A service is imported and built when it is first asked for: a command needs a few of them, and importing all of them
takes longer than most commands.
"""

import getpass
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tsuzuki.config import Configuration, load_configuration
from tsuzuki.config.yaml.source import file_status
from tsuzuki.model.access import AnyRight, OwnerMode, Principal
from tsuzuki.model.access import Role as AccessRole
from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.model.errors import ConfigurationError, NotFound
from tsuzuki.model.secrets import SecretMask
from tsuzuki.services import configuration as configuration_service
from tsuzuki.services.acting import ActingService
from tsuzuki.services.configuration import ConfigurationView
from tsuzuki.wiring.collector import Collector, ServiceContext
from tsuzuki.wiring.collectors import guarded, installed_collectors
from tsuzuki.wiring.resources import Resources, open_resources

if TYPE_CHECKING:
    from tsuzuki.engine.process import Engine
    from tsuzuki.engine.role import ProcessRole
    from tsuzuki.services.access.owner_links import OwnerLinks
    from tsuzuki.services.access.passwords import Passwords
    from tsuzuki.services.access.sessions import Sessions
    from tsuzuki.services.access.setup_codes import SetupCodes
    from tsuzuki.services.access.tokens import Tokens
    from tsuzuki.services.access.users import Users
    from tsuzuki.services.api_requests import ApiRequests
    from tsuzuki.services.audit import Audit
    from tsuzuki.services.bulk import BulkActions
    from tsuzuki.services.changes import Changes
    from tsuzuki.services.diagnosis import Diagnosis
    from tsuzuki.services.dry_runs import DryRuns
    from tsuzuki.services.due import DueItems
    from tsuzuki.services.events import Events
    from tsuzuki.services.failures import Failures
    from tsuzuki.services.job_file import JobFile
    from tsuzuki.services.job_history import JobHistory
    from tsuzuki.services.jobs import Jobs
    from tsuzuki.services.liveness import Liveness
    from tsuzuki.services.local_engine import Functions, LocalEngine
    from tsuzuki.services.logs import RunLogs
    from tsuzuki.services.maintenance import Maintenance
    from tsuzuki.services.one_run_engine import OneRunEngine
    from tsuzuki.services.runs import Runs
    from tsuzuki.services.saved_views import SavedViews
    from tsuzuki.services.settings import Settings
    from tsuzuki.services.statistics import RunStatistics
    from tsuzuki.services.verification import Verification
    from tsuzuki.services.verification_runs import VerificationRuns
    from tsuzuki.services.webhooks import Webhooks
    from tsuzuki.services.workers import Workers

Service = TypeVar("Service")


class on_demand(Generic[Service]):  # noqa: N801 -- used as a decorator, like `property`
    """A service of an application: imported and built when it is first asked for, then kept.

    An application that acts for another actor has the same one, or a copy that acts for that actor if it is an
    `ActingService`.
    """

    def __init__(self, build: "Callable[[Application], Service]") -> None:
        self._build = build
        self.__doc__ = build.__doc__

    def __get__(self, application: "Application", _: object = None) -> Service:
        name = self._build.__name__
        # Where Python looks first. Of two threads that build it at once, both get the one that is kept.
        kept: Service = vars(application).setdefault(name, self._built(application, name))
        return kept

    def _built(self, application: "Application", name: str) -> Service:
        if application.acts_beside is None:
            return self._build(application)
        shared: Service = getattr(application.acts_beside, name)
        if isinstance(shared, ActingService):
            return shared.acting_as(application.principal.actor)
        return shared


class Application:
    """All that an interface calls, joined for one configuration and one actor."""

    def __init__(
        self,
        resources: Resources,
        *,
        reload: Callable[[], Configuration],
        actor: str,
        acts_beside: "Application | None" = None,
    ) -> None:
        self._resources = resources
        self._reload = reload
        self._file_status = file_status(resources.configuration.file)
        """Now, and not when the file is first watched: what is written in between must be noticed."""
        self._collector_services: dict[str, Any] = {}
        self.acts_beside = acts_beside
        """The application that this one shares services with; it acts for another actor."""
        self.principal = Principal(actor=actor, role=AccessRole.ADMIN)
        """The actor, for services that ask for whom they act: an admin, because it reads the database itself."""
        self.rights: Mapping[str, AnyRight] = resources.collectors.rights
        """Those of the engine and of usable collectors, by name."""
        self.refused_collectors: Mapping[str, ConfigurationError] = resources.refused
        """Why each collector that cannot be used is refused; more may follow when the tables are upgraded."""

    def acting_as(self, actor: str) -> "Application":
        """An application whose changes are audited under the name of another actor."""
        return Application(self._resources, reload=self._reload, actor=actor, acts_beside=self)

    def service(self, name: str) -> Any:
        """The service of a collector by the collector's name, built when first asked for. Raises `NotFound` if there
        is none by that name, and what is wrong with one that is refused."""
        found = self._collector_services.get(name)
        if found is None:
            found = self._collector_services.setdefault(name, self._collector_service(name))
        return found

    def owner_mode(self) -> OwnerMode:
        """How a server on loopback knows its owner. Raises `ConfigurationError`."""
        return self._resources.configuration.owner_mode()

    def one_run_engine(self, run_id: Callable[[], int | None]) -> "OneRunEngine":
        """For one run that is waited for, as the function names it: an engine here, if no other executes it."""
        from tsuzuki.services.one_run_engine import OneRunEngine

        clock = self._resources.database.clock
        return OneRunEngine(self.local_engine, self.runs, run_id, clock=clock)

    def keep_for_reader(self) -> None:
        """Keep the parsed file, so that the next reading command starts fast (`wiring.reader`)."""
        from tsuzuki.wiring.reader import keep_record

        keep_record(self._resources)

    def wait_for_writes(self) -> None:
        """Wait until what services write in the background is stored."""
        for service in (vars(self).get("tokens"), vars(self).get("sessions")):
            if service is not None:
                service.wait_for_writes()

    @on_demand
    def configuration(self) -> ConfigurationView:
        return configuration_service.view(self._resources.configuration)

    @on_demand
    def mask(self) -> SecretMask:
        """Hides the secrets of this configuration in what is shown."""
        return SecretMask(partial(self._resources.configuration.secrets, self._resources.environ))

    @on_demand
    def jobs(self) -> "Jobs":
        from tsuzuki.services.jobs import Jobs

        return Jobs(
            database=self._resources.database,
            reload=self._reload,
            kinds=self._resources.collectors.kinds,
            actor=self.principal.actor,
            built_in=self._resources.built_in_jobs(),
        )

    @on_demand
    def job_file(self) -> "JobFile":
        from tsuzuki.services.job_file import JobFile

        return JobFile(
            self.jobs,
            applied=self._resources.configuration,
            status=self._file_status,
            read=self._reload,
            clock=self._resources.database.clock,
        )

    @on_demand
    def job_history(self) -> "JobHistory":
        from tsuzuki.services.job_history import JobHistory

        return JobHistory(database=self._resources.database)

    @on_demand
    def saved_views(self) -> "SavedViews":
        from tsuzuki.services.saved_views import SavedViews

        return SavedViews(database=self._resources.database, actor=self.principal.actor)

    @on_demand
    def runs(self) -> "Runs":
        from tsuzuki.services.runs import Runs

        return Runs(
            database=self._resources.database,
            actor=self.principal.actor,
            wake_others=self._wake_others,
        )

    @on_demand
    def changes(self) -> "Changes":
        from tsuzuki.services.changes import Changes

        return Changes(database=self._resources.database)

    @on_demand
    def bulk(self) -> "BulkActions":
        from tsuzuki.services.bulk import BulkActions

        return BulkActions(
            database=self._resources.database, actor=self.principal.actor, runs=self.runs
        )

    @on_demand
    def statistics(self) -> "RunStatistics":
        from tsuzuki.services.statistics import RunStatistics

        return RunStatistics(database=self._resources.database)

    @on_demand
    def failures(self) -> "Failures":
        from tsuzuki.services.failures import Failures

        return Failures(
            database=self._resources.database, runs=self.runs, actor=self.principal.actor
        )

    @on_demand
    def events(self) -> "Events":
        from tsuzuki.services.events import Events

        return Events(database=self._resources.database, wake_others=self._wake_others)

    @on_demand
    def workers(self) -> "Workers":
        from tsuzuki.services.workers import Workers

        return Workers(database=self._resources.database, actor=self.principal.actor)

    @on_demand
    def liveness(self) -> "Liveness":
        from tsuzuki.services.liveness import Liveness

        return Liveness(database=self._resources.database)

    @on_demand
    def logs(self) -> "RunLogs":
        from tsuzuki.services.logs import RunLogs

        return RunLogs(database=self._resources.database, archive=self._resources.log_archive())

    @on_demand
    def due(self) -> "DueItems":
        from tsuzuki.services.due import DueItems

        return DueItems(database=self._resources.database)

    @on_demand
    def dry_runs(self) -> "DryRuns":
        from tsuzuki.services.dry_runs import DryRuns

        return DryRuns(
            database=self._resources.database,
            arguments=self._resources.dry_run_arguments(),
            due=self.due,
            jobs=self.jobs,
            runs=self.runs,
            local_engine=self.local_engine,
        )

    @on_demand
    def settings(self) -> "Settings":
        from tsuzuki.services.settings import Settings

        return Settings(database=self._resources.database, actor=self.principal.actor)

    @on_demand
    def audit(self) -> "Audit":
        from tsuzuki.services.audit import Audit

        return Audit(database=self._resources.database)

    @on_demand
    def tokens(self) -> "Tokens":
        from tsuzuki.services.access.tokens import Tokens

        return Tokens(database=self._resources.database, rights=self.rights)

    @on_demand
    def users(self) -> "Users":
        from tsuzuki.services.access.users import Users

        return Users(database=self._resources.database, passwords=self._passwords)

    @on_demand
    def sessions(self) -> "Sessions":
        from tsuzuki.services.access.sessions import Sessions

        return Sessions(database=self._resources.database, passwords=self._passwords)

    @on_demand
    def setup_codes(self) -> "SetupCodes":
        from tsuzuki.services.access.setup_codes import SetupCodes

        return SetupCodes(database=self._resources.database, passwords=self._passwords)

    @on_demand
    def owner_links(self) -> "OwnerLinks":
        from tsuzuki.services.access.owner_links import OwnerLinks

        return OwnerLinks(database=self._resources.database)

    @on_demand
    def webhooks(self) -> "Webhooks":
        from tsuzuki.services.webhooks import Webhooks

        return Webhooks(
            database=self._resources.database,
            webhooks=self._resources.configuration.webhooks,
            events=self.events,
        )

    @on_demand
    def maintenance(self) -> "Maintenance":
        from tsuzuki.services.maintenance import Maintenance

        return Maintenance(
            database=self._resources.database,
            tables=self._resources.tables,
            folder=self._resources.workspace,
        )

    @on_demand
    def diagnosis(self) -> "Diagnosis":
        from tsuzuki.services.diagnosis import Diagnosis
        from tsuzuki.wiring.checks import collector_checks

        return Diagnosis(
            database=self._resources.database,
            workspace=self._resources.workspace,
            has_log_archive=self._resources.log_archive() is not None,
            collector_checks=partial(collector_checks, self._resources),
            maintenance=self.maintenance,
            workers=self.workers,
            due=self.due,
            runs=self.runs,
            jobs=self.jobs,
        )

    @on_demand
    def verification(self) -> "Verification":
        from tsuzuki.wiring.verification import join_verification

        return join_verification(self._resources)

    @on_demand
    def verification_runs(self) -> "VerificationRuns":
        from tsuzuki.services.verification_runs import VerificationRuns

        return VerificationRuns(
            self.verification,
            database=self._resources.database,
            actor=self.principal.actor,
            runs=self.runs,
        )

    @on_demand
    def local_engine(self) -> "LocalEngine":
        from tsuzuki.services.local_engine import LocalEngine

        return LocalEngine(
            build=partial(_build_engine, self._resources),
            liveness=self.liveness,
            workers=self.workers,
            runs=self.runs,
        )

    @on_demand
    def api_requests(self) -> "ApiRequests":
        from tsuzuki.services.api_requests import ApiRequests

        return ApiRequests(database=self._resources.database)

    @on_demand
    def _passwords(self) -> "Passwords":
        from tsuzuki.services.access.passwords import Passwords

        return Passwords()

    def _collector_service(self, name: str) -> Any:
        resources = self._resources
        if name in resources.refused:
            raise resources.refused[name]
        collector = resources.collectors.usable.get(name)
        if collector is None or collector.service is None:
            raise NotFound(
                f"there is no collector {name!r} with a service", code="collector_unknown"
            )
        resources.tables.use(name)
        context = resources.collector_context(name)
        given = {field.name: getattr(context, field.name) for field in fields(context)}
        service = ServiceContext(
            **given,
            actor=self.principal.actor,
            jobs=self.jobs,
            runs=self.runs,
            liveness=self.liveness,
        )
        build = partial(_collector_service, collector, collector.service, service)
        return guarded(name, resources.collectors.distributions.get(name), build)

    def _wake_others(self, names: Collection[str]) -> None:
        # A wake-up is a hint for what is stored already; a wrong URL is reported where an engine starts.
        with suppress(ConfigurationError):
            self._resources.coordination().wake(names)


def _build_engine(resources: Resources, role: "ProcessRole", functions: "Functions") -> "Engine":
    from tsuzuki.wiring.engine import build_engine

    return build_engine(resources, role, functions)


def _collector_service(collector: Collector, target: str, context: ServiceContext) -> Any:
    return collector.load(target)(context)


def read_configuration(
    *,
    config_file: Path | None = None,
    database_url: str | None = None,
    environ: Mapping[str, str] = os.environ,
    cwd: Path | None = None,
    check_files: bool = False,
) -> ConfigurationView:
    """What file, environment and flags say. No database is touched. With `check_files` the files that it names are
    read for their problems."""
    read = configuration_reader(config_file, database_url, environ, cwd)
    kinds = installed_collectors().kinds if check_files else None
    return configuration_service.view(read(), kinds)


def write_starter(file: Path) -> list[Path]:
    """The files of a new workspace with these kinds of job. Returns what was written; raises `Conflict` if `file`
    exists."""
    from tsuzuki.config import starter_file

    return starter_file.write_starter(file, kinds=installed_collectors().kinds)


def file_schema() -> str:
    """The JSON Schema of the configuration file with these kinds of job."""
    from tsuzuki.config import starter_file

    return starter_file.schema_text(installed_collectors().kinds)


def configuration_reader(
    config_file: Path | None,
    database_url: str | None,
    environ: Mapping[str, str],
    cwd: Path | None,
    *,
    locations_only: bool = False,
) -> Callable[[], Configuration]:
    return partial(
        load_configuration,
        file=config_file,
        database_url=database_url,
        environ=environ,
        cwd=cwd or Path.cwd(),
        kinds=installed_collectors().kinds,
        locations_only=locations_only,
    )


@contextmanager
def opened(
    *,
    config_file: Path | None = None,
    database_url: str | None = None,
    environ: Mapping[str, str] = os.environ,
    cwd: Path | None = None,
    clock: Clock | None = None,
    actor: str | None = None,
    migrate: bool = True,
    locations_only: bool = False,
) -> Iterator[Application]:
    """An application, ready to use; `migrate` brings its database to this version first. With `locations_only` it
    has no jobs of a file with mistakes, but the database is open."""
    configuration = configuration_reader(
        config_file, database_url, environ, cwd, locations_only=locations_only
    )()
    # From now on the same file: if it goes away, the one of a folder above does not take its place.
    read = configuration_reader(configuration.file or config_file, database_url, environ, cwd)
    with open_resources(configuration, clock=clock or SystemClock(), environ=environ) as resources:
        application = Application(resources, reload=read, actor=actor or local_actor())
        if migrate:
            application.maintenance.upgrade()
        try:
            yield application
        finally:
            application.wait_for_writes()


def require_workspace(application: Application) -> None:
    """Looking never makes anything: where there is neither a file nor a database, no stray one is left behind."""
    if application.configuration.file is None and not application.maintenance.exists():
        if "database_url" in application.configuration.origins:
            application.maintenance.require_existing()
        raise ConfigurationError(
            "no tsuzuki.yaml in this folder or any parent folder, and no database URL",
            hint="Change to your workspace, name its file with --config, or create a workspace here "
            "with: tsuzuki init",
            code="no_workspace",
        )


def local_actor(interface: str = "cli") -> str:
    """Who acts on this machine, and through which interface, for the audit log."""
    try:
        return f"{interface}:{getpass.getuser()}"
    except (KeyError, OSError):
        return f"{interface}:uid-{os.getuid()}"
