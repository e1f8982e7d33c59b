"""The handler: collects page by page, each stored in one transaction with the cursor where the next one starts."""

from tsuzuki_statuses import queries
from tsuzuki_statuses.options import Section
from tsuzuki_statuses.source import Mastodon


def collect(context, run):
    job, account = run.job_name, run.options["account"]
    with context.database.read() as connection:
        newest_id = queries.newest_id(connection, job, account)
        before = queries.count(connection, job=job)
    kept = 0
    with Mastodon(context.section(Section)) as mastodon:
        while True:
            run.raise_if_cancelled()
            page = mastodon.page_after(account, newest_id)
            if page and run.arguments.get("dry_run"):
                run.log(f"would keep {len(page)} statuses or more, up to {page[-1].created_at}")
            if not page or run.arguments.get("dry_run"):
                return {"kept": kept, "before": before, "newest_id": newest_id}
            newest_id = page[-1].id
            with run.transaction() as connection:  # raises Fenced if the run is no longer ours
                kept += queries.put_page(connection, job, run.id, page)
                now = context.database.clock.now()
                values = {"account": account, "newest_id": newest_id, "updated_at": now}
                queries.move_cursor(connection, job, **values)
                run.progress(kept)
            run.log(f"{kept} statuses kept, up to {page[-1].created_at}")
