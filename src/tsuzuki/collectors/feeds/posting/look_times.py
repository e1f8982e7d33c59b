"""When a post of which it is not known whether it arrived is looked for again, and the run that looks.

Each pause is longer than the one before, by the account's `settling_time`: 1, 5, 15 and then 60 minutes for the usual
one of a minute.
"""

from datetime import datetime, timedelta

from tsuzuki.collectors.kit.follow_up import schedule_run_at
from tsuzuki.engine.run_context import RunContext
from tsuzuki.store.sql.database import Connection

PAUSE_FACTORS = (1, 5, 15, 60)
LOOK_PURPOSE = "feeds-look"
MINUTE = timedelta(minutes=1)


def look_after(settling_seconds: float, *, looks: int, now: datetime) -> datetime:
    """When to look again after so many looks."""
    factor = PAUSE_FACTORS[min(looks, len(PAUSE_FACTORS) - 1)]
    return now + timedelta(seconds=settling_seconds * factor)


def schedule_look(connection: Connection, run: RunContext, look_at: datetime) -> None:
    """Ask for a run at the first whole minute from then on, so that looks of one minute share a run."""
    whole = look_at.replace(second=0, microsecond=0)
    moment = whole if whole == look_at else whole + MINUTE
    schedule_run_at(connection, run, moment, purpose=LOOK_PURPOSE)
