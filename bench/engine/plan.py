"""The benchmark plan as data: measures, peers and numbers of jobs.

Ratios of a measure are to the first of our own lines.
"""

from dataclasses import dataclass

from bench.engine.stores import Store


@dataclass(frozen=True, kw_only=True)
class Entrant:
    """One line of the table. `jobs_short` is for peers that would need minutes for all jobs."""

    peer: str
    store: Store
    run: str
    label: str = ""
    jobs: int = 10_000
    jobs_short: int | None = None
    finished: int = 0
    rounds: int = 3
    full_only: bool = False

    @property
    def name(self) -> str:
        return f"{self.peer} ({self.label})" if self.label else self.peer

    @property
    def module(self) -> str:
        match self.peer:
            case "tsuzuki":
                return "bench.engine.ours"
            case "floor":
                return "bench.engine.floor"
            case peer:
                return f"bench.engine.peers.{peer}"


@dataclass(frozen=True, kw_only=True)
class Measure:
    title: str
    unit: str
    entrants: tuple[Entrant, ...]


def _slow(peer: str, store: Store, run: str = "drain") -> Entrant:
    return Entrant(peer=peer, store=store, run=run, jobs_short=1_000, rounds=1)


def _start(peer: str, store: Store, label: str = "") -> Entrant:
    return Entrant(
        peer=peer, store=store, run="start", label=label, jobs=300, jobs_short=50, rounds=1
    )


def _recover(peer: str, store: Store, label: str = "") -> Entrant:
    return Entrant(peer=peer, store=store, run="recover", label=label, rounds=2, full_only=True)


def _full_only(run: str, store: Store) -> Entrant:
    label = "SQLite" if store is Store.SQLITE else ""
    return Entrant(peer="tsuzuki", store=store, run=run, label=label, rounds=1, full_only=True)


def _commands(peer: str, store: Store, run: str, label: str) -> Entrant:
    return Entrant(peer=peer, store=store, run=run, label=label, jobs=1_000)


def _in_processes(peer: str, store: Store) -> Entrant:
    label = "SQLite" if store is Store.SQLITE else ""
    short = 200 if peer == "rq" else 1_000
    return Entrant(
        peer=peer,
        store=store,
        run="drain_processes",
        label=label,
        jobs=2_000,
        jobs_short=short,
    )


def _behind(store: Store) -> tuple[Entrant, ...]:
    runs = ("no_backlog", "200_keys", "10000_keys", "tags")
    return tuple(
        Entrant(
            peer="tsuzuki",
            store=store,
            run=f"drain_behind_{run}",
            label=run.replace("_", " "),
            rounds=1,
            full_only=True,
        )
        for run in runs
    )


def _many_jobs(store: Store) -> tuple[Entrant, ...]:
    runs = {
        "define_many": "define",
        "apply_many": "apply",
        "apply_many_again": "apply again",
        "disable_one_of_many": "disable one",
    }
    label = "" if store is Store.POSTGRESQL else f", {store.value}"
    return tuple(
        Entrant(
            peer="tsuzuki",
            store=store,
            run=run,
            label=words + label,
            jobs=5_000,
            jobs_short=500,
            rounds=2,
        )
        for run, words in runs.items()
    )


PG, SQLITE, REDIS = Store.POSTGRESQL, Store.SQLITE, Store.REDIS

