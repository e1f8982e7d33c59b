"""The count of requests paid: those a model answered with a 200 and a usage, whether the answer arrived or not."""

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tsuzuki.sandbox.control import PREFIX
from tsuzuki.sandbox.exchange import Response, Route, StandInRequest, json_response


@dataclass(frozen=True, kw_only=True)
class Payment:
    """One request paid."""

    model: str
    case: str
    """The case it was answered with; empty for a plain answer."""

    text: str
    """What the request said to the model."""

    prompt_tokens: int
    output_tokens: int
    thoughts_tokens: int


class Payments:
    """Payments in the order they were made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: list[Payment] = []

    def add(self, payment: Payment) -> None:
        with self._lock:
            self._made.append(payment)

    def reset(self) -> None:
        with self._lock:
            self._made.clear()

    @property
    def made(self) -> Sequence[Payment]:
        with self._lock:
            return tuple(self._made)

    def count(self, model: str | None = None, *, containing: str = "") -> int:
        """How many were made, of one model, for requests with a text in them."""
        return sum(
            model in (None, payment.model) and containing in payment.text for payment in self.made
        )

    def by_model(self) -> dict[str, dict[str, int]]:
        """Requests and tokens of each model."""
        totals: dict[str, Counter[str]] = {}
        for payment in self.made:
            total = totals.setdefault(payment.model, Counter())
            total["requests"] += 1
            total["prompt_tokens"] += payment.prompt_tokens
            total["output_tokens"] += payment.output_tokens
            total["thoughts_tokens"] += payment.thoughts_tokens
        return {model: dict(total) for model, total in totals.items()}


def payment_routes(payments: Payments) -> list[Route]:
    """GET /_sandbox/paid counts, DELETE starts the count anew."""

    def show(_request: StandInRequest) -> Response:
        counts: dict[str, Any] = {"requests": payments.count(), "models": payments.by_model()}
        return json_response(counts)

    def reset(_request: StandInRequest) -> Response:
        payments.reset()
        return Response(status=204)

    return [Route("GET", f"{PREFIX}/paid", show), Route("DELETE", f"{PREFIX}/paid", reset)]
