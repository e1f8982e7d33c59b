"""Joins configuration, database and services into what an interface calls."""

import getpass
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tsuzuki.config import Configuration, load_configuration
from tsuzuki.engine.role import ProcessRole
from tsuzuki.model.access import AnyRight, OwnerMode, Principal
from tsuzuki.model.access import Role as AccessRole
from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.model.errors import ConfigurationError, NotFound
from tsuzuki.model.secrets import SecretMask
from tsuzuki.services import configuration as configuration_service
from tsuzuki.services.access.owner_links import OwnerLinks
from tsuzuki.services.access.passwords import Passwords
from tsuzuki.services.access.sessions import Sessions
from tsuzuki.services.access.setup_codes import SetupCodes
from tsuzuki.services.access.tokens import Tokens
from tsuzuki.services.access.users import Users
from tsuzuki.services.acting import ActingService
from tsuzuki.services.api_requests import ApiRequests
from tsuzuki.services.audit import Audit
from tsuzuki.services.bulk import BulkActions
from tsuzuki.services.changes import Changes
from tsuzuki.services.configuration import ConfigurationView
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
from tsuzuki.wiring.checks import collector_checks
from tsuzuki.wiring.collector import Collector, ServiceContext
from tsuzuki.wiring.collectors import guarded, installed_collectors
from tsuzuki.wiring.reader import keep_record
from tsuzuki.wiring.resources import Resources, open_resources
from tsuzuki.wiring.verification import join_verification

if TYPE_CHECKING:
    from tsuzuki.engine.process import Engine


@dataclass(frozen=True, kw_only=True)
class Application:
    """All that an interface calls, joined for one configuration and one actor."""

    configuration: ConfigurationView
    principal: Principal
    """The actor, for services that ask for whom they act: an admin, because it reads the database itself."""
    jobs: Jobs
    job_file: JobFile
    job_history: JobHistory
    saved_views: SavedViews
    runs: Runs
    changes: Changes
    bulk: BulkActions
    statistics: RunStatistics
    failures: Failures
    events: Events
    workers: Workers
    liveness: Liveness
    logs: RunLogs
    due: DueItems
    dry_runs: DryRuns
    settings: Settings
    audit: Audit
    rights: Mapping[str, AnyRight]
    """Those of the engine and of usable collectors, by name."""
    tokens: Tokens
    users: Users
    sessions: Sessions
    setup_codes: SetupCodes
    owner_links: OwnerLinks
    owner_mode: Callable[[], OwnerMode]
    """How a server on loopback knows its owner. Raises `ConfigurationError`."""
    webhooks: Webhooks
    maintenance: Maintenance
    diagnosis: Diagnosis
    verification: Verification
    verification_runs: VerificationRuns
    local_engine: LocalEngine
    one_run_engine: Callable[[Callable[[], int | None]], OneRunEngine]
    """For one run that is waited for, as the function names it: an engine here, if no other executes it."""
    refused_collectors: Mapping[str, ConfigurationError]
    """Why each collector that cannot be used is refused; more may follow when the tables are upgraded."""
    keep_for_reader: Callable[[], None]
    """Keep the parsed file, so that the next reading command starts fast (`wiring.reader`)."""
    service: Callable[[str], Any]
    """The service of a collector by the collector's name, built when first asked for."""
    build_service: Callable[..., Any]
    """The same for given services of jobs and runs, built at each call."""
    api_requests: ApiRequests
    mask: SecretMask
    """Hides the secrets of this configuration in what is shown."""

    def acting_as(self, actor: str) -> "Application":
        """An application whose changes are audited under the name of another actor."""
        acting: dict[str, Any] = {
            name: service.acting_as(actor)
            for name, service in vars(self).items()
            if isinstance(service, ActingService)
        }
        service = partial(self.build_service, actor=actor, jobs=acting["jobs"], runs=acting["runs"])
        return replace(self, **acting, service=cache(service))


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
    return configuration_service.write_starter(file, kinds=installed_collectors().kinds)


def file_schema() -> str:
    """The JSON Schema of the configuration file with these kinds of job."""
    return configuration_service.schema_text(installed_collectors().kinds)


def configuration_reader(
    config_file: Path | None,
    database_url: str | None,
    environ: Mapping[str, str],
    cwd: Path | None,
) -> Callable[[], Configuration]:
    return partial(
        load_configuration,
        file=config_file,
        database_url=database_url,
        environ=environ,
        cwd=cwd or Path.cwd(),
        kinds=installed_collectors().kinds,
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
) -> Iterator[Application]:
    """An application, ready to use; `migrate` brings its database to this version first."""
    configuration = configuration_reader(config_file, database_url, environ, cwd)()
    # From now on the same file: if it goes away, the one of a folder above does not take its place.
    read = configuration_reader(configuration.file or config_file, database_url, environ, cwd)
    with open_resources(configuration, clock=clock or SystemClock(), environ=environ) as resources:
        application = join(resources, reload=read, actor=actor or local_actor())
        if migrate:
            application.maintenance.upgrade()
        try:
            yield application
        finally:
            application.tokens.wait_for_writes()
            application.sessions.wait_for_writes()


