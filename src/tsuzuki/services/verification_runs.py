"""Verification as runs: start one by request, and list those of all jobs of `type: verify`."""

from collections.abc import Sequence

from tsuzuki.model.built_in_jobs import VERIFICATION_RUNS
from tsuzuki.model.job import JobSpec
from tsuzuki.model.run import Run
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.services import job_changes
from tsuzuki.services.acting import ActingService
from tsuzuki.services.runs import Request, Runs, Submission
from tsuzuki.services.verification import CALLS, DAYS, HANDLER, Verification, Wanted
from tsuzuki.store import jobs
from tsuzuki.store.sql.database import Database


class VerificationRuns(ActingService):
    def __init__(
        self, verification: Verification, *, database: Database, actor: str, runs: Runs
    ) -> None:
        self._database = database
        self._actor = actor
        self._runs = runs
        self._verification = verification

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that can be verified."""
        return self._verification.parts

    def start(
        self,
        parts: Sequence[str] = (),
        *,
        days: int = DAYS,
        calls: int = CALLS,
        idempotency_key: str | None = None,
    ) -> Submission:
        """Start a run that verifies these parts, or all. Raises `UsageError` for an unknown one."""
        self._verification.check(Wanted(parts=parts))
        self._define_job()
        arguments = {"parts": [*parts], "days": days, "calls": calls}
        request = Request(
            job=VERIFICATION_RUNS, arguments=arguments, idempotency_key=idempotency_key
        )
        return self._runs.acting_as(self._actor).submit(request, audited=True)

    def find(self, *, before_id: int | None = None, limit: int = 50) -> list[Run]:
        """Runs of verification jobs, newest first."""
        with self._database.read() as connection:
            names = {job.spec.name for job in jobs.find_by_handler(connection, HANDLER, [])}
        if not names:
            return []
        wanted = RunFilter(job_names=frozenset(names), before_id=before_id, limit=limit)
        return self._runs.find(wanted)

    def _define_job(self) -> None:
        """The job of runs that were started by request; made when first needed."""
        spec = JobSpec(
            name=VERIFICATION_RUNS,
            handler=HANDLER,
            description="Verifies stored data, one run per request.",
            options={"parts": [], "days": DAYS, "calls": CALLS},
        )
        with self._database.read() as connection:
            if not job_changes.to_define(connection, [spec]):
                return
        with self._database.write() as connection:
            job_changes.define(connection, [spec], actor=self._actor)
