"""One soak from its start to its verdict."""

import argparse
import random
import secrets
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from soak import guard_hazards
from soak.broken_guards import BrokenGuard, broken_in
from soak.counts import wrong
from soak.event_log import EventLog
from soak.hazards import Hazards
from soak.index_counts import wrong_in_index
from soak.nodes import Node, two_nodes
from soak.operator import Operator
from soak.outside import Outside, outside
from soak.quota import Quota, write_configuration
from soak.settling import STUCK_SECONDS, Settling
from support.daemons import be_quick
from support.databases import PostgresServer, all_components
from support.databases import opened as opened_database
from support.forked_program import PRELOADED, forking
from support.load import Load
from support.redis_server import RedisServer
from tsuzuki.model.errors import Conflict
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Request
from tsuzuki.store.sql.database import Database
from tsuzuki.wiring.application import Application
from tsuzuki.wiring.application import opened as opened_application

HANDLERS = [
    "tsuzuki.collectors.codeindex.collect",
    "tsuzuki.collectors.feeds.channels.mastodon",
    "tsuzuki.collectors.feeds.collect",
]
"""Imported once for all processes, unless some were started before."""

JOBS = ("commits", "books", "bot", "code")
KEPT = Path(".cache") / "soak"
STEP_SECONDS = 0.25
PAGES_PER_SECOND = 0.25
"""Of the search for books: a run collects one page, and a page may take more than one run."""

QUOTA_SHARE = 4
"""The quota is used up after about this part of the pages."""


