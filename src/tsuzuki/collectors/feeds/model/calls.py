"""Calls of a model for an item: recorded and paid from the budget before the request leaves, settled after it.

A call whose run died in between stays STARTED and keeps what it reserved: it may have been paid for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from tsuzuki.collectors.feeds.fetching.feed_set import Closure, RunFeed
from tsuzuki.collectors.feeds.model.budget import Budgets, Refusal, Reservation
from tsuzuki.collectors.feeds.model.factory import build_model
from tsuzuki.collectors.feeds.model.prompts import input_hash, prompt_version
from tsuzuki.collectors.feeds.model.protocol import (
    LanguageModel,
    ModelAnswer,
    ModelBlocked,
    ModelOutOfQuota,
    ModelUnavailable,
    Question,
    Usage,
)
from tsuzuki.collectors.feeds.options import FeedsSection
from tsuzuki.collectors.feeds.queries import models, steps
from tsuzuki.collectors.feeds.queries.items import StoredItem
from tsuzuki.collectors.feeds.queries.steps import BLOCKED, StepEnd, StepRecord
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.outward.errors import RateLimitedUntil, SourceFailed
from tsuzuki.store.sql.database import Connection, Database

PROBE_EVERY = timedelta(hours=1)
"""How often a model whose day is used up is asked whether it still is."""

NOTHING_USED = Usage(cost_micros=0)


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """A call that is recorded and may be made."""

    step_id: int
    question: Question
    model: LanguageModel
    reservation: Reservation

    @property
    def is_charged(self) -> bool:
        """Whether an answer counts as a paid request: not without a model."""
        return bool(self.reservation.counted_in)


class ModelCalls:
    """The models that the feeds of a run use, built when first needed. `close` it."""

    def __init__(self, *, section: FeedsSection, budgets: Budgets, database: Database) -> None:
        self._section = section
        self._budgets = budgets
        self._database = database
        self._models: dict[str, LanguageModel] = {}
        self._probed: set[str] = set()

    def model_of(self, feed: RunFeed) -> LanguageModel:
        """Raises `ConfigurationError` if the section does not have it."""
        name = feed.options.model
        if name not in self._models:
            settings = self._section.models.get(name)
            if settings is None:
                raise model_unknown(name, feed.name, self._section.models)
            self._models[name] = build_model(
                settings,
                name=name,
                clock=self._database.clock,
                has_answered=lambda: self._has_answered(name),
            )
        return self._models[name]

    def known(
        self, earlier: Sequence[StepRecord], feed: RunFeed, question: Question
    ) -> StepRecord | None:
        """How the same question about the item to the same model was answered, or refused, in its earlier steps."""
        if not earlier:
            return None
        asked = input_hash(question, self.model_of(feed))
        done = steps.last_done_of(earlier, question.step)
        if done is not None and done.input_hash == asked:
            return done
        return steps.blocked_before(earlier, question.step, input_hash=asked)

    def start(
        self,
        connection: Connection,
        item: StoredItem,
        feed: RunFeed,
        question: Question,
        *,
        run_id: int,
        now: datetime,
    ) -> ModelCall | Refusal:
        """Record a call and reserve what it may cost: it is made once this transaction is committed. A call that would
        exceed a budget is refused."""
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
            return reserved
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
        return ModelCall(step_id=step_id, question=question, model=model, reservation=reserved)

    def closures(self, connection: Connection, *, now: datetime) -> dict[str, Closure]:
        """The models that are parked. One whose probe is due is not among them: a run may ask it once."""
        found = {}
        for name, park in models.parked(connection, now=now).items():
            if models.take_probe(connection, name, now=now, next_probe_at=now + PROBE_EVERY):
                self._probed.add(name)
            else:
                found[name] = Closure(why=park.why, until=park.parked_until)
        return found

    def park(
        self, connection: Connection, model: str, limited: RateLimitedUntil, *, now: datetime
    ) -> None:
        """The model asks for a pause, which every run keeps."""
        is_day = isinstance(limited, ModelOutOfQuota)
        probe_at = min(limited.until, now + PROBE_EVERY) if is_day else limited.until
        models.park(connection, model, until=limited.until, probe_at=probe_at, why=limited.message)

    def finish(
        self, connection: Connection, call: ModelCall, answer: ModelAnswer, *, now: datetime
    ) -> None:
        """Record the answer and what it cost."""
        end = StepEnd(result=result_of(answer), is_paid=call.is_charged)
        if call.model.name in self._probed:
            self._probed.discard(call.model.name)
            models.unpark(connection, call.model.name)
        self._end(connection, call, answer.usage, end, now)

    def fail(
        self, connection: Connection, call: ModelCall, problem: SourceFailed, *, now: datetime
    ) -> None:
        """Record that there was no usable answer. The request stays counted; so does what it may have cost, unless
        the server says that it cost nothing."""
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
                self._end(connection, call, NOTHING_USED, end, now)

    def _end(
        self, connection: Connection, call: ModelCall, usage: Usage, end: StepEnd, now: datetime
    ) -> None:
        self._budgets.settle(connection, call.reservation, usage)
        used = replace(
            end,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost_micros=usage.cost_micros,
        )
        steps.finish(connection, call.step_id, used, now=now)

    def _has_answered(self, name: str) -> bool:
        with self._database.read() as connection:
            return models.has_answered(connection, self._models[name].identity)

    def close(self) -> None:
        for model in self._models.values():
            model.close()


def result_of(answer: ModelAnswer) -> dict[str, Any]:
    """An answer as a step stores it."""
    return {"verdict": answer.verdict, "text": answer.text, "why": answer.why}


def model_unknown(name: str, feed: str, known: Mapping[str, object]) -> ConfigurationError:
    return ConfigurationError(
        f"feed {feed!r} uses model {name!r}, which is missing in the section `feeds`",
        hint=did_you_mean(name, known) + "Add it under `feeds: models:`.",
        code="model_unknown",
    )
