"""What a run left behind, as its collector shows it: a moved cursor, pages about it, and what was sent outward."""

from typing import Literal

from pydantic import Field

from tsuzuki.model.access import Right
from tsuzuki.model.run import Run
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.pages.context import PageContext
from tsuzuki.web.pages.extension import extensions

ACTS_SHOWN = 50


class CursorMove(Model):
    """From where to where a search was collected. `total` is what the source estimates."""

    before: int
    after: int
    total: int | None
    is_exhausted: bool


class EffectLink(Model):
    """A page about what the run worked on."""

    title: str
    label: str
    path: str


class Act(Model):
    """A mail or a post. `word` names its kind and `text` its content, in the viewer's language; `path` is its page, and
    `place` is where the receiver shows it."""

    kind: str
    word: str
    id: int
    path: str
    state: Literal["intended", "sending", "sent", "refused", "unsettled"]
    text: str | None
    account: str | None
    intended_at: Moment
    changed_at: Moment
    place: str | None
    error: str | None


class RunEffects(Model):
    """`acts` are the first ones, the oldest first; `is_cut` if there are more."""

    cursor: CursorMove | None = None
    links: list[EffectLink] = Field(default_factory=list)
    acts: list[Act] = Field(default_factory=list)
    is_cut: bool = False


def effects_of(context: PageContext, run: Run) -> RunEffects:
    """What all collectors know of the run: the others have nothing about it."""
    if run.started_at is None or not context.principal.may(Right.COLLECTORS_READ):
        return RunEffects()
    asked = [find for pages in extensions() if (find := pages.load_run_effects())]
    found = [find(context, run) for find in asked]
    acts = [act for one in found for act in one.acts]
    return RunEffects(
        cursor=next((one.cursor for one in found if one.cursor), None),
        links=[link for one in found for link in one.links],
        acts=[Act.model_validate(context.mask(act.model_dump())) for act in acts[:ACTS_SHOWN]],
        is_cut=len(acts) > ACTS_SHOWN,
    )
