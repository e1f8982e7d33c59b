"""Use cases, called by commands, routes, pages and tools."""

from dataclasses import dataclass
from datetime import datetime

from tsuzuki.model.errors import NotFound
from tsuzuki.store import audit
from tsuzuki_statuses import queries

NAME = "statuses"


@dataclass(frozen=True, kw_only=True)
class CursorView:
    """Cursor of a job; `is_current` if it belongs to the job's current account."""

    job: str
    account: str
    newest_id: str
    updated_at: datetime
    is_current: bool

    def as_dict(self):
        """Values for the columns of `tsuzuki job cursor ls`."""
        return {
            "job": self.job,
            "start_index": self.newest_id,
            "is_exhausted": False,  # new statuses can appear at any time
            "is_current": self.is_current,
            "last_updated_at": self.updated_at,
            "query_set_hash": self.account,
        }


class Statuses:
    """Service for one actor, built from a `ServiceContext`."""

    def __init__(self, context):
        self._database = context.database
        self._jobs = context.jobs
        self._actor = context.actor

    def find(self, *, job=None, run_id=None, after=None, limit=100):
        """Statuses by job and id, as dictionaries; `after` is the (job, id) of the last one before them."""
        with self._database.read() as connection:
            rows = queries.find(connection, job=job, run_id=run_id, after=after, limit=limit)
        return [dict(row) for row in rows]

    def count(self, *, job=None, run_id=None):
        with self._database.read() as connection:
            return queries.count(connection, job=job, run_id=run_id)

    def jobs(self):
        """Names of the jobs of this type, with their accounts."""
        specs = [view.spec for view in self._jobs.find()]
        return {spec.name: spec.options["account"] for spec in specs if spec.handler == NAME}

    def cursors(self, job_name=None):
        """All cursors, or the cursor of one job. Raises `NotFound` for a job of another type that has none."""
        jobs = self.jobs()
        with self._database.read() as connection:
            rows = queries.find_cursors(connection)
        found = [
            CursorView(**row, is_current=row["account"] == jobs.get(row["job"]))
            for row in (dict(one._mapping) for one in rows)  # noqa: SLF001 -- SQLAlchemy's name
            if job_name in (None, row["job"])
        ]
        if not found and job_name is not None and job_name not in jobs:
            raise _unknown(job_name)
        return found

    def reset_cursors(self, job_name):
        """Make the next run of a job start from the beginning. Stored statuses are kept and not stored twice."""
        with self._database.write() as connection:
            deleted = queries.delete_cursor(connection, job_name)
            if deleted:
                self._note(connection, "statuses.reset", job_name, {"cursors": deleted})
        if not deleted and job_name not in self.jobs():
            raise _unknown(job_name)
        return deleted

    def forget(self, job_name):
        """Delete the statuses of a job and its cursor, and return the number of statuses."""
        with self._database.write() as connection:
            forgotten = queries.delete_kept(connection, job_name)
            deleted = queries.delete_cursor(connection, job_name)
            if forgotten or deleted:
                self._note(connection, "statuses.forget", job_name, {"statuses": forgotten})
        if not (forgotten or deleted) and job_name not in self.jobs():
            raise _unknown(job_name)
        return forgotten

    def _note(self, connection, action, job_name, before):
        audit.record(
            connection,
            actor=self._actor,
            action=action,
            object_type=NAME,
            object_id=job_name,
            before=before,
        )


def _unknown(job_name):
    return NotFound(f"there is no job {job_name!r} that keeps statuses", hint="See: tsuzuki job ls")
