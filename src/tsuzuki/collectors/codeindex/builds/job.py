"""BuildJob: the public state of a build, its IDs and its invariants.

running ──→ completed     result and completedAt are set
   └──────→ failed        error and failedAt are set; a canceled build has the error `cancelled`
"""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

JOB_ID = re.compile(r"build-\d+-[a-z0-9]{6}|watcher-\d+")
CANCELLED = "cancelled"
ENDED_JOB_SECONDS = 300.0
"""How long a job that ended is remembered."""

ENDED_JOBS_MAX = 1000
"""How many ended jobs of a tree are remembered: a watcher ends a few per second at most."""

_ID_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


class BuildStatus(StrEnum):
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


class InvalidBuildJob(ValueError):
    """A BuildJob that breaks a rule. The message names it."""


@dataclass(frozen=True, kw_only=True)
class BuildProgress:
    """Files processed, of how many, and how many a second since the start."""

    processed: int = 0
    total: int = 0
    rate: float = 0.0


@dataclass(frozen=True, kw_only=True)
class BuildResult:
    updated_files: int
    removed_files: int
    total_indexed_symbols: int
    last_indexed_at: str

    def as_json(self) -> dict[str, Any]:
        return {
            "updatedFiles": self.updated_files,
            "removedFiles": self.removed_files,
            "totalIndexedSymbols": self.total_indexed_symbols,
            "lastIndexedAt": self.last_indexed_at,
        }

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> "BuildResult":
        return cls(
            updated_files=value["updatedFiles"],
            removed_files=value["removedFiles"],
            total_indexed_symbols=value["totalIndexedSymbols"],
            last_indexed_at=value["lastIndexedAt"],
        )


@dataclass(frozen=True, kw_only=True)
class BuildJob:
    """Times are ISO 8601. It cannot be made against the rules: `InvalidBuildJob` is raised."""

    id: str
    status: BuildStatus
    progress: BuildProgress
    started_at: str
    result: BuildResult | None = None
    error: str | None = None
    completed_at: str | None = None
    failed_at: str | None = None

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise InvalidBuildJob(f"{self.id}: {problem}")

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> "BuildJob":
        result = value["result"]
        return cls(
            id=value["id"],
            status=BuildStatus(value["status"]),
            progress=BuildProgress(**value["progress"]),
            started_at=value["startedAt"],
            result=BuildResult.of_json(result) if result else None,
            error=value["error"],
            completed_at=value["completedAt"],
            failed_at=value["failedAt"],
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "status": self.status.value,
            "progress": {
                "processed": self.progress.processed,
                "total": self.progress.total,
                "rate": self.progress.rate,
            },
            "result": self.result.as_json() if self.result else None,
            "error": self.error,
            "startedAt": self.started_at,
            "completedAt": self.completed_at,
            "failedAt": self.failed_at,
        }


def _problems(job: BuildJob) -> list[str]:
    progress, status = job.progress, job.status
    rules = {
        "the id is neither build-<ms>-<6 of a-z0-9> nor watcher-<ms>": JOB_ID.fullmatch(job.id),
        f"invalid status {status!r}": status in list(BuildStatus),
        "processed is negative": progress.processed >= 0,
        f"processed ({progress.processed}) > total ({progress.total})": progress.processed
        <= progress.total,
        f"the rate ({progress.rate}) is not 0 or more": progress.rate >= 0,
    }
    return [
        *(words for words, holds in rules.items() if not holds),
        *_problems_of_fields(job),
    ]


_FIELDS_OF = {
    BuildStatus.RUNNING: (),
    BuildStatus.COMPLETED: ("result", "completed_at"),
    BuildStatus.FAILED: ("error", "failed_at"),
}
"""The fields that are set in each status. Every other of the four is null."""


def _problems_of_fields(job: BuildJob) -> list[str]:
    required = _FIELDS_OF.get(job.status, ())
    found = []
    for name in ("result", "error", "completed_at", "failed_at"):
        value = getattr(job, name)
        if name in required and (value is None or value == ""):
            found.append(f"{name} is required for a {job.status} job")
        if name not in required and value is not None:
            found.append(f"{name} must be null for a {job.status} job")
    return found


def build_id(now_ms: int, chance: random.Random) -> str:
    """The id of a build that was asked for."""
    return f"build-{now_ms}-" + "".join(chance.choices(_ID_CHARACTERS, k=6))


def watcher_id(now_ms: int) -> str:
    """The id of a build that a watcher started."""
    return f"watcher-{now_ms}"
