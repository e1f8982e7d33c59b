"""A run as people see it: with its history, and the run that retries it."""

from dataclasses import asdict, dataclass
from typing import Any

from tsuzuki.model.run import Run, Transition


@dataclass(frozen=True, kw_only=True)
class RunView:
    """A run with its history and the run that retries it, if any."""

    run: Run
    history: list[Transition]
    retried_as: int | None

    def as_dict(self) -> dict[str, Any]:
        return {
            **asdict(self.run),
            "retried_as": self.retried_as,
            "history": [asdict(transition) for transition in self.history],
        }
