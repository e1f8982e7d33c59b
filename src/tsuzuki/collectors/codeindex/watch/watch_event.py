"""What a watcher tells: its state whenever that changes, and each build that it follows."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tsuzuki.collectors.codeindex.builds.job import BuildJob


class WatchState(StrEnum):
    WAITING = "waiting"
    """Another process watches the tree. This one takes over when that ends."""

    BUILDING = "building"
    WATCHING = "watching"
    POLLING = "polling"
    """As watching, but the system gives no notifications: the tree is scanned every few seconds."""

    ROOT_GONE = "root_gone"
    """The root was moved or removed. What is indexed is kept until it is there again."""

    RETRYING = "retrying"
    """A build failed, or the index cannot be written; it is tried again after a pause."""

    CLOSED = "closed"


@dataclass(frozen=True, kw_only=True)
class WatchEvent:
    """`job` is the build that is running, or that has just ended. `note` is for people."""

    at: str
    root: str
    state: WatchState
    job: BuildJob | None = None
    note: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "at": self.at,
            "root": self.root,
            "state": self.state.value,
            "job": self.job.as_json() if self.job else None,
            "note": self.note,
        }
