"""What a process does: lead, work, or both, and how much at once."""

from dataclasses import dataclass

from tsuzuki.model.worker import DEFAULT_CAPACITY
from tsuzuki.store.wakeups.channels import WakeupChannel


@dataclass(frozen=True, kw_only=True)
class ProcessRole:
    """`tags` are what this process offers; a job with tags runs only where all of them are. With `only_job`
    its worker is registered for that job alone: no leader, of whatever process, assigns it a run of another one.
    With `only_run` it is registered for that run alone.
    `program` is whose functions in `__main__` it executes; None: no program's."""

    lead: bool = True
    work: bool = True
    capacity: int = DEFAULT_CAPACITY
    tags: frozenset[str] = frozenset()
    only_job: str | None = None
    only_run: int | None = None
    program: str | None = None

    @property
    def name(self) -> str:
        """How such a process is called in lists of the database server."""
        return {(True, True): "up", (False, True): "worker"}.get((self.lead, self.work), "leader")

    @property
    def channels(self) -> frozenset[WakeupChannel]:
        """The wake-ups that concern it."""
        parts = {WakeupChannel.LEADER: self.lead, WakeupChannel.WORKERS: self.work}
        return frozenset(channel for channel, is_ours in parts.items() if is_ours)
