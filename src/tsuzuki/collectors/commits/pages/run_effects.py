"""The effects of a commits run: a link to its collection."""

from tsuzuki.model.run import Run
from tsuzuki.web.pages.context import PageContext
from tsuzuki.web.pages.language import message, translations
from tsuzuki.web.pages.links import path_part
from tsuzuki.web.pages.run_effects import EffectLink, RunEffects

COLLECTION = message("Collection")


def run_effects(context: PageContext, run: Run) -> RunEffects:
    found = _collection(run)
    if found is None:
        return RunEffects()
    title = translations(context.viewer.language).gettext(COLLECTION)
    path = f"/commits/collections/{path_part(found)}"
    return RunEffects(links=[EffectLink(title=title, label=found[:8], path=path)])


def _collection(run: Run) -> str | None:
    """The id of the collection that the run started or was asked for."""
    match run.result, run.arguments:
        case ({"collection_id": str(found), "targets": int()}, _) | (
            _,
            {"collection_id": str(found)},
        ):
            return found
        case _:
            return None
