"""Part of `tsuzuki verify`: check that every status of an account up to the cursor is stored."""

from tsuzuki.model.errors import TsuzukiError
from tsuzuki.model.verification import Comparison, FaultKind
from tsuzuki_statuses import queries
from tsuzuki_statuses.options import Section
from tsuzuki_statuses.source import Mastodon


def verify(context):
    with context.database.read() as connection:
        collected = queries.find_cursors(connection)
    if not collected:
        return
    with Mastodon(context.section(Section)) as mastodon:
        for cursor in collected:
            comparison = Comparison(cursor.job)
            try:
                _compare(context, mastodon, cursor, comparison)
            except TsuzukiError as error:
                yield comparison.result(problem=error.message)
            else:
                yield comparison.result()


def _compare(context, mastodon, cursor, comparison):
    newest_id = None
    while page := mastodon.page_after(cursor.account, newest_id):
        newest_id = page[-1].id
        wanted = [one.id for one in page if int(one.id) <= int(cursor.newest_id)]
        with context.database.read() as connection:
            stored = queries.stored_among(connection, cursor.job, wanted)
        for status_id in wanted:
            if status_id not in stored:
                comparison.add(FaultKind.MISSING, f"status {status_id}")
        comparison.compared += len(wanted)
        context.advance(len(wanted))
        if len(wanted) < len(page):
            return
