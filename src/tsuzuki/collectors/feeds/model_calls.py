"""Calls of a model for an item: recorded and paid from the budget before the request leaves, settled after it.

A call whose run died in between stays STARTED and keeps what it reserved: it may have been paid for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from tsuzuki.collectors.feeds.budget import Budgets, Refusal, Reservation
from tsuzuki.collectors.feeds.feed_set import RunFeed
from tsuzuki.collectors.feeds.model.factory import build_model
from tsuzuki.collectors.feeds.model.prompts import input_hash, prompt_version
from tsuzuki.collectors.feeds.model.protocol import (
    Answer,
    Model,
    ModelBlocked,
    ModelUnavailable,
    Question,
    Usage,
)
from tsuzuki.collectors.feeds.options import FeedsSection
from tsuzuki.collectors.feeds.queries import steps
from tsuzuki.collectors.feeds.queries.items import Item
from tsuzuki.collectors.feeds.queries.steps import BLOCKED, StepEnd, StepRecord
from tsuzuki.collectors.kit.errors import SourceFailed
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.store.sql.database import Connection


class BudgetSpent(Exception):
    """The call would exceed a budget; it was not made."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.sentence)
        self.refusal = refusal


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call that is recorded and may be made."""

    step_id: int
    question: Question
    model: Model
    reservation: Reservation

    @property
    def is_charged(self) -> bool:
        """Whether an answer counts as a paid request: not without a model."""
        return bool(self.reservation.counted_in)


class ModelCalls:
    """The models that the feeds of a run use, built when first needed. `close` it."""

    def __init__(self, *, section: FeedsSection, budgets: Budgets, clock: Clock) -> None:
        self._section = section
        self._budgets = budgets
        self._clock = clock
        self._models: dict[str, Model] = {}

    def model_of(self, feed: RunFeed) -> Model:
        """Raises `ConfigurationError` if the section does not have it."""
        name = feed.options.model
        if name not in self._models:
            settings = self._section.models.get(name)
            if settings is None:
                raise model_unknown(name, feed.name, self._section.models)
            self._models[name] = build_model(settings, name=name, clock=self._clock)
        return self._models[name]

    def known(
        self, connection: Connection, item: Item, feed: RunFeed, question: Question
    ) -> StepRecord | None:
        """How the same question about the item to the same model was answered, or refused, before."""
        asked = input_hash(question, self.model_of(feed))
        done = steps.last_done(connection, item.id, question.step)
        if done is not None and done.input_hash == asked:
            return done
        return steps.blocked_before(connection, item.id, question.step, input_hash=asked)

    def start(
        self,
        connection: Connection,
        item: Item,
        feed: RunFeed,
        question: Question,
        *,
        run_id: int,
        now: datetime,
    ) -> Call:
        """Record a call and reserve what it may cost. It is made once this transaction is committed. Raises
        `BudgetSpent`."""
        model = self.model_of(feed)
        reserved = self._budgets.reserve(
            connection,
            feed_id=feed.id,
            feed=feed.options,
            model_name=model.name,
            model=self._section.models[model.name],
            tokens=model.estimated_tokens(question),
            cost=model.estimated_cost_micros(question),
            now=now,
        )
        if isinstance(reserved, Refusal):
            raise BudgetSpent(reserved)
        step_id = steps.start(
            connection,
            item_id=item.id,
            run_id=run_id,
            step=question.step,
            now=now,
            model=model.identity,
            prompt_version=prompt_version(question),
            input_hash=input_hash(question, model),
        )
        return Call(step_id=step_id, question=question, model=model, reservation=reserved)

    def finish(self, connection: Connection, call: Call, answer: Answer, *, now: datetime) -> None:
        """Record the answer and what it cost."""
        end = StepEnd(result=result_of(answer), is_paid=call.is_charged)
        self._end(connection, call, answer.usage, end, now)

    def fail(
        self, connection: Connection, call: Call, problem: SourceFailed, *, now: datetime
    ) -> None:
        """Record that there was no usable answer. What may have been paid for stays counted; what was certainly
        not sent does not."""
        end = StepEnd(error_code=problem.specific_code, error=problem.message)
        match problem:
            case ModelBlocked():
                blocked = replace(
                    end, error_code=BLOCKED, is_paid=problem.is_paid, result={"raw": problem.raw}
                )
                self._end(connection, call, problem.usage, blocked, now)
            case ModelUnavailable(maybe_paid=True):
                steps.finish(connection, call.step_id, end, now=now)
            case _:
                self._budgets.release(connection, call.reservation)
                steps.finish(connection, call.step_id, end, now=now)

    def _end(
        self, connection: Connection, call: Call, usage: Usage, end: StepEnd, now: datetime
    ) -> None:
        self._budgets.settle(connection, call.reservation, usage)
        used = replace(
            end,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost_micros=usage.cost_micros,
        )
        steps.finish(connection, call.step_id, used, now=now)

    def close(self) -> None:
        for model in self._models.values():
            model.close()


def result_of(answer: Answer) -> dict[str, Any]:
    """An answer as a step stores it."""
    return {"verdict": answer.verdict, "text": answer.text, "why": answer.why}


def model_unknown(name: str, feed: str, known: Mapping[str, object]) -> ConfigurationError:
    return ConfigurationError(
        f"the feed {feed!r} uses the model {name!r}, which the section `feeds` does not have",
        hint=did_you_mean(name, known) + "Add it under `feeds: models:`.",
        code="model_unknown",
    )
