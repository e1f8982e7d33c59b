"""What a run left behind: where it moved a cursor, the collection it worked on, and what it sent outward.

The collectors are asked by job and run, so a run of another kind has nothing here.
"""

from typing import Any, Literal

from pydantic import Field

from tsuzuki.collectors.books.service import MailView
from tsuzuki.collectors.feeds.service.items import PostView
from tsuzuki.model.access import Right
from tsuzuki.model.run import Run
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.api.books import books_service
from tsuzuki.web.api.feeds import feeds_service
from tsuzuki.web.pages.context import PageContext

ACTS_SHOWN = 50


class CursorMove(Model):
    """From where to where a search was collected. `total` is what the source estimates."""

    before: int
    after: int
    total: int | None
    is_exhausted: bool


class Act(Model):
    """A mail or a post. `path` is its page; `place` is where the receiver shows it."""

    kind: Literal["mail", "post", "edit", "reply"]
    id: int
    path: str
    state: Literal["intended", "sending", "sent", "refused", "unsettled"]
    text: str | None
    books: int | None
    account: str | None
    intended_at: Moment
    changed_at: Moment
    place: str | None
    error: str | None


class RunEffects(Model):
    """`acts` are the first ones, the oldest first; `is_cut` if there are more."""

    cursor: CursorMove | None = None
    collection: str | None = None
    acts: list[Act] = Field(default_factory=list)
    is_cut: bool = False


def effects_of(context: PageContext, run: Run) -> RunEffects:
    if run.started_at is None or not context.principal.may(Right.COLLECTORS_READ):
        return RunEffects()
    mails = books_service(context).mails_of_run(run.job_name, run.id, limit=ACTS_SHOWN + 1)
    feed_items = feeds_service(context).items
    posts = feed_items.posts_of_run(run.job_name, run.id, limit=ACTS_SHOWN + 1)
    acts = [*map(_mail, mails), *map(_post, posts)]
    return RunEffects(
        cursor=_cursor(run.result),
        collection=_collection(run),
        acts=[Act.model_validate(context.mask(act)) for act in acts[:ACTS_SHOWN]],
        is_cut=len(acts) > ACTS_SHOWN,
    )


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


def _collection(run: Run) -> str | None:
    """The collection of commits that the run started or was asked for."""
    match run.result, run.arguments:
        case ({"run_id": str(found), "targets": int()}, _) | (_, {"run_id": str(found)}):
            return found
        case _:
            return None


def _mail(view: MailView) -> dict[str, Any]:
    mail = view.mail
    return {
        "kind": "mail",
        "id": mail.id,
        "path": f"/books/mails/{mail.id}",
        "state": mail.state.value,
        "text": None,
        "books": view.books,
        "account": None,
        "intended_at": mail.created_at,
        "changed_at": mail.changed_at,
        "place": None,
        "error": mail.error,
    }


def _post(view: PostView) -> dict[str, Any]:
    found = view.as_dict()
    item_id, place = found.pop("item_id"), found.pop("remote_url")
    return {**found, "path": f"/feeds/items/{item_id}", "books": None, "place": place}
