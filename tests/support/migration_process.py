"""A process that starts on databases that have not been migrated yet."""

from tsuzuki.model.clock import SystemClock
from tsuzuki.store.schema.migrate import require_current, upgrade
from tsuzuki.store.sql.database import open_database


def prepare_all(urls: list[str]) -> list[tuple[str | None, str]]:
    """Upgrade the databases one after another; return the revision of each before and after."""
    answers = []
    for url in urls:
        database = open_database(url, clock=SystemClock())
        (done,) = upgrade(database)
        require_current(database)
        database.close()
        answers.append((done.before, done.after))
    return answers
