"""Every statement, one function each."""

from sqlalchemy import delete, insert, select

from tsuzuki_statuses.tables import cursors, kept


def newest_id(connection, job):
    """The id up to which everything is stored, or None."""
    found = select(cursors.c.newest_id).where(cursors.c.job == job)
    return connection.execute(found).scalar_one_or_none()


def move_cursor(connection, job, *, newest_id):
    connection.execute(delete(cursors).where(cursors.c.job == job))
    connection.execute(insert(cursors).values(job=job, newest_id=newest_id))


def put_page(connection, job, page):
    """Store the statuses of a page that are not there yet: the cursor may have been reset."""
    wanted = select(kept.c.id).where(kept.c.job == job, kept.c.id.in_([one.id for one in page]))
    known = set(connection.execute(wanted).scalars())
    rows = [{"job": job, **vars(one)} for one in page if one.id not in known]
    if rows:
        connection.execute(insert(kept), rows)
    return len(rows)


def find(connection, job):
    rows = select(kept).order_by(kept.c.created_at)
    return connection.execute(rows if job is None else rows.where(kept.c.job == job)).all()
