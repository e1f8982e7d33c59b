"""The jobs of every simulation, one for each rule that can be violated, and settings with short timeouts."""

from support.factories import spec
from tsuzuki.model.job import JobSpec
from tsuzuki.model.misfire import Misfire
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.schedule import parse_schedule

ALLOW = ConcurrencyPolicy.ALLOW
TWICE = RetryPolicy(max_retries=2, initial_seconds=0.5, factor=2.0, jitter=0.5)
ONCE = RetryPolicy(max_retries=1, initial_seconds=1.0)

TAG = "gpu"
PROGRAM = "script"
"""The one whose `__main__` has the function of a job."""

JOBS: tuple[JobSpec, ...] = (
    spec("steady", schedule=parse_schedule("every 2s"), retry=ONCE),
    spec(
        "eager",
        schedule=parse_schedule("every 3s"),
        concurrency_policy=ALLOW,
        max_concurrent=2,
        misfire=Misfire.ALL,
        catchup_window_seconds=7.0,
        timeout_seconds=3.0,
    ),
    spec(
        "newest",
        schedule=parse_schedule("every 2s"),
        concurrency_policy=ConcurrencyPolicy.REPLACE,
        retry=ONCE,
    ),
    spec("punctual", schedule=parse_schedule("every 3s"), misfire=Misfire.SKIP, priority=3),
    spec("asked", concurrency_policy=ALLOW, retry=TWICE, timeout_seconds=3.0),
    spec(
        "keyed",
        concurrency_policy=ALLOW,
        max_concurrent=2,
        concurrency_key="to",
        max_concurrent_per_key=1,
        retry=ONCE,
    ),
    spec("result", on_event="news", retry=TWICE, priority=1),
    spec("overheard", on_event="news", concurrency_policy=ALLOW, max_concurrent=3),
    spec("tagged", concurrency_policy=ALLOW, tags=frozenset({TAG}), retry=ONCE),
    spec(
        "scripted",
        handler="python",
        options={"function": "__main__:work", "program": PROGRAM},
        concurrency_policy=ALLOW,
        retry=ONCE,
    ),
)
"""The id of a job is its position, counted from one."""

SCHEDULED = [job_id for job_id, job in enumerate(JOBS, start=1) if job.schedule is not None]
SCHEDULED_AT_ONCE = 1
"""How many keep their schedule in one seed; the others have theirs in other seeds."""

SETTINGS: dict[str, float] = {
    "lease_renew_interval_seconds": 2.0,
    "lease_margin_seconds": 1.0,
    "lease_seconds": 5.0,
    "heartbeat_interval_seconds": 2.0,
    "worker_ttl_seconds": 4.0,
    "worker_grace_seconds": 2.0,
    "reassign_after_seconds": 3.0,
    "poll_interval_seconds": 5.0,
    "drain_timeout_seconds": 2.0,
    "kill_grace_seconds": 0.5,
    "misfire_grace_seconds": 2.0,
    "max_orphans": 3,
}