def join(resources: Resources, *, reload: Callable[[], Configuration], actor: str) -> Application:
    database, configured = resources.database, resources.configuration
    wake_others = partial(_wake_others, resources)
    passwords = Passwords()
    jobs = Jobs(database=database, reload=reload, kinds=resources.collectors.kinds, actor=actor)
    runs = Runs(database=database, actor=actor, wake_others=wake_others)
    events = Events(database=database, wake_others=wake_others)
    liveness = Liveness(database=database)
    workers = Workers(database=database, actor=actor)
    service = partial(build_service, resources, liveness=liveness)
    local_engine = LocalEngine(
        build=partial(_build_engine, resources), liveness=liveness, workers=workers, runs=runs
    )
    maintenance = _maintenance(resources)
    due = DueItems(database=database)
    verification = join_verification(resources)
    return Application(
        configuration=configuration_service.view(configured),
        principal=Principal(actor=actor, role=AccessRole.ADMIN),
        jobs=jobs,
        job_file=JobFile(jobs, applied=configured, read=reload, clock=database.clock),
        runs=runs,
        changes=Changes(database=database),
        bulk=BulkActions(database=database, actor=actor, runs=runs),
        statistics=RunStatistics(database=database),
        job_history=JobHistory(database=database),
        saved_views=SavedViews(database=database, actor=actor),
        failures=Failures(database=database, runs=runs, actor=actor),
        events=events,
        workers=workers,
        liveness=liveness,
        logs=RunLogs(database=database, archive=resources.log_archive()),
        due=due,
        dry_runs=_dry_runs(resources, due=due, jobs=jobs, runs=runs, local_engine=local_engine),
        settings=Settings(database=database, actor=actor),
        audit=Audit(database=database),
        tokens=Tokens(database=database, rights=resources.collectors.rights),
        rights=resources.collectors.rights,
        users=Users(database=database, passwords=passwords),
        sessions=Sessions(database=database, passwords=passwords),
        setup_codes=SetupCodes(database=database, passwords=passwords),
        owner_links=OwnerLinks(database=database),
        owner_mode=configured.owner_mode,
        webhooks=Webhooks(database=database, webhooks=configured.webhooks, events=events),
        maintenance=maintenance,
        diagnosis=_diagnosis(
            resources, maintenance=maintenance, workers=workers, due=due, runs=runs, jobs=jobs
        ),
        verification=verification,
        verification_runs=VerificationRuns(verification, database=database, actor=actor, runs=runs),
        local_engine=local_engine,
        one_run_engine=partial(OneRunEngine, local_engine, runs, clock=database.clock),
        refused_collectors=resources.refused,
        keep_for_reader=partial(keep_record, resources),
        service=cache(partial(service, actor=actor, jobs=jobs, runs=runs)),
        build_service=service,
        api_requests=ApiRequests(database=database),
        mask=SecretMask(partial(configured.secrets, resources.environ)),
    )


def _wake_others(resources: Resources, names: Collection[str]) -> None:
    # A wake-up is a hint for what is stored already; a wrong URL is reported where an engine starts.
    with suppress(ConfigurationError):
        resources.coordination().wake(names)


def _maintenance(resources: Resources) -> Maintenance:
    return Maintenance(
        database=resources.database,
        tables=resources.tables,
        folder=resources.workspace,
    )


def _dry_runs(resources: Resources, **services: Any) -> DryRuns:
    return DryRuns(database=resources.database, arguments=resources.dry_run_arguments(), **services)


def _diagnosis(resources: Resources, **services: Any) -> Diagnosis:
    return Diagnosis(
        database=resources.database,
        workspace=resources.workspace,
        has_log_archive=resources.log_archive() is not None,
        collector_checks=partial(collector_checks, resources),
        **services,
    )


def _build_engine(resources: Resources, role: ProcessRole, functions: Functions) -> "Engine":
    from tsuzuki.wiring.engine import build_engine  # noqa: PLC0415 -- slow to load, and most commands need none

    return build_engine(resources, role, functions)


def build_service(resources: Resources, name: str, **services: Any) -> Any:
    """The service of a collector. Raises `NotFound` if there is none by that name, and what is wrong with
    one that is refused."""
    if name in resources.refused:
        raise resources.refused[name]
    collector = resources.collectors.usable.get(name)
    if collector is None or collector.service is None:
        raise NotFound(f"there is no collector {name!r} with a service", code="collector_unknown")
    resources.tables.use(name)
    context = resources.collector_context(name)
    given = {field.name: getattr(context, field.name) for field in fields(context)}
    service = ServiceContext(**given, **services)
    build = partial(_built, collector, collector.service, service)
    return guarded(name, resources.collectors.distributions.get(name), build)


def _built(collector: Collector, target: str, context: ServiceContext) -> Any:
    return collector.load(target)(context)


def require_workspace(application: Application) -> None:
    """Looking never makes anything: where there is neither a file nor a database, no stray one is left behind."""
    if application.configuration.file is None and not application.maintenance.exists():
        if "database_url" in application.configuration.origins:
            application.maintenance.require_existing()
        raise ConfigurationError(
            "there is no tsuzuki.yaml here or in a folder above, and no database either",
            hint="Go to the folder of your workspace, name its file with --config, or make one here: tsuzuki init",
            code="no_workspace",
        )


def local_actor(interface: str = "cli") -> str:
    """Who acts on this machine, and through which interface, for the audit log."""
    try:
        return f"{interface}:{getpass.getuser()}"
    except (KeyError, OSError):
        return f"{interface}:uid-{os.getuid()}"
