"""A run as shown to people: with its history, and the run that retries it."""

from dataclasses import asdict, dataclass
from typing import Any

from tsuzuki.model.run import CancelRequest, Run, Transition


@dataclass(frozen=True, kw_only=True)
class RunView:
    """A run with its history and the run that retries it, if any."""

    run: Run
    history: list[Transition]
    retried_as: int | None
    cancel_requested: CancelRequest | None = None
    """Its row was locked when it was to be canceled: it will be as soon as the row is free."""

    def as_dict(self) -> dict[str, Any]:
        return {
            **asdict(self.run),
            "outcome": self.run.outcome,
            "retried_as": self.retried_as,
            "cancel_requested_by": self.cancel_requested and self.cancel_requested.requested_by,
            "cancel_requested_at": self.cancel_requested and self.cancel_requested.requested_at,
            "history": [asdict(transition) for transition in self.history],
        }
