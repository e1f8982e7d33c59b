"""The engine's own events as Prometheus counters and gauges. One set per process."""

from collections import Counter as Tally
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge

from tsuzuki.engine.delays import Delays
from tsuzuki.engine.leader import Led
from tsuzuki.engine.worked import Worked


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
        self._delay = Delays(
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

    def worked(self, worked: Worked, *, running: int, now: datetime) -> None:
        for job, count in Tally([task.spec.name for task in worked.started]).items():
            self._started.labels(job=job).inc(count)
        delays = [(now - task.run.scheduled_for).total_seconds() for task in worked.started]
        self._delay.observe([max(delay, 0.0) for delay in delays])
        for (job, state), count in worked.ends.items():
            self._ended.labels(job=job, state=state.value).inc(count)
        self._refused.inc(len(worked.refused))
        self._retries.inc(worked.retries)
        self.running.set(running)

    def led(self, led: Led) -> None:
        self._planned.labels("run").inc(led.planned)
        self._planned.labels("skip").inc(led.skipped)
        self._events.inc(led.events)
        self._assigned.inc(led.assigned)
        self._rescued.inc(led.rescued)

    def failed(self, loop: str) -> None:
        self._errors.labels(loop=loop).inc()
