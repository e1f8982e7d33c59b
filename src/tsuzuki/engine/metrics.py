"""The engine's own events as Prometheus counters and gauges. One set per process."""

from collections import Counter as Tally
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge

from tsuzuki.engine.histogram import BatchHistogram
from tsuzuki.engine.leader.leader import LeaderRound
from tsuzuki.engine.worker.step import WorkerStep


class Metrics:
    """Counts what ticks answer; nothing here asks the database."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._started = Counter(
            "tsuzuki_runs_started", "Runs this worker began.", ["job"], registry=self.registry
        )
        self._ended = Counter(
            "tsuzuki_runs_ended",
            "Runs whose end the database accepted.",
            ["job", "state"],
            registry=self.registry,
        )
        self._refused = Counter(
            "tsuzuki_run_ends_refused",
            "Ends the database refused because the run was no longer ours.",
            registry=self.registry,
        )
        self._retries = Counter("tsuzuki_retries", "Retries stored.", registry=self.registry)
        self._delay = BatchHistogram(
            "tsuzuki_run_start_delay_seconds",
            "From the moment a run was due to its start.",
            buckets=(0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 3600),
            registry=self.registry,
        )
        self._planned = Counter(
            "tsuzuki_ticks", "Ticks turned into runs or skips.", ["as"], registry=self.registry
        )
        self._events = Counter("tsuzuki_events_seen", "Events taken in.", registry=self.registry)
        self._assigned = Counter("tsuzuki_runs_assigned", "Runs given out.", registry=self.registry)
        self._rescued = Counter(
            "tsuzuki_runs_rescued",
            "Runs orphaned, failed as lost, or confirmed.",
            registry=self.registry,
        )
        self._errors = Counter(
            "tsuzuki_loop_errors", "Steps that failed.", ["loop"], registry=self.registry
        )
        self.running = Gauge("tsuzuki_runs_running", "Runs executing here.", registry=self.registry)
        self.leading = Gauge(
            "tsuzuki_leading", "1 while this process leads.", registry=self.registry
        )
        self.epoch = Gauge("tsuzuki_epoch", "The epoch of our last term.", registry=self.registry)

    def count_step(self, step: WorkerStep, *, running: int, now: datetime) -> None:
        for job, count in Tally([task.spec.name for task in step.started]).items():
            self._started.labels(job=job).inc(count)
        delays = [(now - task.run.scheduled_for).total_seconds() for task in step.started]
        self._delay.observe([max(delay, 0.0) for delay in delays])
        for (job, state), count in step.ends.items():
            self._ended.labels(job=job, state=state.value).inc(count)
        self._refused.inc(len(step.refused))
        self._retries.inc(step.retries)
        self.running.set(running)

    def count_round(self, done: LeaderRound) -> None:
        self._planned.labels("run").inc(done.planned)
        self._planned.labels("skip").inc(done.skipped)
        self._events.inc(done.events)
        self._assigned.inc(done.assigned)
        self._rescued.inc(done.rescued)

    def count_error(self, loop: str) -> None:
        self._errors.labels(loop=loop).inc()