MEASURES = (
    Measure(
        title="drain of 10,000 on a server",
        unit="jobs/s",
        entrants=(
            Entrant(peer="tsuzuki", store=PG, run="drain"),
            Entrant(peer="floor", store=PG, run="drain_postgres_in_batches", label="batches"),
            Entrant(
                peer="floor",
                store=PG,
                run="drain_postgres_per_job",
                label="per job",
                jobs_short=2_000,
                rounds=1,
            ),
            Entrant(peer="pgqueuer", store=PG, run="drain"),
            _slow("absurd", PG),
            _slow("dbos", PG),
            _slow("saq", PG),
            _slow("procrastinate", PG),
            _slow("dramatiq", REDIS),
            _slow("arq", REDIS),
            _slow("huey", REDIS, "drain_redis"),
            _slow("taskiq", REDIS),
            _slow("celery", REDIS),
            _slow("rq", REDIS),
        ),
    ),
    Measure(
        title="drain of 2,000 in processes",
        unit="jobs/s",
        entrants=(
            _in_processes("tsuzuki", PG),
            _in_processes("tsuzuki", SQLITE),
            _in_processes("celery", REDIS),
            _in_processes("rq", REDIS),
        ),
    ),
    Measure(
        title="drain of 10,000 on SQLite",
        unit="jobs/s",
        entrants=(
            Entrant(peer="tsuzuki", store=SQLITE, run="drain"),
            Entrant(peer="floor", store=SQLITE, run="drain_sqlite_in_batches", label="batches"),
            Entrant(
                peer="floor",
                store=SQLITE,
                run="drain_sqlite_per_job",
                label="per job",
                jobs_short=2_000,
                rounds=1,
            ),
            _slow("huey", SQLITE, "drain_sqlite"),
            _slow("dbos", SQLITE),
        ),
    ),
    Measure(
        title="drain of 1,000 commands",
        unit="jobs/s",
        entrants=(
            _commands("tsuzuki", SQLITE, "drain_commands_64", "SQLite, capacity 64"),
            _commands("tsuzuki", SQLITE, "drain_commands_4", "SQLite, capacity 4"),
            _commands("tsuzuki", PG, "drain_commands_64", "capacity 64"),
            _commands("floor", SQLITE, "run_in_a_loop", "bare loop"),
            _commands("floor", SQLITE, "run_by_xargs", "xargs"),
        ),
    ),
    Measure(
        title="2,000 commands due at once",
        unit="s late, p50 / last",
        entrants=(
            Entrant(
                peer="tsuzuki", store=SQLITE, run="start_commands_due_at_once", jobs=2_000, rounds=1
            ),
        ),
    ),
    Measure(
        title="submit 10,000 at once",
        unit="jobs/s",
        entrants=(
            Entrant(peer="tsuzuki", store=PG, run="submit_many"),
            Entrant(peer="floor", store=PG, run="insert_array", label="array insert"),
            Entrant(peer="pgqueuer", store=PG, run="submit_many"),
            Entrant(peer="procrastinate", store=PG, run="submit_many"),
            Entrant(peer="tsuzuki", store=SQLITE, run="submit_many", label="SQLite"),
        ),
    ),
    Measure(
        title="submit one by one",
        unit="jobs/s",
        entrants=(
            Entrant(peer="tsuzuki", store=PG, run="submit_each", jobs=2_000, jobs_short=1_000),
            Entrant(
                peer="procrastinate", store=PG, run="submit_each", jobs=2_000, jobs_short=1_000
            ),
            Entrant(
                peer="tsuzuki",
                store=SQLITE,
                run="submit_each",
                label="SQLite",
                jobs=2_000,
                jobs_short=1_000,
            ),
        ),
    ),
    Measure(
        title="submit to start, idle worker",
        unit="ms, p50 / p99",
        entrants=(
            _start("tsuzuki", PG),
            _start("pgqueuer", PG),
            _start("procrastinate", PG),
            _start("tsuzuki", SQLITE, "SQLite"),
            _start("huey", REDIS),
            _start("celery", REDIS),
        ),
    ),
    Measure(
        title="kill -9 in a 60 s job to running again",
        unit="s",
        entrants=(
            _recover("tsuzuki", PG),
            _recover("pgqueuer", PG),
            _recover("tsuzuki", SQLITE, "SQLite"),
        ),
    ),
    Measure(
        title="kill -9 of the leader to the next start",
        unit="s",
        entrants=(_full_only("lose_the_leader", PG), _full_only("lose_the_leader", SQLITE)),
    ),
    Measure(
        title="idle process",
        unit="queries/s / % of a core / MB",
        entrants=(_full_only("stay_idle", PG), _full_only("stay_idle", SQLITE)),
    ),
    Measure(
        title="connections of 8 idle processes",
        unit="most / per process",
        entrants=(_full_only("hold_connections", PG),),
    ),
    Measure(
        title="many jobs: 5,000 definitions",
        unit="s / s of the processor",
        entrants=(*_many_jobs(SQLITE), *_many_jobs(PG)),
    ),
    Measure(
        title="many jobs: idle leader with 10,000",
        unit="% of a core",
        entrants=(
            _full_only("stay_idle_with_many", PG),
            _full_only("stay_idle_with_many", SQLITE),
        ),
    ),
    Measure(
        title="drain with finished runs, PostgreSQL",
        unit="jobs/s",
        entrants=(
            Entrant(peer="tsuzuki", store=PG, run="drain", label="empty table"),
            Entrant(
                peer="tsuzuki", store=PG, run="drain", label="100,000 finished", finished=100_000
            ),
            Entrant(
                peer="tsuzuki",
                store=PG,
                run="drain",
                label="1,000,000 finished",
                finished=1_000_000,
                rounds=1,
                full_only=True,
            ),
        ),
    ),
    Measure(
        title="drain with finished runs, SQLite",
        unit="jobs/s",
        entrants=(
            Entrant(peer="tsuzuki", store=SQLITE, run="drain", label="empty table"),
            Entrant(
                peer="tsuzuki",
                store=SQLITE,
                run="drain",
                label="100,000 finished",
                finished=100_000,
            ),
            Entrant(
                peer="tsuzuki",
                store=SQLITE,
                run="drain",
                label="1,000,000 finished",
                finished=1_000_000,
                rounds=1,
                full_only=True,
            ),
        ),
    ),
    Measure(
        title="drain with a held transaction",
        unit="jobs/s",
        entrants=(
            Entrant(peer="tsuzuki", store=PG, run="drain", label="none held"),
            Entrant(peer="tsuzuki", store=PG, run="drain_beside_a_held_transaction", label="held"),
        ),
    ),
    Measure(
        title="drain behind a blocked backlog, PostgreSQL",
        unit="jobs/s / % of a core while all is blocked",
        entrants=_behind(PG),
    ),
    Measure(
        title="drain behind a blocked backlog, SQLite",
        unit="jobs/s / % of a core while all is blocked",
        entrants=_behind(SQLITE),
    ),
)
