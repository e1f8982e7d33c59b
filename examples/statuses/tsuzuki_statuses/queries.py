"""SQL statements, one function each."""

from sqlalchemy import delete, func, insert, select

from tsuzuki_statuses.tables import cursors, kept


def newest_id(connection, job, account):
    """ID up to which everything is stored; None without a cursor, or if it belongs to another account."""
    found = select(cursors.c.newest_id).where(cursors.c.job == job, cursors.c.account == account)
    return connection.execute(found).scalar_one_or_none()


def move_cursor(connection, job, **values):
    delete_cursor(connection, job)
    connection.execute(insert(cursors).values(job=job, **values))


def delete_cursor(connection, job):
    return connection.execute(delete(cursors).where(cursors.c.job == job)).rowcount


def find_cursors(connection):
    return connection.execute(select(cursors).order_by(cursors.c.job)).all()


def put_page(connection, job, run_id, page):
    """Store a page's statuses, skipping those already stored, because the cursor may have been reset."""
    known = stored_among(connection, job, [one.id for one in page])
    rows = [{"job": job, "run_id": run_id, **vars(one)} for one in page if one.id not in known]
    if rows:
        connection.execute(insert(kept), rows)
    return len(rows)


def stored_among(connection, job, ids):
    """The given IDs that a job has stored."""
    found = select(kept.c.id).where(kept.c.job == job, kept.c.id.in_(ids))
    return set(connection.execute(found).scalars())


def delete_kept(connection, job):
    return connection.execute(delete(kept).where(kept.c.job == job)).rowcount


def find(connection, *, job, run_id, after, limit):
    """Statuses by job and id. `after` is the (job, id) of the last one before them."""
    rows = select(kept).where(*_only(job, run_id)).order_by(kept.c.job, kept.c.id).limit(limit)
    if after is not None:
        last_job, last_id = after
        rows = rows.where(
            (kept.c.job > last_job) | ((kept.c.job == last_job) & (kept.c.id > last_id))
        )
    return connection.execute(rows).mappings().all()


def count(connection, *, job=None, run_id=None):
    rows = select(func.count()).select_from(kept).where(*_only(job, run_id))
    return connection.execute(rows).scalar_one()


def _only(job, run_id):
    wanted = {kept.c.job: job, kept.c.run_id: run_id}
    return [column == value for column, value in wanted.items() if value is not None]
