"""Every list, count and overview of the API, as the requests that are measured.

Each filter is there, as an exclusion too, alone and in pairs, for what is frequent, rare, and not there at all.
A request with `deep` continues at a cursor in the middle of the list.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One measured request; `deep`: how many pages of 200 come before it."""

    name: str
    path: str
    deep: int = 0


def _ago(**length: float) -> str:
    return (datetime.now(UTC) - timedelta(**length)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _runs() -> dict[str, str]:
    """The filters of runs, by what they are about."""
    return {
        "all": "",
        "frequent job": "job=job-003",
        "rare job": "job=job-199",
        "three jobs": "job=job-003&job=job-050&job=job-199",
        "exclude frequent job": "exclude_job=job-003",
        "waiting": "state=PENDING",
        "running": "state=RUNNING&state=ASSIGNED",
        "succeeded": "state=SUCCEEDED",
        "failed": "state=FAILED",
        "timed out": "state=TIMED_OUT",
        "ended badly": "state=FAILED&state=TIMED_OUT&state=CANCELED",
        "exclude succeeded": "exclude_state=SUCCEEDED",
        "exclude failed": "exclude_state=FAILED",
        "failed of a frequent job": "job=job-003&state=FAILED",
        "failed of a rare job": "job=job-199&state=FAILED",
        "worker": "worker=host-7-1234-abcdef",
        "worker that never was": "worker=host-99-1-ffffff",
        "exclude worker": "exclude_worker=host-7-1234-abcdef",
        "frequent reason": "reason=handler_failed",
        "rare reason": "reason=worker_lost",
        "reason that never was": "reason=orphan_limit",
        "exclude reason": "exclude_reason=handler_failed",
        "trigger": "trigger=retry",
        "exclude trigger": "exclude_trigger=manual&exclude_trigger=time",
        "concurrency key": "concurrency_key=tenant-77",
        "concurrency key that never was": "concurrency_key=tenant-none",
        "key of a job": "job=job-003&concurrency_key=tenant-73",
        "event": "event_id=50",
        "retry of": "retry_of=1003",
        "chain of retries": "origin_id=1003",
        "created in a day of last week": f"created_from={_ago(days=8)}&created_until={_ago(days=7)}",
        "created in the last hour": f"created_from={_ago(hours=1)}",
        "finished in an hour of last week": f"finished_from={_ago(days=7, hours=1)}&finished_until={_ago(days=7)}",
        "finished in the last hour": f"finished_from={_ago(hours=1)}",
        "failed in a day of last week": f"state=FAILED&finished_from={_ago(days=8)}&finished_until={_ago(days=7)}",
        "failed of a job in the last day": f"job=job-003&state=FAILED&finished_from={_ago(days=1)}",
    }


def asked() -> list[Asked]:
    found = []
    for name, words in _runs().items():
        path = f"runs?{words}"
        found.append(Asked(name=f"runs: {name}", path=path))
        found.append(Asked(name=f"runs: {name}, counted", path=f"{path}&count=true"))
    for name in ("all", "frequent job", "failed", "exclude worker"):
        path = f"runs?{_runs()[name]}&limit=200"
        found.append(Asked(name=f"runs: {name}, deep", path=path, deep=25))
    others = {
        "jobs": "jobs?count=true&limit=200",
        "jobs: search": "jobs?search=19&count=true",
        "failures": "failures?count=true",
        "failures of 30 days": f"failures?since={_ago(days=30)}&count=true&limit=200",
        "failures, acknowledged too": "failures?acknowledged=true",
        "statistics: 24 hours": "statistics/hours",
        "statistics: 31 days": "statistics/hours?hours=744",
        "statistics: 31 days of a job": "statistics/hours?hours=744&job=job-003",
        "statistics: jobs, 24 hours": "statistics/jobs",
        "statistics: jobs, 31 days": "statistics/jobs?hours=744",
        "events": "events?count=true",
        "events of a type": "events?event_type=type-7&count=true",
        "events of a type that never was": "events?event_type=none&count=true",
        "audit": "audit?count=true",
        "audit of a type": "audit?object_type=job&count=true",
        "audit of an object": "audit?object_type=run&object_id=777&count=true",
        "audit of an actor": "audit?actor=user:u7&count=true",
        "audit of an actor that never was": "audit?actor=user:none&count=true",
        "bulk": "bulk?count=true",
        "workers": "workers",
        "settings": "settings",
        "tokens": "tokens",
        "sessions": "sessions",
        "users": "users",
        "commits: targets": "commits/targets?count=true",
        "commits: collections": "commits/collections?count=true",
        "books": "books?count=true",
        "books: cursors": "books/cursors",
        "feeds": "feeds?count=true",
        "feeds: items": "feeds/items?count=true",
    }
    found += [Asked(name=name, path=path) for name, path in others.items()]
    return found
