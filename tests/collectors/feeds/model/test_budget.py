"""Budgets: never over a limit, in all scopes or in none, also if other processes spend at the same time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from support.databases import opened
from support.threads import at_once
from tsuzuki.collectors.feeds.model.budget import Budgets, Refusal, Reservation
from tsuzuki.collectors.feeds.model.protocol import ModelMisconfigured, Usage
from tsuzuki.collectors.feeds.options import FeedOptions, FeedsSection
from tsuzuki.collectors.feeds.queries.budgets import Spent
from tsuzuki.store.sql.database import Database

NOON = datetime(2026, 2, 1, 12, 0, 20, tzinfo=UTC)
DAY_END = datetime(2026, 2, 2, 8, 0, tzinfo=UTC)


def section(model_budget: dict[str, Any] | None = None, **options: Any) -> FeedsSection:
    model = {"provider": "gemini", "budget": model_budget or {}}
    models = {"default": model, "other": {"provider": "gemini"}, "none": {"provider": "extractive"}}
    return FeedsSection.model_validate({"models": models, **options})


def feed(**options: Any) -> FeedOptions:
    return FeedOptions.model_validate({"url": "https://example.org/feed", **options})


def reserve(
    database: Database,
    about: FeedsSection,
    *,
    feed_id: int = 1,
    of: FeedOptions | None = None,
    model: str = "default",
    tokens: int = 100,
    cost: int | None = 10,
    now: datetime = NOON,
) -> Reservation | Refusal:
    with database.write() as connection:
        return Budgets(about).reserve(
            connection,
            feed_id=feed_id,
            feed=of or feed(),
            model_name=model,
            model=about.models[model],
            tokens=tokens,
            cost=cost,
            now=now,
        )


def spent(
    database: Database, about: FeedsSection, now: datetime = NOON
) -> dict[str, tuple[int, int, int]]:
    with database.read() as connection:
        uses = Budgets(about).use(connection, feeds={1: feed(), 2: feed()}, now=now)
    return {
        use.scope: (use.spent.requests, use.spent.tokens, use.spent.cost_micros) for use in uses
    }


def test_a_request_counts_for_all_feeds_for_its_model_and_for_its_feed(
    feeds_database: Database,
) -> None:
    about = section()
    assert isinstance(reserve(feeds_database, about), Reservation)
    reserve(feeds_database, about, feed_id=2, model="other", tokens=7, cost=None)
    assert spent(feeds_database, about) == {
        "all": (2, 107, 10),
        "model:default": (1, 100, 10),
        "model:other": (1, 7, 0),
        "model:none": (0, 0, 0),
        "feed:1": (1, 100, 10),
        "feed:2": (1, 7, 0),
    }


LIMITS = [
    ({"requests_per_day": 2}, 2, DAY_END),
    ({"requests_per_minute": 2}, 2, NOON.replace(second=0) + timedelta(minutes=1)),
    ({"tokens_per_day": 250}, 2, DAY_END),
    ({"tokens_per_day": 200}, 2, DAY_END),
    ({"cost_per_day": 0.000035}, 3, DAY_END),
    ({"requests_per_day": 0}, 0, None),
    ({"requests_per_minute": 0}, 0, None),
    ({"tokens_per_day": 99}, 0, None),
    ({"cost_per_day": 0}, 0, None),
]


@pytest.mark.parametrize("place", ["all", "model", "feed"])
def test_what_could_exceed_a_limit_is_refused_and_counted_nowhere(
    feeds_database: Database, place: str
) -> None:
    for number, (limits, granted, open_at) in enumerate(LIMITS):
        later = timedelta(days=number)  # another day each, with nothing spent
        about = section(
            limits if place == "model" else None, budget=limits if place == "all" else {}
        )
        of = feed(budget=limits if place == "feed" else {})
        answers = [
            reserve(feeds_database, about, of=of, now=NOON + later) for _ in range(granted + 2)
        ]
        assert [type(one) for one in answers] == [Reservation] * granted + [Refusal] * 2
        refusal = answers[-1]
        assert isinstance(refusal, Refusal)
        assert refusal.limit == next(iter(limits))
        assert refusal.open_at == (None if open_at is None else open_at + later)
        assert refusal.scope.partition(":")[0] == place
        assert refusal.limit in refusal.sentence
        counted = (granted, granted * 100, granted * 10)
        totals = spent(feeds_database, about, NOON + later)
        assert [totals[scope] for scope in ("all", "model:default", "feed:1")] == [counted] * 3


def test_of_several_limits_the_one_that_holds_longest_is_named(feeds_database: Database) -> None:
    about = section({"requests_per_minute": 1}, budget={"requests_per_day": 1})
    reserve(feeds_database, about)
    refusal = reserve(feeds_database, about)
    assert isinstance(refusal, Refusal)
    assert (refusal.limit, refusal.open_at) == ("requests_per_day", DAY_END)


def test_the_budget_of_one_feed_does_not_bind_another(feeds_database: Database) -> None:
    about, of = section(), feed(budget={"requests_per_day": 1})
    assert isinstance(reserve(feeds_database, about, of=of), Reservation)
    assert isinstance(reserve(feeds_database, about, of=of), Refusal)
    assert isinstance(reserve(feeds_database, about, of=of, feed_id=2), Reservation)


EDGES = [
    ("requests_per_minute", "UTC", "2026-02-01T12:00:59.999999", "2026-02-01T12:01:00"),
    ("requests_per_day", "UTC", "2026-03-01T23:59:59.999999", "2026-03-02T00:00:00"),
    ("requests_per_day", "Asia/Tokyo", "2026-04-01T14:59:59", "2026-04-01T15:00:00"),
    # The days of 23 and of 25 hours in California.
    ("requests_per_day", "America/Los_Angeles", "2026-03-09T06:59:59", "2026-03-09T07:00:00"),
    ("requests_per_day", "America/Los_Angeles", "2026-11-02T07:59:59", "2026-11-02T08:00:00"),
]


def test_a_window_ends_where_the_next_one_starts(feeds_database: Database) -> None:
    for limit, zone, last, first in EDGES:
        about = section(budget={limit: 1}, budget_zone=zone)
        before = datetime.fromisoformat(last).replace(tzinfo=UTC)
        after = datetime.fromisoformat(first).replace(tzinfo=UTC)
        assert isinstance(reserve(feeds_database, about, now=before), Reservation)
        refusal = reserve(feeds_database, about, now=before)
        assert isinstance(refusal, Refusal)
        assert refusal.open_at == after
        assert isinstance(reserve(feeds_database, about, now=after), Reservation)


USED = [
    (Usage(input_tokens=30, output_tokens=10, cost_micros=4), (1, 40, 4)),
    (Usage(input_tokens=300, output_tokens=10, cost_micros=44), (1, 310, 44)),
    (Usage(cost_micros=0), (1, 0, 0)),
    (Usage(input_tokens=100, cost_micros=None), (1, 100, 10)),
]


def test_what_was_used_replaces_the_estimate_in_the_window_of_the_request(
    feeds_database: Database,
) -> None:
    about = section({"requests_per_minute": 5})
    for number, (usage, left) in enumerate(USED):
        now = NOON + timedelta(days=number)
        made = reserve(feeds_database, about, now=now)
        assert isinstance(made, Reservation)
        with feeds_database.write() as connection:
            Budgets(about).settle(connection, made, usage)
        totals = spent(feeds_database, about, now)
        assert [totals[scope] for scope in ("all", "model:default", "feed:1")] == [left] * 3
        assert {*spent(feeds_database, about, now + timedelta(days=1)).values()} == {(0, 0, 0)}


def test_a_request_that_was_not_sent_is_counted_no_longer(feeds_database: Database) -> None:
    about = section({"requests_per_minute": 1}, budget={"requests_per_day": 1})
    made = reserve(feeds_database, about)
    assert isinstance(made, Reservation)
    with feeds_database.write() as connection:
        Budgets(about).release(connection, made)
    assert {*spent(feeds_database, about).values()} == {(0, 0, 0)}
    assert isinstance(reserve(feeds_database, about), Reservation)


def test_after_a_crash_before_it_is_settled_a_request_stays_counted(
    feeds_database: Database,
) -> None:
    about = section(budget={"requests_per_day": 1, "tokens_per_day": 100})
    reserve(feeds_database, about)
    assert isinstance(reserve(feeds_database, about), Refusal)


def test_after_a_crash_before_its_commit_a_request_was_not_counted(
    feeds_database: Database,
) -> None:
    about = section()

    def crash_before_the_commit() -> None:
        with feeds_database.write() as connection:
            Budgets(about).reserve(
                connection,
                feed_id=1,
                feed=feed(),
                model_name="default",
                model=about.models["default"],
                tokens=1,
                cost=1,
                now=NOON,
            )
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        crash_before_the_commit()
    assert {*spent(feeds_database, about).values()} == {(0, 0, 0)}


def test_without_a_model_nothing_is_counted(feeds_database: Database) -> None:
    about = section(budget={"requests_per_day": 0})
    made = reserve(feeds_database, about, model="none")
    assert isinstance(made, Reservation)
    with feeds_database.write() as connection:
        Budgets(about).settle(connection, made, Usage(cost_micros=0))
    assert {*spent(feeds_database, about).values()} == {(0, 0, 0)}


def test_a_limit_of_cost_needs_a_price(feeds_database: Database) -> None:
    about = section(budget={"cost_per_day": 1})
    with pytest.raises(ModelMisconfigured) as caught:
        reserve(feeds_database, about, cost=None)
    assert "dollars_per_million_input_tokens" in (caught.value.hint or "")


def test_the_feeds_without_budget_are_known_before_an_item_is_drawn(
    feeds_database: Database,
) -> None:
    about = section({"requests_per_day": 1})
    feeds = {
        1: feed(),
        2: feed(model="other", budget={"tokens_per_day": 0}),
        3: feed(model="other"),
        4: feed(model="none"),
        5: feed(model="unknown"),
    }

    def refused() -> dict[int, datetime | None]:
        with feeds_database.read() as connection:
            found = Budgets(about).refusals(connection, feeds=feeds, now=NOON)
        return {feed_id: refusal.open_at for feed_id, refusal in found.items()}

    assert refused() == {2: None}
    reserve(feeds_database, about)
    assert refused() == {1: DAY_END, 2: None}


def test_old_windows_are_deleted_and_the_present_ones_stay(feeds_database: Database) -> None:
    about = section(budget={"requests_per_minute": 9})
    for age in (timedelta(0), timedelta(minutes=5), timedelta(days=20), timedelta(days=40)):
        reserve(feeds_database, about, now=NOON - age)
    with feeds_database.write() as connection:
        # Three days of forty days ago, and the minutes of forty and of twenty.
        assert Budgets(about).prune(connection, now=NOON) == 5
        assert Budgets(about).prune(connection, now=NOON) == 0
    assert spent(feeds_database, about)["all"][0] == 2
    assert spent(feeds_database, about, NOON - timedelta(days=20))["all"][0] == 1


RACERS = 4
TRIES = 12


def test_processes_that_spend_at_the_same_time_never_exceed_a_limit(
    feeds_database: Database, database_url: str
) -> None:
    limits = [{"requests_per_day": 25}, {"tokens_per_day": 2_500}, {"requests_per_minute": 25}]
    for number, limit in enumerate(limits):
        about, now = section(budget=limit), NOON + timedelta(days=number)

        def spend(
            racer: int, about: FeedsSection = about, now: datetime = now
        ) -> list[Reservation | Refusal]:
            # A connection of its own, as another process has it.
            with opened(database_url) as own:
                return [reserve(own, about, feed_id=racer, now=now) for _ in range(TRIES)]

        answers = at_once(RACERS, spend)
        granted = [sum(isinstance(one, Reservation) for one in made) for made in answers]
        assert sum(granted) == 25
        with feeds_database.read() as connection:
            feeds = {racer: feed() for racer in range(RACERS)}
            uses = Budgets(about).use(connection, feeds=feeds, now=now)
        by_scope = {use.scope: use.spent for use in uses}
        assert by_scope["all"] == Spent(requests=25, tokens=2_500, cost_micros=250)
        assert by_scope["model:default"] == by_scope["all"]
        assert [by_scope[f"feed:{racer}"].requests for racer in range(RACERS)] == granted
