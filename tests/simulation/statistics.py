"""Hourly statistics: what they count is what ended, by the recorded moves."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulation.world import World

LATER_SECONDS = timedelta(hours=1, minutes=6).total_seconds()
"""After so long the hour of any end so far is over, and settled."""

NEWEST_SQL = """
SELECT max(at) FROM (
    SELECT max(at) AS at FROM tsuzuki_job_run_transitions UNION ALL
    SELECT max(scheduled_for) FROM tsuzuki_job_runs UNION ALL SELECT max(created_at) FROM tsuzuki_events
)
"""
ENDED_SQL = """
SELECT substr(t.at, 1, 13), r.job_definition_id,
    CASE WHEN t.reason IN ('late', 'overlap', 'job_disabled', 'schedule_changed') THEN 'SKIPPED' ELSE t.to_state END,
    count(*)
FROM tsuzuki_job_run_transitions AS t JOIN tsuzuki_job_runs AS r ON r.id = t.run_id
WHERE t.to_state IN ('SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELED')
    AND t.reason IS NOT 'worker_shutdown'
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
COUNTED_SQL = """
SELECT substr(hour, 1, 13), job_definition_id, outcome, sum(runs)
FROM tsuzuki_run_hours GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


def seconds_behind(world: "World") -> float:
    """By how much the database's clock is behind the newest time that was stored: it was set back since."""
    (newest,) = world.store.raw.execute(NEWEST_SQL).fetchone()
    return (datetime.fromisoformat(newest) - world.database_clock.now()).total_seconds()


def end_the_hour(world: "World") -> None:
    """Also the hours that ended before the clock was set back."""
    world.database_clock.step(max(seconds_behind(world), 0.0) + LATER_SECONDS)


def is_counted(world: "World") -> bool:
    """Whether every end is counted in its hour, once."""
    raw = world.store.raw
    return bool(raw.execute(ENDED_SQL).fetchall() == raw.execute(COUNTED_SQL).fetchall())
