"""The handler: page after page, each stored in one transaction with the place where the next one starts."""

from tsuzuki_statuses import queries
from tsuzuki_statuses.options import Section
from tsuzuki_statuses.source import Mastodon


def collect(context, run):
    with context.database.read() as connection:
        newest_id = queries.newest_id(connection, run.job_name)
    kept = 0
    with Mastodon(context.section(Section)) as mastodon:
        while True:
            run.raise_if_cancelled()
            page = mastodon.page_after(run.options["account"], newest_id)
            if not page:
                return {"kept": kept, "newest_id": newest_id}
            newest_id = page[-1].id
            with run.transaction() as connection:  # raises Fenced if the run is no longer ours
                kept += queries.put_page(connection, run.job_name, page)
                queries.move_cursor(connection, run.job_name, newest_id=newest_id)
                run.progress(kept)
            run.log(f"{kept} statuses kept, up to {page[-1].created_at}")