@dataclass(kw_only=True)
class Soak:
    """The parts of one soak."""

    seed: int
    seconds: float
    folder: Path
    database: Database
    application: Application
    nodes: list[Node]
    outside: Outside
    hazards: Hazards
    load: Load
    operator: Operator
    events: EventLog
    broken: BrokenGuard | None

    def run(self) -> None:
        self.events.start()
        if self.broken is not None:
            guard_hazards.arm(self.broken, self.outside)
        with self.load:
            self._inject_faults()
        self.hazards.stop()
        for node in self.nodes:
            node.mend()
        if self.broken is not None:
            guard_hazards.meet(self.broken, self.outside, self.nodes, self.load)
        for phase in (self._settle, self._check, self._stop):
            phase()
            self.events.add(f"end of {phase.__name__[1:]}")

    def _inject_faults(self) -> None:
        pause, started = threading.Event(), time.monotonic()
        while (elapsed := time.monotonic() - started) < self.seconds:
            self.events.add(*self.hazards.step(elapsed))
            self.operator.step()
            self.outside.grow()
            self._restart_ended()
            pause.wait(STEP_SECONDS)

    def _restart_ended(self) -> None:
        ended = [line for node in self.nodes for line in node.restart_ended()]
        assert not ended, "\n".join(ended)

    def _settle(self) -> None:
        Settling(
            database=self.database,
            outside=self.outside,
            operator=self.operator,
            events=self.events,
            restart=self._restart_ended,
        ).settle()

    def _check(self) -> None:
        found = [line for job in JOBS for line in self._last_run(job)]
        self._cancel_pending()
        found += wrong(self.database, self.outside) + self.operator.quota.wrong()
        indexes, fresh = self.folder / "indexes", self.folder / "fresh"
        found += wrong_in_index(self.outside.tree, indexes, fresh)
        runs = self.load.settle(was_paused=True)
        found += (
            [] if self.load.confirmed else ["load: nothing was submitted, so nothing is proved"]
        )
        findings = self.application.maintenance.check()
        found += [f"db check: {one.subject}: {one.problem}" for one in findings if not one.is_ok]
        assert not found, "\n".join(found)
        self.events.add(f"{len(runs)} runs, {self.outside.made}, {dict(self.hazards.met)}")

    def _last_run(self, job: str) -> Iterator[str]:
        """When nothing goes wrong any more a run succeeds; then the job rests."""
        submitted = self.application.runs.submit(Request(job=job))
        run = self.application.runs.wait(submitted.run_id, timeout_seconds=STUCK_SECONDS)
        self.application.jobs.set_enabled(job, False)
        if run.state is not RunState.SUCCEEDED:
            yield f"{job}: its last run is {run.state}: {run.reason} {run.error}"

    def _cancel_pending(self) -> None:
        """A disabled job holds the runs that it has not started."""
        pending = RunFilter(states=frozenset({RunState.PENDING}), limit=1_000)
        for run in self.application.runs.find(pending):
            if run.job_name != Load.JOB:
                with suppress(Conflict):
                    self.application.runs.cancel(run.id)

    def _stop(self) -> None:
        for node in self.nodes:
            for daemon in node.running.values():
                daemon.send(signal.SIGTERM)
        codes = [daemon.ended() for node in self.nodes for daemon in node.running.values()]
        assert set(codes) == {0}, f"processes ended with {codes}"

    def keep_logs(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for node in self.nodes:
            node.keep_logs(folder)
        text = "\n".join([*self.events.lines, ""])
        (folder / "events.log").write_text(text, encoding="utf-8")


def soak(
    seed: int,
    seconds: float,
    *,
    kept: Path = KEPT,
    broken: BrokenGuard | None = None,
    tell: Callable[[str], object] = lambda _line: None,
) -> list[str]:
    """Answers what happened, one line each. A failure names the seed and where the logs are. With a `broken` guard the
    processes run without that one."""
    events = EventLog(tell)
    with _made(seed, seconds, events, broken) as one:
        try:
            one.run()
        except BaseException as problem:
            place = (kept / str(seed)).absolute()
            one.keep_logs(place)
            raise AssertionError(
                f"soak with seed {seed}: {problem}\nlogs: {place}\n"
                f"again: python -m tests.soak --seed {seed} --seconds {seconds:g}"
                + (f" --without {broken}" if broken else "")
            ) from problem
        return events.lines


@contextmanager
def _made(
    seed: int, seconds: float, events: EventLog, broken: BrokenGuard | None
) -> Iterator[Soak]:
    folder = Path(tempfile.mkdtemp(prefix="tsuzuki-soak-"))
    chance = random.Random(seed)
    forking.set_forkserver_preload([*PRELOADED, *HANDLERS])
    server = PostgresServer()
    url = server.create(all_components())
    pages = max(4, int(seconds * PAGES_PER_SECOND))
    workspace = folder / "workspace"
    try:
        with (
            RedisServer() as redis,
            outside(folder, random.Random(chance.random()), pages=pages) as services,
            opened_database(url) as database,
        ):
            limit = max(2, pages // QUOTA_SHARE)
            write_configuration(workspace, services, daily_limit=limit)
            be_quick(database)
            load = Load(database, workspace, seconds=0.2, pause_seconds=0.2)
            with (
                opened_application(
                    cwd=workspace, environ={}, actor="soak", database_url=url
                ) as app,
                two_nodes(workspace, server, url, redis, broken_in(broken)) as nodes,
            ):
                _start(app, nodes, services)
                yield Soak(
                    seed=seed,
                    seconds=seconds,
                    folder=folder,
                    database=database,
                    application=app,
                    nodes=nodes,
                    outside=services,
                    hazards=Hazards(
                        chance=chance, nodes=nodes, outside=services, server=server, redis=redis
                    ),
                    load=load,
                    operator=_operator(limit, database, app, services, nodes, events),
                    events=events,
                    broken=broken,
                )
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _operator(
    limit: int,
    database: Database,
    application: Application,
    services: Outside,
    nodes: list[Node],
    events: EventLog,
) -> Operator:
    quota = Quota(limit=limit, database=database, outside=services, nodes=nodes)
    return Operator(
        database=database,
        application=application,
        outside=services,
        quota=quota,
        events=events,
    )


def _start(application: Application, nodes: Sequence[Node], services: Outside) -> None:
    commits = application.service("commits").commits
    commits.sync_projects()
    for name in services.repositories:
        commits.add_target(f"group/{name}", "main", base=None)
    for node in nodes:
        node.start()
        for daemon in node.running.values():
            daemon.wait_for("started")


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="how long faults are injected")
    parser.add_argument(
        "--seed", type=int, default=None, help="of an earlier soak, to draw the same faults"
    )
    parser.add_argument(
        "--without",
        type=BrokenGuard,
        choices=[*BrokenGuard],
        help="a guard that is broken in the processes: the soak must then find fault",
    )
    options = parser.parse_args(words)
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    tell(f"seed {seed}")
    try:
        soak(seed, options.seconds, broken=options.without, tell=tell)
    except AssertionError as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    return 0


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
