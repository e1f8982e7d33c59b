"""The engine's own events as Prometheus counters and gauges. One set per process."""

import threading
from bisect import bisect_right
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from tsuzuki.engine.leader.leader import LeaderRound
from tsuzuki.engine.worker.step import WorkerStep
from tsuzuki.model.loop_failure import FAILURES_MIN


class BatchHistogram(Collector):
    """A histogram that observes a whole batch of values at once. The client library's own takes a lock and
    several calls for each value, which cost more than all other bookkeeping for a run together."""

    def __init__(
        self, name: str, help_text: str, *, buckets: Sequence[float], registry: CollectorRegistry
    ) -> None:
        self._name = name
        self._help_text = help_text
        self._buckets = buckets
        self._counts = [0] * (len(buckets) + 1)  # cumulative: values up to each limit
        self._sum = 0.0
        self._lock = threading.Lock()
        registry.register(self)

    def observe(self, seconds: Iterable[float]) -> None:
        values = sorted(seconds)
        cumulative = [bisect_right(values, limit) for limit in self._buckets]
        with self._lock:
            self._counts = [
                count + more
                for count, more in zip(self._counts, [*cumulative, len(values)], strict=True)
            ]
            self._sum += sum(values)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        with self._lock:
            counts, total = self._counts, self._sum
        limits = [*(str(float(limit)) for limit in self._buckets), "+Inf"]
        family = HistogramMetricFamily(self._name, self._help_text)
        family.add_metric([], buckets=list(zip(limits, counts, strict=True)), sum_value=total)
        yield family


class Metrics:
    """Counts the results of ticks; nothing here queries the database."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._started = Counter(
            "tsuzuki_runs_started", "Runs started on this worker.", ["job"], registry=self.registry
        )
        self._ended = Counter(
            "tsuzuki_runs_ended",
            "Accepted run ends, except of runs that a worker stopped while shutting down.",
            ["job", "state"],
            registry=self.registry,
        )
        self._refused = Counter(
            "tsuzuki_run_ends_refused",
            "Run ends refused by the fence because the worker no longer owned the run.",
            registry=self.registry,
        )
        self._retries = Counter("tsuzuki_retries", "Retries created.", registry=self.registry)
        self._delay = BatchHistogram(
            "tsuzuki_run_start_delay_seconds",
            "Delay from a run's due time to its start.",
            buckets=(0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 3600),
            registry=self.registry,
        )
        self._planned = Counter(
            "tsuzuki_ticks", "Ticks that became runs or skips.", ["as"], registry=self.registry
        )
        self._events = Counter("tsuzuki_events_seen", "Events processed.", registry=self.registry)
        self._assigned = Counter(
            "tsuzuki_runs_assigned", "Runs assigned to workers.", registry=self.registry
        )
        self._rescued = Counter(
            "tsuzuki_runs_rescued",
            "Runs orphaned or failed as lost, and workers reattached.",
            registry=self.registry,
        )
        self._errors = Counter(
            "tsuzuki_loop_errors", "Loop steps that failed.", ["loop"], registry=self.registry
        )
        self._failing = Gauge(
            "tsuzuki_loop_failing",
            f"while the last {FAILURES_MIN} or more steps of a loop have failed, else 0.",
            ["loop"],
            registry=self.registry,
        )
        self._wal_bytes = Gauge(
            "tsuzuki_sqlite_wal_bytes",
            "Size of the SQLite write-ahead log.",
            ["file"],
            registry=self.registry,
        )
        self.running = Gauge(
            "tsuzuki_runs_running", "Runs executing on this worker.", registry=self.registry
        )
        self.leading = Gauge(
            "tsuzuki_leading", "while this process is the leader, else 0.", registry=self.registry
        )
        self.epoch = Gauge(
            "tsuzuki_epoch", "Epoch of this process's most recent term.", registry=self.registry
        )

    def watch_wal(self, file: str, wal_bytes: Callable[[], int]) -> None:
        """Ask for the size of SQLite's write-ahead log whenever the metrics are read."""
        self._wal_bytes.labels(file=file).set_function(wal_bytes)

    def count_step(self, step: WorkerStep, *, running: int, now: datetime) -> None:
        for job, count in Tally([task.spec.name for task in step.started]).items():
            self._started.labels(job=job).inc(count)
        delays = [(now - task.run.scheduled_for).total_seconds() for task in step.started]
        self._delay.observe([max(delay, 0.0) for delay in delays])
        for (job, state), count in step.ends.items():
            self._ended.labels(job=job, state=state.value).inc(count)
        self._refused.inc(len(step.refused))
        self._retries.inc(step.retries)
        self._assigned.inc(step.refilled.assigned)
        self.running.set(running)

    def count_round(self, done: LeaderRound) -> None:
        self._planned.labels("run").inc(done.planned)
        self._planned.labels("skip").inc(done.skipped)
        self._events.inc(done.events)
        self._assigned.inc(done.assigned)
        self._rescued.inc(done.rescued)

    def watch_loop(self, loop: str, is_failing: Callable[[], bool]) -> None:
        """Ask whether this loop is failing whenever the metrics are read."""
        self._failing.labels(loop=loop).set_function(is_failing)

    def count_error(self, loop: str) -> None:
        self._errors.labels(loop=loop).inc()
