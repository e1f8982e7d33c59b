"""How far items came: groups of the newest ones, and lists by a step that was done."""

import pytest
from sqlalchemy import Connection

from collectors.feeds.stored_items import NOON, add_feed, add_item
from tsuzuki.collectors.feeds.items.item import ItemReason, ItemState, ItemStatus
from tsuzuki.collectors.feeds.queries import item_funnel, item_lists, steps
from tsuzuki.collectors.feeds.queries.item_funnel import ItemGroup
from tsuzuki.collectors.feeds.queries.item_lists import ItemFilter
from tsuzuki.collectors.feeds.queries.steps import StepEnd
from tsuzuki.collectors.feeds.tables import PreparationStep, WaitingState
from tsuzuki.store.sql.database import Database

POSTED = ItemState(status=ItemStatus.PROCESSED, reason=ItemReason.NONE)


def done(
    connection: Connection, item_id: int, step: PreparationStep, *, error_code: str | None = None
) -> None:
    end = StepEnd(error_code=error_code)
    steps.record(
        connection, item_id=item_id, run_id=1, step=step, end=end, started_at=NOON, now=NOON
    )


@pytest.mark.usefixtures("feeds_database")
def test_the_newest_items_are_grouped_and_listed_by_what_was_done(feeds_database: Database) -> None:
    with feeds_database.write() as connection:
        news, other = add_feed(connection), add_feed(connection, "other")
        add_item(connection, other)
        old, fresh, failed, posted = (
            add_item(connection, news, state) for state in (None, None, None, POSTED)
        )
        for step in (PreparationStep.SCREENING, PreparationStep.SCREENING, PreparationStep.SUMMARY):
            done(connection, posted, step)
        done(connection, failed, PreparationStep.SCREENING, error_code="blocked")
        done(connection, old, PreparationStep.SUMMARY)
    with feeds_database.read() as connection:
        found = item_funnel.groups(connection, [news], at_most=3)
        listed = item_lists.find(connection, ItemFilter(step=PreparationStep.SUMMARY), limit=10)
    new = (ItemStatus.UNPROCESSED, None, WaitingState.READY)
    assert sorted(found) == [
        ItemGroup(*new, is_screened=False, is_summarised=False, number=2),
        ItemGroup(POSTED.status, POSTED.reason, None, True, True, 1),
    ]
    assert [item.id for item in listed] == [posted, old]
    assert fresh
