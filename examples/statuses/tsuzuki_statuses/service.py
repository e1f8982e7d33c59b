"""The use-cases of the interfaces."""

from tsuzuki_statuses import queries


class Statuses:
    """Built anew for each command or request."""

    def __init__(self, context):
        self._database = context.database

    def find(self, job=None):
        """The statuses that are kept, the oldest first."""
        with self._database.read() as connection:
            return [dict(row._mapping) for row in queries.find(connection, job)]  # noqa: SLF001 -- SQLAlchemy's name
