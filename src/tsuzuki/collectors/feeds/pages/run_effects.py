"""What a feeds run left behind: its posts, edits and replies."""

from tsuzuki.collectors.feeds.api.feeds import feeds_service
from tsuzuki.collectors.feeds.service.items import PostView
from tsuzuki.model.run import Run
from tsuzuki.web.pages.context import PageContext
from tsuzuki.web.pages.language import message, translations
from tsuzuki.web.pages.run_effects import ACTS_SHOWN, Act, RunEffects

WORDS = {"post": message("Post"), "edit": message("Edit"), "reply": message("Reply")}


def run_effects(context: PageContext, run: Run) -> RunEffects:
    posts = feeds_service(context).items.posts_of_run(run.job_name, run.id, limit=ACTS_SHOWN + 1)
    return RunEffects(acts=[_act(context, view) for view in posts])


def _act(context: PageContext, view: PostView) -> Act:
    found = view.as_dict()
    item_id, place = found.pop("item_id"), found.pop("remote_url")
    word = translations(context.viewer.language).gettext(WORDS[found["kind"]])
    return Act.model_validate(
        {**found, "word": word, "path": f"/feeds/items/{item_id}", "place": place}
    )
