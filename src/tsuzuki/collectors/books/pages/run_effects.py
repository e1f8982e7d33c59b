"""The effects of a books run: how it moved the cursor, and the emails it sent."""

from typing import Any

from tsuzuki.collectors.books.api import books_service
from tsuzuki.collectors.books.service import MailView
from tsuzuki.model.run import Run
from tsuzuki.web.pages.context import PageContext
from tsuzuki.web.pages.formats import number_text
from tsuzuki.web.pages.language import message, translations
from tsuzuki.web.pages.run_effects import ACTS_SHOWN, Act, CursorMove, RunEffects

MAIL = message("Email")


def run_effects(context: PageContext, run: Run) -> RunEffects:
    mails = books_service(context).mails_of_run(run.job_name, run.id, limit=ACTS_SHOWN + 1)
    return RunEffects(cursor=_cursor(run.result), acts=[_act(context, view) for view in mails])


def _cursor(result: Any) -> CursorMove | None:
    match result:
        case {
            "collect": {
                "start_index_before": int(before),
                "start_index": int(after),
                "is_exhausted": bool(is_exhausted),
                **rest,
            }
        }:
            found = rest.get("total_items")
            total = found if isinstance(found, int) else None
            return CursorMove(before=before, after=after, total=total, is_exhausted=is_exhausted)
        case _:
            return None


def _act(context: PageContext, view: MailView) -> Act:
    mail = view.mail
    words = translations(context.viewer.language)
    count = words.ngettext("%(count)s book", "%(count)s books", view.books)
    return Act(
        kind="mail",
        word=words.gettext(MAIL),
        id=mail.id,
        path=f"/books/mails/{mail.id}",
        state=mail.state.value,
        text=count % {"count": number_text(view.books, context.viewer.language)},
        account=None,
        intended_at=mail.created_at,
        changed_at=mail.changed_at,
        place=None,
        error=mail.error,
    )
