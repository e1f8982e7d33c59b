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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from soak.broken_guards import BrokenGuard, broken_in, meet_hazard
from soak.counts import doubled, missing, wrong_in_index
from soak.hazards import Hazards
from soak.nodes import Node, two_nodes
from soak.outside import Outside, outside
from support.daemons import be_quick
from support.databases import PostgresServer, all_components
from support.databases import opened as opened_database
from support.forked_program import PRELOADED, forking
from support.load import Load
from support.redis_server import RedisServer
from tsuzuki.collectors.kit.outbox import OutboxState
from tsuzuki.model.errors import Conflict, Unreachable
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

KEPT = Path(".cache") / "soak"
STEP_SECONDS = 0.25
SETTLE_STEP_SECONDS = 0.5
STUCK_SECONDS = 90.0
PAGES_PER_SECOND = 0.4
"""Of the search for books: a run collects one page, and a page may take more than one run."""


@dataclass(kw_only=True)
class Soak:
    """The parts of one soak. `journal` has what happened, one line each."""

    seed: int
    seconds: float
    folder: Path
    database: Database
    application: Application
    nodes: list[Node]
    outside: Outside
    hazards: Hazards
    load: Load
    journal: list[str]
    broken: BrokenGuard | None

    def run(self) -> None:
        started = time.monotonic()
        with self.load:
            self._inject_faults()
        self.hazards.stop()
        for node in self.nodes:
            node.mend()
        if self.broken is not None:
            meet_hazard(self.broken, self.outside)
        for phase in (self._settle, self._check, self._stop):
            phase()
            self.journal.append(f"{time.monotonic() - started:6.1f} end of {phase.__name__[1:]}")

    def _inject_faults(self) -> None:
        pause, started = threading.Event(), time.monotonic()
        wrong: list[str] = []
        while (elapsed := time.monotonic() - started) < self.seconds and not wrong:
            self.journal += [f"{elapsed:6.1f} {line}" for line in self.hazards.step(elapsed)]
            self.outside.grow()
            wrong = self._restart_ended()
            pause.wait(STEP_SECONDS)
        assert not wrong, "\n".join(wrong)

    def _restart_ended(self) -> list[str]:
        return [line for node in self.nodes for line in node.restart_ended()]

    def _settle(self) -> None:
        """Wait until all that was served has arrived, as long as more arrives. An operator helps: a feed that failed is
        not asked for minutes unless a person wants it, and what became of a mail may only be known by looking."""
        fetch = Request(job="bot", arguments={"process": False}, idempotency_key="fetch now")
        pause, told = threading.Event(), ["nothing was asked yet"]
        moved_at = time.monotonic()
        while told:
            before = told
            wrong = self._restart_ended()
            assert not wrong, "\n".join(wrong)
            with suppress(Unreachable):  # a connection from before the database crashed
                self.application.runs.submit(fetch)
                self._decide_mails()
                told = missing(self.database, self.outside)
            moved_at = time.monotonic() if told != before else moved_at
            stuck_seconds = time.monotonic() - moved_at
            assert stuck_seconds < STUCK_SECONDS, "\n".join(["nothing more arrives:", *told])
            pause.wait(SETTLE_STEP_SECONDS)

    def _decide_mails(self) -> None:
        arrived = {str(mail["Message-ID"]) for mail in self.outside.mail.messages}
        service = self.application.service("books")
        for view in service.mails(limit=1_000):
            if view.mail.state is OutboxState.UNSETTLED:
                has_arrived = view.mail.message_id in arrived
                (service.mark_sent if has_arrived else service.resend)(view.mail.id)

    def _check(self) -> None:
        for job in ("commits", "books", "bot", "code"):
            run = self.application.runs.submit(Request(job=job))
            self.application.runs.wait(run.run_id, timeout_seconds=STUCK_SECONDS)
            self.application.jobs.set_enabled(job, False)
        self._cancel_pending()
        wrong = doubled(self.database, self.outside)
        indexes, fresh = self.folder / "indexes", self.folder / "fresh"
        wrong += wrong_in_index(self.outside, indexes, fresh)
        runs = self.load.settle(was_paused=True)
        findings = self.application.maintenance.check()
        wrong += [f"db check: {one.subject}: {one.problem}" for one in findings if not one.is_ok]
        assert not wrong, "\n".join(wrong)
        self.journal.append(f"{len(runs)} runs, {self.outside.made}, {dict(self.hazards.met)}")

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
        (folder / "journal.log").write_text("\n".join(self.journal) + "\n", encoding="utf-8")


def soak(
    seed: int, seconds: float, *, kept: Path = KEPT, broken: BrokenGuard | None = None
) -> list[str]:
    """Answers the journal. A failure names the seed and where the logs are. With a `broken` guard the processes run
    without that one."""
    with _made(seed, seconds, broken) as one:
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
        return one.journal


@contextmanager
def _made(seed: int, seconds: float, broken: BrokenGuard | None) -> Iterator[Soak]:
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
            (workspace / "tsuzuki.yaml").write_text(services.configuration(), encoding="utf-8")
            be_quick(database)
            load = Load(database, workspace, seconds=0.2, pause_seconds=0.2)
            with (
                opened_application(
                    cwd=workspace, environ={}, actor="soak", database_url=url
                ) as app,
                two_nodes(workspace, server, url, redis, broken_in(broken)) as nodes,
            ):
                commits = app.service("commits").commits
                commits.sync_projects()
                for name in services.repositories:
                    commits.add_target(f"group/{name}", "main", base=None)
                for node in nodes:
                    node.start()
                    for daemon in node.running.values():
                        daemon.wait_for("started")
                hazards = Hazards(
                    chance=chance, nodes=nodes, outside=services, server=server, redis=redis
                )
                yield Soak(
                    seed=seed,
                    seconds=seconds,
                    folder=folder,
                    database=database,
                    application=app,
                    nodes=nodes,
                    outside=services,
                    hazards=hazards,
                    load=load,
                    journal=[],
                    broken=broken,
                )
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


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
    sys.stdout.write(f"seed {seed}\n")
    sys.stdout.flush()
    try:
        journal = soak(seed, options.seconds, broken=options.without)
    except AssertionError as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    sys.stdout.write("\n".join([*journal, ""]))
    return 0
