"""The leader as the worker of its own process sees it (`worker/local_leader`)."""

from contextlib import AbstractContextManager, nullcontext

from tsuzuki.engine.leader.assigner import Assigner
from tsuzuki.engine.leader.lease import Lease
from tsuzuki.engine.worker.local_leader import Refill, Starting


class OwnLeader:
    def __init__(self, *, lease: Lease, assigner: Assigner) -> None:
        self._lease = lease
        self._assigner = assigner

    @property
    def leads(self) -> bool:
        return self._lease.term is not None

    def refilling(self, starting: Starting) -> AbstractContextManager[Refill | None]:
        term = self._lease.term
        return nullcontext() if term is None else self._assigner.refilling(term, starting)
